"""Pictures of results, looked at by the numbers they show."""

from pathlib import Path

import numpy as np
import pytest

from coplay.reports import charts
from coplay.reproduce.pictures import draw, draw_curves, draw_dots, draw_matrix
from tests.reproduce.test_tables import a_result

LINES = {"kind": "curves", "x": "steps", "y": "reward", "lines": {}, "references": {"best": 3.0}}
LINE = {"x": [0, 10], "y": [1.0, 2.0], "low": [0.9, 1.9], "high": [1.1, 2.1]}


def test_a_picture_is_written(tmp_path: Path) -> None:
    draw(tmp_path / "so.png", a_result(chart=LINES | {"lines": {"PPO": LINE}}))
    assert (tmp_path / "so.png").read_bytes().startswith(b"\x89PNG")


def test_dots_stand_at_the_values_of_the_table() -> None:
    axes = charts.new_figure(3, 3).add_subplot()
    draw_dots(axes, a_result())
    assert list(np.asarray(axes.lines[0].get_ydata())) == pytest.approx([0.95])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["score"]


def test_curves_have_their_bands() -> None:
    axes = charts.new_figure(3, 3).add_subplot()
    draw_curves(axes, a_result(chart=LINES | {"lines": {"PPO": LINE}}))
    assert list(axes.lines[0].get_ydata()) == [1.0, 2.0]
    assert len(axes.collections) == 1


def test_a_matrix_has_its_numbers() -> None:
    axes = charts.new_figure(3, 3).add_subplot()
    chart = {"kind": "matrix", "y": "one", "labels": ["a", "b"], "values": [[0.0, 1.0], [2.0, 3.0]]}
    draw_matrix(axes, a_result(chart=chart))
    assert [text.get_text() for text in axes.texts] == ["0.00", "1.00", "2.00", "3.00"]
