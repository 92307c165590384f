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
from coplay.reproduce.parts import HIDDEN_TARGET
from coplay.reproduce.self_play import Rows, seeds_of

LEARNERS = {
    "mappo": "MAPPO",
    "gru": "MAPPO with a memory",
    "hyper": "HyperMAPPO",
    "input": "the context as an input",
}
"""Short name of a variant of `parts` -> label."""

LENGTH = 16
"""Steps of an episode of hidden-target; a step that is right brings 1."""


def training(learner: str) -> Measurement:
    return HIDDEN_TARGET.step(learner)


def read_contexts(outputs: Mapping[str, Any], rows: Rows) -> Findings:
    made: list[list[Any]] = []
    lines = {}
    for learner, label in LEARNERS.items():
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
