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
    "--game hidden-target --copies 64 --rollout 16 --steps 50000 --episodes 1000 --seeds 5 "
    "--network.hidden 32 --memory.chunk-length 16 --epochs 4 --optimiser.learning-rate 1e-3 "
    "--critic-learning-rate 1e-3"
)
HYPER = "--hypernetwork.learning-rate 1e-3 --hypernetwork.width 32 --hypernetwork.units 32"
LEARNERS = {
    "mappo": ("MAPPO", f"mappo {SMALL}"),
    "gru": ("MAPPO with a memory", f"mappo {SMALL} --memory.kind gru --memory.units 32"),
    "hyper": ("HyperMAPPO", f"hyper-mappo {SMALL} {HYPER}"),
    "input": ("the context as an input", f"hyper-mappo {SMALL} {HYPER} --hypernetwork.use input"),
}
"""Short name -> label, what to train."""

LENGTH = 16
"""Steps of an episode of hidden-target; a step that is right brings 1."""


def training(learner: str) -> Measurement:
    name = f"hidden-target-{learner}"
    return Measurement(name, f"train {LEARNERS[learner][1]} --out runs/{name}")


def read_contexts(outputs: Mapping[str, Any], rows: Rows) -> Findings:
    made: list[list[Any]] = []
    lines = {}
    for learner, (label, _) in LEARNERS.items():
        seeds = seeds_of(outputs[training(learner).name])
        shares = [seed["team_mean"] / LENGTH for seed in seeds]
        made.append([label, over_runs(shares), f"{min(shares):.3f}"])
        shared = [
            row | {"share": None if row["team_mean"] is None else row["team_mean"] / LENGTH}
            for row in rows(f"runs/hidden-target-{learner}")
        ]
        lines[label] = curve(shared, "share")
    mappo, _, hyper, given = (words(row[1]) for row in made)
    return Findings(
        f"HyperMAPPO gets {hyper} of the reward and MAPPO {mappo}, where chance is 0.25. The "
        f"same context as an input of the actor gets {given}.",
        [
            [f"{row[0]} on `hidden-target`: share of the reward", row[1]]
            for row in (made[2], made[0])
        ],
        {MAIN: {"columns": ["learner", "share of the reward", "lowest seed"], "rows": made}},
        {
            "kind": "curves",
            "x": "game steps",
            "y": "share of the reward, while learning",
            "lines": lines,
            "references": {"chance": 0.25, "best possible": 1.0},
        },
    )


EXPERIMENTS = (
    Experiment(
        "hyper-mappo",
        "MAPPO and HyperMAPPO where only the past tells",
        "Does HyperMAPPO learn what only an agent's own past can tell?",
        "training seeds 0 to 4",
        5,
        tuple(training(learner) for learner in LEARNERS),
        read_contexts,
    ),
)
