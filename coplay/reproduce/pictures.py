"""The picture of a result, drawn from the numbers in its file."""

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter

from coplay.games.drawing import FAINT_INK, INK
from coplay.reports import charts
from coplay.reproduce.experiment import MAIN

WIDTH, HEIGHT = 7.0, 3.8  # inches


def draw(path: str | os.PathLike[str], result: Mapping[str, Any]) -> None:
    """Write the picture of a result, by the ending of `path`."""
    chart = result["chart"]
    square = chart["kind"] == "matrix"
    figure = charts.new_figure(WIDTH, 5.6 if square else HEIGHT)
    axes = figure.add_subplot()
    charts.make_plain(axes, grid=not square)
    KINDS[chart["kind"]](axes, result)
    axes.set_title(result["title"], loc="left", color=INK, fontsize=12, fontweight="bold")
    axes.set_xlabel(chart.get("x", ""), color=INK)
    axes.set_ylabel(chart["y"], color=INK)
    for label, value in chart.get("references", {}).items():
        axes.axhline(value, color=FAINT_INK, linewidth=1, linestyle=(0, (5, 3)), zorder=1)
        axes.annotate(
            label,
            (1, value),
            xycoords=("axes fraction", "data"),
            xytext=(-2, 3),
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color=FAINT_INK,
        )
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) > 1:
        charts.legend_below(figure, handles, labels, fontsize=9)
    charts.save(figure, path)


def draw_curves(axes: Axes, result: Mapping[str, Any]) -> None:
    """Lines with their intervals as bands."""
    for index, (label, line) in enumerate(result["chart"]["lines"].items()):
        colour = charts.colour(index)
        axes.plot(line["x"], line["y"], color=colour, linewidth=1.8, label=label)
        axes.fill_between(
            line["x"], line["low"], line["high"], color=colour, alpha=0.2, linewidth=0
        )
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))


def draw_dots(axes: Axes, result: Mapping[str, Any]) -> None:
    """The cells of a table with their intervals: columns beside each other, a colour for each
    row."""
    table = result["tables"][result["chart"].get("table", MAIN)]
    rows = table["rows"]
    for index, (label, *cells) in enumerate(rows):
        place = np.arange(len(cells)) + (index - (len(rows) - 1) / 2) * min(0.14, 0.8 / len(rows))
        values = np.array([cell["value"] for cell in cells])
        ends = [[cell["low"] for cell in cells], [cell["high"] for cell in cells]]
        axes.errorbar(
            place,
            values,
            yerr=np.abs(np.array(ends) - values),
            fmt="o",
            color=charts.colour(index),
            markersize=5,
            capsize=3,
            label=label,
        )
    axes.set_xticks(range(len(table["columns"]) - 1), table["columns"][1:])


def draw_matrix(axes: Axes, result: Mapping[str, Any]) -> None:
    """A matrix of rewards with its numbers."""
    chart = result["chart"]
    values, labels = np.array(chart["values"]), chart["labels"]
    axes.imshow(values, cmap="Blues", aspect="auto")
    middle = (values.min() + values.max()) / 2
    for (row, column), value in np.ndenumerate(values):
        shade = "white" if value > middle else INK
        axes.annotate(
            f"{value:.2f}", (column, row), ha="center", va="center", color=shade, fontsize=8
        )
    axes.set_xticks(range(len(labels)), labels, rotation=30, ha="right")
    axes.set_yticks(range(len(labels)), labels)


KINDS: dict[str, Callable[[Axes, Mapping[str, Any]], None]] = {
    "curves": draw_curves,
    "dots": draw_dots,
    "matrix": draw_matrix,
}
