"""The table of metrics."""

from pathlib import Path
from typing import Any

import pytest

import coplay
from coplay.algorithms.registry import LEARNERS
from coplay.evaluation.compare import NON_STATIONARITY
from coplay.training.logs import NOT_METRICS
from coplay.training.metrics import GROUPS, METRICS, describe, plain_name
from coplay.training.records import read_rows

SMALL = {
    **{"chunk_length": 4, "buffer_chunks": 16, "batch_chunks": 4, "updates": 1},
    "learn_opponents": True,
}
WORLD = {"buffer_transitions": 64, "batch_transitions": 16}
SHORT: list[tuple[str, dict[str, Any]]] = [
    ("ppo", {}),
    ("ppo-gru", {}),
    ("rl2", {}),
    ("liam", {}),
    ("varibad", {}),
    ("advantage-alignment", {}),
    ("influence", {}),
    ("plastic", {"library": 2, "minibatches": 2}),
    ("mappo", {}),
    ("hyper-mappo", {"anchor_weight": 0.1}),
    ("hop", {"search": {"simulations": 2, "draws": 1, "depth": 2}}),
    (
        "hop-plus",
        {
            "goals": {"loss": "reconstruction"},
            "imagination": {"share": 0.25, "over": "model"},
            "models": SMALL | WORLD,
            "recordings": {"samples": 0},
        },
    ),
    (
        "hop-plus",
        {
            "goals": {"inference": "gru"},
            "imagination": {"strangers": 0.0},
            "models": SMALL,
            "recordings": {"samples": 0},
        },
    ),
    (
        "hop-plus",
        {
            "views": "own",
            "imagination": {"strangers": 0.0},
            "models": SMALL,
            "recordings": {"samples": 0},
        },
    ),
]
"""Learners with fields that make them write all they can, and little to do."""


def test_names_are_described_by_seat_and_by_action() -> None:
    assert describe("team_mean") == METRICS["team_mean"]
    assert describe("kl/seat_2") == METRICS["kl/…"]
    assert describe("action_hunt stag/seat_0") == METRICS["action_<name>/…"]
    assert describe("nothing/seat_0") is None and describe("nothing") is None


def test_what_comparisons_read_is_in_the_table() -> None:
    assert all(f"{name}/…" in METRICS for name in NON_STATIONARITY)


@pytest.mark.slow
def test_every_learner_writes_what_the_table_says(tmp_path: Path) -> None:
    assert {name for name, _ in SHORT} == set(LEARNERS)
    written: dict[str, set[str]] = {}
    for number, (learner, fields) in enumerate(SHORT):
        out = tmp_path / str(number)
        short = {"steps": 256, "copies": 8, "rollout": 8, "block": 2, "episodes": 8}
        if learner == "plastic":
            coplay.make_partners(tmp_path / "pack", "stag-hunt", ["rules"], rules=2, quiet=True)
            fields = fields | {"partners": str(tmp_path / "pack")}
        coplay.train(learner, "stag-hunt", out, quiet=True, pictures=False, **short, **fields)
        names = {name for row in read_rows(out / "metrics.jsonl") for name in row}
        for name in names - set(NOT_METRICS):
            written.setdefault(plain_name(name), set()).add(learner)
    said = {name: set(who) for who, table in GROUPS.values() for name in table}
    unexplained = {name: who - said.get(name, set()) for name, who in written.items()}
    assert not {name: who for name, who in unexplained.items() if who}
    assert set(written) == set(METRICS), "rows that nobody writes"
