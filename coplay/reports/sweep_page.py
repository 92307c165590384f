"""What a sweep leaves beside its runs: sweep.csv and its page, index.html."""

import html
import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from coplay.core.reading import shown_in_line
from coplay.games.drawing import FAINT_INK, INK
from coplay.reports import charts, page
from coplay.reports.sweep_table import ranked, result_words, value_words
from coplay.sweeps.folder import SweepFolder, SweepState, Trial
from coplay.sweeps.space import shown_value
from coplay.training.records import read_rows

BEST = 5
"""Trials whose curves are drawn."""
POINTS = 200
"""Points of a curve."""
FEW = 12
"""Values of a field that a map shows as rows or columns; more are drawn as points."""
BY_WORTH = ListedColormap(colormaps["viridis_r"](np.linspace(0.42, 1, 256)), name="by worth")
"""From the worst to the best, which is dark; the worst is seen on white, too."""
MOST_MAPS = 15


def write_sweep(state: SweepState, folder: SweepFolder) -> None:
    """Writes the table and the page."""
    paths = [one.path for one in state.space]
    titles = ["trial", *paths, "state", "objective", "low", "high", "steps", "seconds"]
    seeds = max((len(one.values) for one in state.trials), default=0)
    titles += [f"seed_{state.config.run.seed + index}" for index in range(seeds)]
    charts.write_csv(
        folder.path / "sweep.csv",
        titles,
        (
            [
                one.name,
                *(shown_in_line(_plain(one.setting[path])) for path in paths),
                one.state,
                one.value,
                *(one.interval or (None, None)),
                one.steps,
                f"{one.seconds:.3f}",
                *one.values,
            ]
            for one in state.trials
        ),
    )
    words = result_words(state)
    parts = [page.paragraph(words[0], "verdict"), *map(page.paragraph, words[1:])]
    parts += _repeat(state, folder)
    done = [one for one in state.trials if one.state == "finished" and one.value is not None]
    parts += _pictures(state, folder, done) if len(done) > 1 else []
    parts += _table(state)
    if best := state.best():
        again = folder.best if state.confirmed is not None else folder.run(best)
        parts.append(page.link_to_run(folder.path, str(again)))
    title = f"Sweep: {state.config.player} on {state.config.game_name}"
    page.write_page(folder.path / "index.html", title, parts)


def _plain(value: Any) -> str:
    """A value with all its digits."""
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _repeat(state: SweepState, folder: SweepFolder) -> list[str]:
    """The command that repeats the best setting."""
    best = state.best()
    if best is None:
        return []
    setting = folder.setting(best.name)
    command = f"coplay train {state.config.player} --config {setting} --out runs/best"
    return [
        page.heading("Run the best setting yourself"),
        f"<p><code>{html.escape(shown_in_line(command))}</code></p>",
    ]


def _table(state: SweepState) -> list[str]:
    """All trials, the best first."""
    paths = [one.path for one in state.space]
    rows = [
        (
            one.name,
            *(shown_in_line(shown_value(one.setting[path])) for path in paths),
            one.state,
            value_words(one),
            str(len(one.values) or ""),
            f"{one.seconds:.1f}" if one.seconds else "",
        )
        for one in ranked(state)
    ]
    title = f"{state.sweep.objective} (95 % interval)"
    parts = [
        page.heading("All trials"),
        page.table(("trial", *paths, "state", title, "seeds", "seconds"), rows),
        page.paragraph(
            "The interquartile mean over seeds with its bootstrap interval. A pruned trial has the "
            "last evaluation before it was stopped."
        ),
    ]
    for one in state.trials:
        if one.state == "failed":
            last = one.words.splitlines()[-1] if one.words else "no reason is known"
            parts.append(page.paragraph(f"Trial {one.name} failed: {shown_in_line(last)}"))
    return parts


def _pictures(state: SweepState, folder: SweepFolder, done: Sequence[Trial]) -> list[str]:
    drawn: list[tuple[str, Figure, str]] = []
    shares = importance(state, done)
    if shares:
        drawn.append(
            (
                "Importance of the fields",
                draw_importance(shares),
                "The share of the variance between trials that the values of one field alone "
                "explain, corrected for the number of values. What is left is due to several "
                "fields together, and to chance.",
            )
        )
    drawn.append(
        (
            "All settings",
            draw_parallel(state, done),
            "A line for each trial, from field to field to the objective; dark is better.",
        )
    )
    pairs = list(itertools.combinations([one.path for one in state.space], 2))
    for one, other in pairs[:MOST_MAPS]:
        drawn.append(
            (
                f"{one} and {other}",
                draw_map(state, done, one, other),
                f"{state.sweep.objective} over both fields, the mean over all other fields; dark "
                "is better.",
            )
        )
    if curves := _curves(state, folder):
        drawn.append(
            (
                f"Learning curves of the best {len(curves)}",
                draw_curves(curves),
                "Team means, over the seeds: evaluations if there are any, else training episodes.",
            )
        )
    parts: list[str] = []
    for number, (title, figure, text) in enumerate(drawn):
        path = folder.path / f"picture-{number:02d}.png"
        charts.save(figure, path)
        parts += charts.shown(path, title, text)
    return parts


