"""What charts share: figures with plain axes, legends, files that appear whole or not at all."""

import csv
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text
from matplotlib.ticker import NullFormatter

from coplay.core.files import replacing
from coplay.games.drawing import FAINT_INK, GRID, INK, seat_colour
from coplay.reports import page

DPI = 100
DASHES = ("-", "--", ":", "-.")
BEST = "#222222"  # lines of what is best possible


def colour(index: int) -> str:
    """Different for any number of curves; the colour-blind can tell the first eight apart."""
    return seat_colour(index)


def dash(index: int) -> str:
    """How a curve is dashed, so that one that lies on another can be seen."""
    return DASHES[index % len(DASHES)]


def contrast(one: Any, other: Any) -> float:
    """How well two colours can be told apart: 1 to 21, as the WCAG define it."""

    def light(colour: Any) -> float:
        parts = [
            x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in to_rgb(colour)
        ]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2] + 0.05

    first, second = light(one), light(other)
    return max(first, second) / min(first, second)


def ink_on(ground: Any) -> str:
    """The colour of letters that are read best on a ground."""
    return max((INK, "#FFFFFF"), key=lambda ink: contrast(ink, ground))


def new_figure(width: float, height: float, roomy: bool = False) -> Figure:
    """An empty figure of a size in inches. roomy: more space around its panels."""
    layout = ConstrainedLayoutEngine()
    if roomy:
        layout.set(w_pad=0.12, h_pad=0.1)
    figure = Figure(figsize=(width, height), dpi=DPI, layout=layout)
    FigureCanvasAgg(figure)
    return figure


def make_plain(axes: Axes, grid: bool = True, labelsize: int = 9, **ticks: Any) -> None:
    """Two thin spines, faint ticks and horizontal grid lines. ticks: further `tick_params`."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT_INK)
    axes.tick_params(colors=INK, labelsize=labelsize, color=FAINT_INK, **ticks)
    if grid:
        axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)


def panels(
    columns: int, rows: int = 1, width: float = 9.0, height: float = 3.6, grid: bool = True
) -> tuple[Figure, list[Axes]]:
    """A figure with rows x columns plain axes, in reading order."""
    figure = new_figure(width, height)
    axes = [figure.add_subplot(rows, columns, 1 + index) for index in range(rows * columns)]
    for one in axes:
        make_plain(one, grid)
    return figure, axes


def legend_below(
    figure: Figure, handles: Sequence[Any], labels: Sequence[str], **style: Any
) -> None:
    """A legend beneath all panels; style: further arguments of `Figure.legend`."""
    usual = {"ncols": len(labels), "frameon": False, "fontsize": 10, "labelcolor": INK}
    figure.legend(handles, labels, loc="outside lower center", **usual | style)


def legend_beside(axes: Axes, **style: Any) -> None:
    """A legend at the right of a panel, where it covers no data."""
    usual = {"frameon": False, "fontsize": 8, "labelcolor": INK}
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), **usual | style)


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a picture by the ending of `path` (PNG without one), whole or not at all.

    Names in it are shown as they are: a dollar sign begins no formula. So powers of ten at a
    logarithmic axis are written out.
    """
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        if axis.get_scale() == "log":
            axis.set_major_formatter(lambda value, place: f"{value:g}")
            axis.set_minor_formatter(NullFormatter())
    for text in figure.findobj(Text):
        text.set_parse_math(False)
    with replacing(path) as unfinished:
        ending = os.path.splitext(path)[1][1:]
        figure.savefig(unfinished, format=ending or "png", dpi=DPI)


def matrix(axes: Axes, values: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> None:
    """A matrix of shares between 0 and 1, with its numbers."""
    axes.grid(visible=False)
    axes.imshow(values, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (i, j), value in np.ndenumerate(values):
        if value >= 0.005:
            shade = "white" if value > 0.6 else INK
            axes.annotate(f"{value:.2f}", (j, i), ha="center", va="center", color=shade, fontsize=8)
    axes.set_xticks(range(len(columns)), columns, rotation=45, ha="right")
    axes.set_yticks(range(len(rows)), rows)


def write_csv(path: Path, titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with replacing(path) as unfinished, open(unfinished, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(titles)
        writer.writerows(rows)


def shown(path: Path, title: str, words: str) -> list[str]:
    """A picture on a page, with its title and what it shows."""
    return [page.heading(title), page.picture(path, title), page.paragraph(words)]


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
