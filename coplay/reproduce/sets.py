"""Do networks that read lists of entities as sets learn foraging better than plain ones?"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from coplay.reproduce.experiment import (
    MAIN,
    Experiment,
    Findings,
    Measurement,
    curve,
    over_runs,
    words,
)
from coplay.reproduce.self_play import Rows, seeds_of

NETWORKS = {
    "plain": ("plain", "--network.kind mlp"),
    "wide": ("plain, as many parameters", "--network.kind mlp --network.hidden 108 108"),
    "sets": ("sets", "--network.kind entities"),
}
"""Short name -> what the network is called, and its options."""
GAME = "foraging --game.height 6 --game.width 6 --game.players 3 --game.foods 4 --game.show lists"
BEST = 1 / 3
"""Three players share the food of an episode, which is worth 1."""


def trained(name: str) -> Measurement:
    return Measurement(
        f"sets-{name}",
        f"train ppo --game {GAME} --parameters shared --steps 400000 --seed 10 --seeds 5 "
        f"--no-pictures {NETWORKS[name][1]} --out runs/sets-{name}",
    )


def read_sets(outputs: Mapping[str, Any], rows: Rows) -> Findings:
    made, found, curves = [], {}, {}
    for name, (label, _) in NETWORKS.items():
        summary = outputs[trained(name).name]
        seeds = seeds_of(summary)
        found[name] = over_runs([seed["team_mean"] for seed in seeds])
        steps = over_runs([float(np.mean([s["steps"] for s in x["seats"]])) for x in seeds], 1)
        made.append([label, found[name], steps, f"{summary['parameters']:,}"])
        curves[label] = curve(rows(f"runs/{trained(name).name}"), "team_mean")
    return Findings(
        f"With networks for sets a player gets {words(found['sets'])} of at most {BEST:.3f} per "
        f"episode, with plain ones {words(found['plain'])}, with plain ones of as many parameters "
        f"{words(found['wide'])}.",
        [
            [f"PPO in foraging, networks for sets: at most {BEST:.3f}", found["sets"]],
            ["PPO there, plain networks of as many parameters", found["wide"]],
        ],
        {
            MAIN: {
                "columns": ["network", "reward per episode", "steps of an episode", "parameters"],
                "rows": made,
            }
        },
        {
            "kind": "curves",
            "x": "game steps",
            "y": "reward per episode, while learning",
            "lines": curves,
            "references": {"all food": BEST},
        },
    )


EXPERIMENTS = (
    Experiment(
        "sets",
        "Networks for sets in foraging",
        "Do networks that read foods and players as sets learn foraging better than plain ones?",
        "training seeds 10 to 14",
        4,
        tuple(trained(name) for name in NETWORKS),
        read_sets,
    ),
)