# --- figures -----------------------------------------------------------------------------------


def importance(state: SweepState, done: Sequence[Trial]) -> dict[str, float]:
    """Field -> the share of the variance between trials that its values explain (epsilon squared).

    With n trials in k groups, 1 - (within / (n - k)) / (total / (n - 1)), at least 0. Values of a
    range are grouped into quarters. Fields for which n is not above k are left out.
    """
    values = np.array([one.value for one in done], float)
    total = float(((values - values.mean()) ** 2).sum())
    found = {}
    for field in state.space:
        groups = _groups([one.setting[field.path] for one in done], field.listed)
        n, k = len(values), len(set(groups))
        if total <= 0 or n <= k or k < 2:
            continue
        within = 0.0
        for group in set(groups):
            mine = values[[index for index, own in enumerate(groups) if own == group]]
            within += float(((mine - mine.mean()) ** 2).sum())
        found[field.path] = max(0.0, 1 - (within / (n - k)) / (total / (n - 1)))
    return found


def _groups(values: Sequence[Any], listed: bool) -> list[str]:
    """The group of each value."""
    if listed or len({str(value) for value in values}) <= 4:
        return [str(value) for value in values]
    limits = np.quantile(np.array(values, float), [0.25, 0.5, 0.75])
    return [str(int(np.searchsorted(limits, float(value)))) for value in values]


def draw_importance(shares: dict[str, float]) -> Figure:
    """A bar for each field, the most important above."""
    order = sorted(shares, key=lambda path: shares[path])
    figure, (axes,) = charts.panels(1, height=0.9 + 0.4 * len(order), grid=False)
    axes.barh(range(len(order)), [shares[path] for path in order], color=charts.colour(0))
    axes.set_yticks(range(len(order)), order)
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of the variance", color=INK)
    return figure


def draw_parallel(state: SweepState, done: Sequence[Trial]) -> Figure:
    """Parallel coordinates: an axis for each field and one for the objective."""
    paths = [one.path for one in state.space]
    places = [_axis(state, done, path) for path in paths]
    values = np.array([one.value for one in done], float)
    shade = _shade(values, state.sweep.minimise)
    objective, ticks = _scaled(values, False)
    figure, (axes,) = charts.panels(1, width=max(6.0, 2.2 * (len(paths) + 1)), height=4.4)
    axes.grid(visible=False)
    for index in np.argsort(shade):  # the best above the others
        heights = [places[column][0][index] for column in range(len(paths))] + [objective[index]]
        axes.plot(range(len(paths) + 1), heights, color=BY_WORTH(shade[index]), linewidth=1.6)
    for column, (_, marks) in enumerate([*places, (objective, ticks)]):
        axes.axvline(column, color=FAINT_INK, linewidth=1)
        for height, text in marks:
            axes.annotate(
                text,
                (column, height),
                xytext=(4, 0),
                textcoords="offset points",
                fontsize=8,
                color=INK,
                va="center",
                bbox={"boxstyle": "square,pad=0.15", "facecolor": "white", "edgecolor": "none"},
            )
    axes.set_xticks(range(len(paths) + 1), [*paths, state.sweep.objective])
    axes.set_xlim(-0.1, len(paths) + 0.45)
    axes.set_yticks([])
    return figure


Marks = list[tuple[float, str]]


def _axis(state: SweepState, done: Sequence[Trial], path: str) -> tuple[np.ndarray, Marks]:
    """Where the values of a field lie on an axis from 0 to 1, and its marks."""
    field = next(one for one in state.space if one.path == path)
    values = [one.setting[path] for one in done]
    if field.listed:
        known = [shown_value(value) for value in field.values]
        step = 1 / max(1, len(known) - 1)
        place = {text: index * step for index, text in enumerate(known)}
        marks = [(place[text], text) for text in known]
        return np.array([place[shown_value(value)] for value in values]), marks
    return _scaled(np.array(values, float), field.scale == "log")


