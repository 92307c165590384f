"""What does a hypernetwork bring to MAPPO?"""

from collections.abc import Mapping
from typing import Any

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

SMALL = (
    "--copies 64 --rollout 16 --steps 50000 --episodes 1000 --seeds 5 --network.hidden 32 "
    "--memory.chunk-length 16 --epochs 4 --optimiser.learning-rate 1e-3 "
    "--critic-learning-rate 1e-3"
)
HYPER = "--hypernetwork.learning-rate 1e-3 --hypernetwork.width 32 --hypernetwork.units 32"
LEARNERS = {
    "mappo": ("MAPPO", f"train mappo {SMALL}"),
    "gru": ("MAPPO with a memory", f"train mappo {SMALL} --memory.kind gru --memory.units 32"),
    "hyper": ("HyperMAPPO", f"train hyper-mappo {SMALL} {HYPER}"),
    "input": (
        "the same context as an input",
        f"train hyper-mappo {SMALL} {HYPER} --hypernetwork.use input",
    ),
}
"""Short name -> label, command without the game."""

GAMES = {"identity": 4, "hidden-target": 16}
"""Game -> steps of an episode; a step that is right brings 1."""


def training(game: str, learner: str) -> Measurement:
    name = f"{game}-{learner}"
    command = LEARNERS[learner][1].replace(" --copies", f" --game {game} --copies", 1)
    return Measurement(name, f"{command} --out runs/{name}")


def read_contexts(outputs: Mapping[str, Any], rows: Rows) -> Findings:
    made = []
    for learner, (label, _) in LEARNERS.items():
        row: list[Any] = [label]
        for game, length in GAMES.items():
            summary = outputs[training(game, learner).name]
            row.append(over_runs([seed["team_mean"] / length for seed in seeds_of(summary)]))
        made.append(row)
    curves = {}
    for learner, (label, _) in LEARNERS.items():
        line = curve(rows(f"runs/hidden-target-{learner}"), "team_mean")
        for part in ("y", "low", "high"):
            line[part] = [round(value / GAMES["hidden-target"], 4) for value in line[part]]
        curves[label] = line
    return Findings(
        f"Yes: HyperMAPPO gets {words(made[2][2])} of the reward on `hidden-target` and MAPPO "
        f"{words(made[0][2])}, where chance is 0.25. The same context as an input of the actor "
        f"gets {words(made[3][2])}.",
        {MAIN: {"columns": ["learner", *(f"`{game}`" for game in GAMES)], "rows": made}},
        {
            "kind": "curves",
            "x": "game steps",
            "y": "share of the reward on hidden-target, while learning",
            "lines": curves,
            "references": {"chance": 0.25, "best possible": 1.0},
        },
    )


EXPERIMENTS = (
    Experiment(
        "hyper-mappo",
        "MAPPO and HyperMAPPO",
        "Does HyperMAPPO learn what only an agent's past, or its number, can tell?",
        "0 to 4",
        10,
        tuple(training(game, learner) for game in GAMES for learner in LEARNERS),
        read_contexts,
    ),
)
