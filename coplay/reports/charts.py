"""What pages of figures share: plain axes, pictures and tables that appear whole or not at all."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from coplay.core.files import replacing
from coplay.games.drawing import FAINT_INK, GRID, INK
from coplay.reports import page

DPI = 100
COLOURS = ("#3b6fb6", "#d1742f", "#4c9a5b", "#8d5bb0", "#b3476b", "#7a7a7a")
BEST = "#222222"  # lines of what is best possible


def colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def panels(
    columns: int, rows: int = 1, width: float = 9.0, height: float = 3.6, grid: bool = True
) -> tuple[Figure, list[Axes]]:
    """A figure with rows x columns plain axes, in reading order."""
    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = [figure.add_subplot(rows, columns, 1 + index) for index in range(rows * columns)]
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
        one.spines[["left", "bottom"]].set_color(FAINT_INK)
        one.tick_params(colors=INK, labelsize=9, color=FAINT_INK)
        if grid:
            one.grid(axis="y", color=GRID, linewidth=0.8)
        one.set_axisbelow(True)
    return figure, axes


def save(figure: Figure, path: Path) -> None:
    with replacing(path) as unfinished:
        figure.savefig(unfinished, format="png", dpi=DPI)


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
