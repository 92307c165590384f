"""Cells and curves of results."""

import pytest

from coplay.matches.statistics import bootstrap_interval
from coplay.reproduce.experiment import Measurement, curve, over_runs, words


def test_a_cell_is_the_interquartile_mean_over_runs_with_its_interval() -> None:
    runs = [1.0, 2.0, 3.0, 10.0]
    cell = over_runs(runs)
    assert cell["value"] == 2.5 and cell["runs"] == runs
    assert (cell["low"], cell["high"]) == bootstrap_interval(runs)
    assert words(cell) == f"2.500 ({cell['low']:.3f} to {cell['high']:.3f})"


def test_one_run_has_no_interval() -> None:
    assert words(over_runs([0.25], digits=2)) == "0.25"


@pytest.mark.parametrize(("cell", "text"), [(None, ""), ("never", "never"), (3, "3")])
def test_other_cells_are_shown_as_they_are(cell: object, text: str) -> None:
    assert words(cell) == text


def test_a_curve_goes_from_the_first_to_the_last_step_in_few_points() -> None:
    rows = [
        {"step": step, "seed": seed, "team_mean": None if step < 2 else step + seed}
        for step in range(1000)
        for seed in (0, 1)
    ]
    line = curve(rows, "team_mean", points=10)
    assert line["x"][0] == 2 and line["x"][-1] == 999 and len(line["x"]) == 10
    assert line["y"][-1] == 999.5
    assert line["low"][-1] == 999 and line["high"][-1] == 1000


def test_a_command_asks_for_json_and_is_shown_without() -> None:
    step = Measurement("one", "play --seating ns,ns,ns,ns")
    assert step.shown == "coplay play --seating ns,ns,ns,ns"
    assert step.arguments == ["play", "--seating", "ns,ns,ns,ns", "--json"]
    assert "--json" not in Measurement("two", "collect --out data", needs_json=False).arguments
