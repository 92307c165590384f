"""Schelling diagrams to look at: a table on the terminal, and a picture."""

import os

import numpy as np
from rich.table import Table

from coplay.evaluation.schelling import Schelling
from coplay.games.drawing import INK, SEAT_COLOURS
from coplay.reports import charts
from coplay.reports.results import console_for_tables, print_json


def print_schelling(result: Schelling, as_json: bool) -> None:
    """One row for each number of other cooperators."""
    if as_json:
        print_json(result.as_json())
        return
    table = Table(title=f"{result.game}: reward per episode, {result.episodes} episodes each")
    table.add_column("others that cooperate", justify="right")
    table.add_column(f"cooperating ({result.cooperator})", justify="right")
    table.add_column(f"defecting ({result.defector})", justify="right")
    rows = zip(
        result.cooperate,
        result.cooperate_stderr,
        result.defect,
        result.defect_stderr,
        strict=True,
    )
    for others, (kind, kind_error, greedy, greedy_error) in enumerate(rows):
        table.add_row(
            str(others), f"{kind:.2f} ±{kind_error:.2f}", f"{greedy:.2f} ±{greedy_error:.2f}"
        )
    console_for_tables().print(table)


def draw_schelling(path: str | os.PathLike[str], result: Schelling) -> None:
    """A picture (by the ending of `path`: PNG, SVG, PDF). The file appears whole or not at all."""
    figure, (axes,) = charts.panels(1, width=6.4, height=4.4)
    others = np.arange(len(result.defect))
    cooperating = f"cooperating: {result.cooperator}", result.cooperate, result.cooperate_stderr
    defecting = f"defecting: {result.defector}", result.defect, result.defect_stderr
    # Side by side, so that of two equal numbers neither hides the other.
    for place, colour, (name, mean, error) in (
        (-0.03, SEAT_COLOURS[0], cooperating),
        (0.03, SEAT_COLOURS[5], defecting),
    ):
        reach = 1.96 * error
        axes.errorbar(others + place, mean, reach, color=colour, marker="o", capsize=3, label=name)
    axes.set_xticks(others)
    axes.set_xlabel("other players that cooperate", color=INK)
    axes.set_ylabel("reward per episode", color=INK)
    axes.set_title(
        f"{result.game}: what cooperating and defecting bring\n"
        f"{result.episodes} episodes for each number of cooperators; bars: 95 % intervals",
        fontsize=10,
        color=INK,
    )
    charts.legend_below(figure, *axes.get_legend_handles_labels())
    charts.save(figure, path)
