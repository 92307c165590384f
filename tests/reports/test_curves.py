"""Learning curves: the lines drawn are the numbers given."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from coplay.core.errors import UserError
from coplay.games.drawing import seat_colour
from coplay.matches.statistics import bootstrap_interval, iqm
from coplay.reports.curves import learning_curve


def make_rows(seeds: int, steps: int, seats: int = 3) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    rows = []
    for seed in range(seeds):
        for step in range(steps):
            rewards = rng.normal(size=seats) + step
            row = {f"reward/seat_{i}": float(value) for i, value in enumerate(rewards)}
            row |= {"step": 1000 * step, "seed": seed, "team_mean": float(rewards.mean())}
            rows.append(row)
    return rows


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are saved during a test."""
    figures: list[Figure] = []
    save = Figure.savefig

    def keep(self: Figure, *args: Any, **options: Any) -> None:
        figures.append(self)
        save(self, *args, **options)

    monkeypatch.setattr(Figure, "savefig", keep)
    return figures


def lines(figure: Figure) -> dict[str, Any]:
    return {str(line.get_label()): line for line in figure.axes[0].lines}


@pytest.mark.parametrize("seeds", [1, 8])
def test_picture_has_the_stated_size_and_nothing_else_is_written(tmp_path: Path, seeds) -> None:
    path = tmp_path / "plots" / "curve.png"
    learning_curve(path, make_rows(seeds, 12), 3, "title", {"best": 3.0, "near": 3.01})
    with Image.open(path) as picture:
        assert picture.size == (900, 540)
    assert [entry.name for entry in path.parent.iterdir()] == ["curve.png"]
    assert (
        "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()
    )


def test_one_seed_is_drawn_as_it_is(tmp_path: Path, drawn: list[Figure]) -> None:
    rows = make_rows(1, 7)
    learning_curve(tmp_path / "c.png", rows[::-1], 3, "title")
    shown = lines(drawn[0])
    assert list(shown["team mean"].get_xdata()) == [row["step"] for row in rows]
    assert np.allclose(shown["team mean"].get_ydata(), [row["team_mean"] for row in rows])
    for seat in range(3):
        line = shown[f"seat {seat}"]
        assert np.allclose(line.get_ydata(), [row[f"reward/seat_{seat}"] for row in rows])
        assert line.get_color() == seat_colour(seat)
        assert line.get_linewidth() < shown["team mean"].get_linewidth()
    assert not drawn[0].axes[0].collections, "no band for one seed"


def test_seeds_are_summed_up_per_step(tmp_path: Path, drawn: list[Figure]) -> None:
    rows = make_rows(8, 5)
    learning_curve(tmp_path / "c.png", rows, 3, "title")
    shown = lines(drawn[0])
    (band,) = drawn[0].axes[0].collections
    edges = np.asarray(band.get_paths()[0].vertices)
    for step in range(5):
        here = [row for row in rows if row["step"] == 1000 * step]
        team = [row["team_mean"] for row in here]
        assert shown["team mean"].get_ydata()[step] == pytest.approx(iqm(team))
        assert shown["seat 2"].get_ydata()[step] == pytest.approx(
            np.mean([row["reward/seat_2"] for row in here])
        )
        at = edges[edges[:, 0] == 1000 * step, 1]
        assert (at.min(), at.max()) == pytest.approx(bootstrap_interval(team))


def test_missing_values_are_left_out(tmp_path: Path, drawn: list[Figure]) -> None:
    rows = make_rows(2, 6)
    rows[0]["team_mean"] = float("nan")
    rows[6]["team_mean"] = None  # the same step of the other seed
    del rows[2]["reward/seat_1"]
    rows[3]["reward/seat_0"] = float("inf")
    rows.append({"seed": 0, "loss": 1.0})
    learning_curve(tmp_path / "c.png", rows, 3, "title")
    shown = lines(drawn[0])
    assert list(shown["team mean"].get_xdata()) == [1000, 2000, 3000, 4000, 5000]
    assert shown["seat 1"].get_ydata()[2] == pytest.approx(rows[8]["reward/seat_1"])
    assert all(np.isfinite(line.get_ydata()).all() for line in shown.values())


def test_a_single_point_is_visible(tmp_path: Path, drawn: list[Figure]) -> None:
    learning_curve(tmp_path / "c.png", make_rows(1, 1), 3, "title")
    assert lines(drawn[0])["team mean"].get_marker() == "o"


def test_references_are_lines_with_their_names(tmp_path: Path, drawn: list[Figure]) -> None:
    learning_curve(tmp_path / "c.png", make_rows(1, 4), 3, "title", {"best": 3.0, "NS": 2.95})
    axes = drawn[0].axes[0]
    level = [list(line.get_ydata()) for line in axes.lines if len(line.get_ydata()) == 2]
    assert level == [[3.0, 3.0], [2.95, 2.95]]
    places = {text.get_text(): text.xy[1] for text in axes.texts if hasattr(text, "xy")}
    assert places["NS 2.95"] == 2.95
    assert places["best 3"] > 3.0, "moved up from its neighbour"


def test_nothing_to_draw_is_an_error(tmp_path: Path) -> None:
    for rows in ([], [{"step": 0, "seed": 0, "team_mean": None}]):
        with pytest.raises(UserError, match="nothing to draw"):
            learning_curve(tmp_path / "c.png", rows, 2, "title")
    assert not list(tmp_path.iterdir())
