"""Learning curves: the team's and every seat's reward over training, over one or many seeds."""

import math
import os
import textwrap
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from coplay.core.errors import UserError
from coplay.games.drawing import FAINT_INK, INK, seat_colour
from coplay.matches.statistics import bootstrap_interval, iqm
from coplay.reports import charts

WIDTH, HEIGHT = 9.0, 5.4  # inches of a picture


def learning_curve(
    path: str | os.PathLike[str],
    rows: Sequence[Mapping[str, Any]],
    seats: int,
    title: str,
    references: Mapping[str, float] | None = None,
) -> None:
    """Writes a picture (by the ending of `path`: PNG, SVG, PDF) of the rewards over training.

    The team mean is bold and every seat has its own thin line in its colour, because a mean over
    seats hides a seat that does not learn. With several seeds the bold line is the interquartile
    mean over the seeds of each step, with its 95 % bootstrap interval as a band, and the thin lines
    are means over the seeds. The file appears whole or not at all.

    rows: as in a run's metrics.jsonl, in any order, with the keys "step", "seed" (one seed if
        absent), "team_mean" and "reward/seat_0" ... "reward/seat_<seats - 1>". What is absent, null
        or not finite is left out.
    references: label -> value of horizontal lines to compare with.
    """
    team = _by_step(rows, "team_mean")
    of_seat = [_by_step(rows, f"reward/seat_{seat}") for seat in range(seats)]
    if not team and not any(of_seat):
        raise UserError(
            "there is nothing to draw a learning curve from: no row has a step and a finite "
            "team_mean or reward/seat_..."
        )
    seeds = len({seed for line in [team, *of_seat] for runs in line.values() for seed in runs})

    figure = charts.new_figure(WIDTH, HEIGHT, roomy=True)
    axes = figure.add_subplot()
    for seat, values in enumerate(of_seat):
        means = {step: float(np.mean(list(runs.values()))) for step, runs in values.items()}
        _line(axes, means, color=seat_colour(seat), linewidth=1.3, alpha=0.9, label=f"seat {seat}")
    middle = {step: iqm(list(runs.values())) for step, runs in team.items()}
    note = "one seed"
    if seeds > 1:
        note = f"{seeds} seeds: interquartile mean of the team with its 95 % bootstrap interval, "
        note += "means of the seats"
        band = [bootstrap_interval(list(runs.values())) for runs in team.values()]
        low, high = zip(*band, strict=True) if band else ((), ())
        axes.fill_between(list(team), low, high, color=INK, alpha=0.16, linewidth=0, zorder=1.8)
    _line(axes, middle, color=INK, linewidth=2.8, label="team mean", zorder=3)

    for value in (references or {}).values():
        axes.axhline(value, color=FAINT_INK, linewidth=1.1, linestyle=(0, (5, 3)), zorder=1.5)
    _style(figure, axes, title, note)
    _name_references(axes, references or {})
    charts.save(figure, path)


def _by_step(rows: Sequence[Mapping[str, Any]], key: str) -> dict[float, dict[Any, float]]:
    """step -> seed -> the last finite value logged there, in the order of the steps."""
    found: defaultdict[float, dict[Any, float]] = defaultdict(dict)
    for row in rows:
        step, value = _finite(row.get("step")), _finite(row.get(key))
        if step is not None and value is not None:
            found[step][row.get("seed", 0)] = value
    return dict(sorted(found.items()))


def _finite(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _line(axes: Axes, points: Mapping[float, float], **style: Any) -> None:
    # A single point would be an invisible line.
    marker = "o" if len(points) == 1 else None
    axes.plot(list(points), list(points.values()), marker=marker, solid_capstyle="round", **style)


def _style(figure: Figure, axes: Axes, title: str, note: str) -> None:
    title = textwrap.fill(title, 72)
    axes.set_title(title, loc="left", fontsize=14, fontweight="bold", color=INK, pad=26)
    axes.annotate(
        note,
        (0, 1),
        xycoords="axes fraction",
        xytext=(0, 9),
        textcoords="offset points",
        fontsize=10,
        color=FAINT_INK,
    )
    axes.set_xlabel("step", fontsize=11, color=INK)
    axes.set_ylabel("reward per episode", fontsize=11, color=INK)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    charts.make_plain(axes, labelsize=10, length=3)
    axes.margins(x=0.01, y=0.06)
    handles, labels = axes.get_legend_handles_labels()
    order = [len(labels) - 1, *range(len(labels) - 1)]  # the team first
    charts.legend_below(
        figure,
        [handles[i] for i in order],
        [labels[i] for i in order],
        ncols=min(len(labels), 8),
        columnspacing=1.4,
    )


def _name_references(axes: Axes, references: Mapping[str, float]) -> None:
    """Names at the right of the lines, moved apart where lines lie close together."""
    if not references:
        return
    low, high = axes.get_ylim()
    apart = (high - low) * 0.055  # about the height of a line of words
    place = -math.inf
    for label, value in sorted(references.items(), key=lambda item: item[1]):
        place = max(value, place + apart)
        axes.annotate(
            f"{label} {value:g}",
            (1, place),
            xycoords=("axes fraction", "data"),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=10,
            color=FAINT_INK,
            annotation_clip=False,
        )
