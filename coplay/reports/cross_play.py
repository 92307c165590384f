"""Cross-play to look at: a table on the terminal, and a heat map."""

import os
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from rich.table import Table

from coplay.core.errors import UserError
from coplay.evaluation.cross_play import CrossPlay
from coplay.games.drawing import INK
from coplay.reports import charts
from coplay.reports.results import console_for_tables, print_json

ENDINGS = (".png", ".svg", ".pdf")
MOST_NUMBERS = 12  # with more players than this, cells are too small for words


def print_cross_play(result: CrossPlay, as_json: bool) -> None:
    """The matrix: the focal player's reward with its error, and what the others got."""
    if as_json:
        print_json(result.as_json())
        return
    table = Table(
        title=f"{result.game}: reward of one player (rows) among others (columns) / of the others, "
        f"{result.episodes} episodes each"
    )
    table.add_column("player")
    for name in result.players:
        table.add_column(name, justify="right", overflow="fold")
    for row, name in enumerate(result.players):
        cells = [
            f"{result.reward[row, column]:.2f} ±{result.stderr[row, column]:.2f} / "
            f"{result.others[row, column]:.2f} ±{result.others_stderr[row, column]:.2f}"
            for column in range(len(result.players))
        ]
        table.add_row(name, *cells)
    console_for_tables().print(table)


def check_picture(path: Path) -> None:
    """An error if no picture can be written under this name."""
    if path.suffix not in ENDINGS:
        raise UserError(f"--out {path}: a picture ends in {', '.join(ENDINGS)}")


def write_heat_map(path: str | os.PathLike[str], result: CrossPlay) -> None:
    """A picture (by the ending of `path`: PNG, SVG, PDF) of the matrix: the focal player's reward,
    and the others'. The file appears whole or not at all."""
    count = len(result.players)
    side = max(3.2, 0.8 * count)
    figure = charts.new_figure(2 * side + 2.5, side + 1.6, roomy=True)
    left, right = figure.subplots(1, 2, sharey=True)
    both = np.stack([result.reward, result.others])
    limits = (float(both.min()), float(both.max()))
    image = _matrix(left, result, result.reward, "reward of the focal player", limits)
    _matrix(right, result, result.others, "mean reward of the others", limits)
    left.set_ylabel("focal player, in one seat", color=INK)
    left.set_yticks(range(count), result.players)
    bar = figure.colorbar(image, ax=[left, right], shrink=0.8)
    bar.outline.set_visible(False)
    figure.suptitle(f"{result.game}: cross-play, {result.episodes} episodes per cell", color=INK)
    charts.save(figure, path)


def _matrix(
    axes: Axes, result: CrossPlay, values: np.ndarray, title: str, limits: tuple[float, float]
) -> AxesImage:
    image = axes.imshow(values, cmap="cividis", vmin=limits[0], vmax=limits[1])
    axes.set_title(title, fontsize=11, color=INK)
    axes.set_xlabel("player in all the other seats", color=INK)
    axes.set_xticks(range(len(values)), result.players, rotation=45, ha="right")
    axes.tick_params(length=0, colors=INK, labelsize=9)
    axes.spines[:].set_visible(False)
    middle = sum(limits) / 2
    for row, column in np.ndindex(values.shape) if len(values) <= MOST_NUMBERS else ():
        value = values[row, column]
        axes.text(
            column,
            row,
            f"{value:.2f}",
            ha="center",
            va="center",
            fontsize=9,
            color="white" if value < middle else "black",
        )
    return image
