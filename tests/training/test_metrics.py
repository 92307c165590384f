"""The table of metrics."""

from coplay.evaluation.compare import NON_STATIONARITY
from coplay.training.metrics import METRICS, describe


def test_names_are_described_by_seat_and_by_action() -> None:
    assert describe("team_mean") == METRICS["team_mean"]
    assert describe("kl/seat_2") == METRICS["kl/…"]
    assert describe("action_hunt stag/seat_0") == METRICS["action_<name>/…"]
    assert describe("nothing/seat_0") is None and describe("nothing") is None


def test_what_comparisons_read_is_in_the_table() -> None:
    assert all(f"{name}/…" in METRICS for name in NON_STATIONARITY)
