"""What charts share."""

import csv
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from coplay.reports import charts


def test_panels_come_in_reading_order_and_are_plain() -> None:
    figure, axes = charts.panels(2, 3, width=6, height=4)
    figure.canvas.draw()
    corners = [(-round(one.get_position().y0, 2), round(one.get_position().x0, 2)) for one in axes]
    assert len(axes) == 6 and corners == sorted(corners)
    assert not axes[0].spines["top"].get_visible() and axes[0].spines["left"].get_visible()


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf", ""])
def test_pictures_are_written_by_their_ending(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"picture{ending}"
    charts.save(charts.new_figure(3, 2, roomy=True), path)
    begins = {".svg": b"<?xml", ".pdf": b"%PDF"}.get(ending, b"\x89PNG")
    assert path.read_bytes().startswith(begins)
    if ending == ".png":
        assert Image.open(path).size == (300, 200)
    assert [one.name for one in tmp_path.iterdir()] == [path.name], "nothing else is left"


def test_curves_differ_and_powers_of_ten_are_written_out(tmp_path: Path) -> None:
    assert len({charts.colour(index) for index in range(20)}) == 20
    figure, (axes,) = charts.panels(1)
    axes.plot([1, 2], [0.01, 10], charts.dash(1))
    axes.set_yscale("log")
    charts.save(figure, tmp_path / "log.png")
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert "0.1" in labels and not any("$" in label for label in labels)


def test_a_matrix_shows_its_numbers() -> None:
    _, (axes,) = charts.panels(1, grid=False)
    charts.matrix(axes, np.array([[1.0, 0.0], [0.25, 0.75]]), ["a", "b"], ["c", "d"])
    assert [text.get_text() for text in axes.texts] == ["1.00", "0.25", "0.75"], "zeros are bare"


def test_tables_are_csv_files(tmp_path: Path) -> None:
    charts.write_csv(tmp_path / "t.csv", ("a", "b"), [(1, "x,y"), (2, "")])
    with open(tmp_path / "t.csv", newline="") as file:
        assert list(csv.DictReader(file)) == [{"a": "1", "b": "x,y"}, {"a": "2", "b": ""}]


def test_numbers_that_are_not_there_are_empty() -> None:
    assert charts.number(None) == "" and charts.number(0.123456) == "0.1235"