def _scaled(values: np.ndarray, logarithmic: bool) -> tuple[np.ndarray, Marks]:
    """Numbers on an axis from 0 to 1, with marks at both ends."""
    plain = np.log(values) if logarithmic else values
    low, high = float(plain.min()), float(plain.max())
    size = high - low or 1.0
    ends = [math.exp(x) if logarithmic else x for x in (low, high)]
    marks = [(0.0, f"{ends[0]:.3g}"), (1.0, f"{ends[1]:.3g}")]
    return (plain - low) / size, marks[:1] if high == low else marks


def _shade(values: np.ndarray, minimise: bool) -> np.ndarray:
    """0 of the worst to 1 of the best."""
    signed = -values if minimise else values
    return (signed - signed.min()) / ((signed.max() - signed.min()) or 1.0)


def draw_map(state: SweepState, done: Sequence[Trial], one: str, other: str) -> Figure:
    """The objective over two fields: cells where both have few values, else points."""
    rows, columns = (_known(state, done, path) for path in (one, other))
    figure, (axes,) = charts.panels(1, width=6.4, height=4.4)
    axes.grid(visible=False)
    if len(rows) <= FEW and len(columns) <= FEW:
        cells = np.full((len(rows), len(columns)), np.nan)
        for (i, row), (j, column) in itertools.product(enumerate(rows), enumerate(columns)):
            mine = [
                trial.value
                for trial in done
                if shown_value(trial.setting[one]) == row
                and shown_value(trial.setting[other]) == column
            ]
            if mine:
                cells[i, j] = np.mean(np.array(mine, float))
        whole = "viridis" if state.sweep.minimise else "viridis_r"  # dark is better
        drawn = axes.imshow(cells, cmap=whole, aspect="auto", origin="lower")
        for (i, j), value in np.ndenumerate(cells):
            if np.isfinite(value):
                ink = charts.ink_on(drawn.to_rgba(value))
                axes.annotate(f"{value:.3g}", (j, i), ha="center", va="center", color=ink)
        axes.set_yticks(range(len(rows)), rows)
        axes.set_xticks(range(len(columns)), columns)
        figure.colorbar(drawn, ax=axes, label=state.sweep.objective)
    else:
        heights, row_marks = _axis(state, done, one)
        places, column_marks = _axis(state, done, other)
        values = np.array([trial.value for trial in done], float)
        colours = BY_WORTH.reversed() if state.sweep.minimise else BY_WORTH
        points = axes.scatter(places, heights, c=values, cmap=colours, s=60)
        axes.set_yticks(*map(list, zip(*row_marks, strict=True)))
        axes.set_xticks(*map(list, zip(*column_marks, strict=True)))
        figure.colorbar(points, ax=axes, label=state.sweep.objective)
    axes.set_ylabel(one, color=INK)
    axes.set_xlabel(other, color=INK)
    return figure


def _known(state: SweepState, done: Sequence[Trial], path: str) -> list[str]:
    """The values of a field as texts, in order."""
    field = next(one for one in state.space if one.path == path)
    if field.listed:
        return [shown_value(value) for value in field.values]
    return [shown_value(value) for value in sorted({one.setting[path] for one in done})]


def _curves(state: SweepState, folder: SweepFolder) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Trial -> steps and team means over seeds, of the best that are finished."""
    found = {}
    for one in [trial for trial in ranked(state) if trial.state == "finished"][:BEST]:
        curve = _curve(folder.run(one))
        if len(curve[0]):
            setting = " ".join(shown_value(value) for value in one.setting.values())
            found[f"{one.name}: {shown_in_line(setting)}"] = curve
    return found


def _curve(run: Path) -> tuple[np.ndarray, np.ndarray]:
    rows = read_rows(run / "evaluations.jsonl") or read_rows(run / "metrics.jsonl")
    by_step: dict[int, list[float]] = {}
    for row in rows:
        if isinstance(row.get("team_mean"), int | float) and isinstance(row.get("step"), int):
            by_step.setdefault(row["step"], []).append(float(row["team_mean"]))
    steps = sorted(by_step)
    means = [float(np.mean(by_step[step])) for step in steps]
    parts = np.array_split(np.arange(len(steps)), min(POINTS, max(1, len(steps))))
    return (
        np.array([steps[part[-1]] for part in parts if len(part)]),
        np.array([np.mean([means[index] for index in part]) for part in parts if len(part)]),
    )


def draw_curves(curves: dict[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
    figure, (axes,) = charts.panels(1, height=4.4)
    for index, (label, (steps, values)) in enumerate(curves.items()):
        marker = "o" if len(steps) == 1 else None
        axes.plot(steps, values, color=charts.colour(index), label=label, marker=marker)
    axes.set_xlabel("step", color=INK)
    axes.set_ylabel("reward per episode, mean over seats", color=INK)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    charts.legend_beside(axes)
    return figure
