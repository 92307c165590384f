"""Adaptation as a table, as curves, and as one picture of a suite."""

import itertools
import math
import os
import textwrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from rich.table import Table

from coplay.games.drawing import FAINT_INK, INK, seat_colour
from coplay.reports import charts
from coplay.reports.results import console_for_tables

PANEL = (4.5, 3.0)  # inches of each panel of a suite
ALONE = (9.0, 5.4)  # inches of a picture of one set
SMOOTH = 10  # episodes of the bold line's mean
COURSES = {"belief": "belief in the true goal", "accuracy": "actions predicted"}
"""What players expect of others -> what it is called."""


def set_name(against: str) -> str:
    """A set of co-players in a few letters: `3 x nh` for `nh,nh,nh`."""
    entries = against.split(",")
    return f"{len(entries)} x {entries[0]}" if len(set(entries)) == 1 else ", ".join(entries)


def repetitions(result: dict[str, Any]) -> str:
    """How often a player was tried, and where."""
    if result.get("team", 1) > 1:
        return f"{result['seeds']} repetitions in all {result['team']} seats of {result['side']}"
    side = f" of {result['side']}" if result.get("side") else ""
    plural = "s" * (result["seats"] > 1)
    return f"{result['seeds']} repetitions in each of {result['seats']} seat{plural}{side}"


def print_adaptations(results: list[dict[str, Any]]) -> None:
    """One table; a row for each set of co-players."""
    first = results[0]
    changing = [
        name
        for name, does in (
            ("memory", True),
            ("policy", first["learns"]["policy"]),
            ("opponent models", first["learns"]["opponent_models"]),
        )
        if does
    ]
    table = Table(
        title=f"{first['player']}: {repetitions(first)}, "
        f"{first['steps']} steps, score of the last {first['last']}; "
        f"what changes: {', '.join(changing)}"
    )
    table.add_column("co-players", overflow="fold")
    titles = ("score", "95 % interval", "random", "best response", "normalised")
    for title in (*titles, "interval", "episodes to 90 %", "robust", "steps to 90 %"):
        table.add_column(title, justify="right")
    if any(result["belief"] for result in results):
        table.add_column("belief", justify="right")
    if any(result["accuracy"] for result in results):
        table.add_column("predicted", justify="right")
    for result in results:
        row = [
            set_name(result["against"]),
            _number(result["score"]),
            _span(result["interval"]),
            *(_number(result[name]) for name in ("random", "best_response")),
            _number(result["normalised"]),
            _span(result["normalised_interval"]),
            _count(result["episodes_to_90"]),
            _count(result.get("episodes_to_90_robust")),
            _count(result["steps_to_90"]),
        ]
        for name in ("belief", "accuracy"):
            if any(other[name] for other in results):
                row.append(_share(result[name]) if result[name] else "-")
        table.add_row(*row)
    console_for_tables().print(table)


def print_by_episode(result: dict[str, Any]) -> None:
    """How a meeting went on: reward, belief and prediction in the first episodes, then in groups of
    twice as many each, beside random play and the best response."""
    table = Table(title=f"{result['player']} among {set_name(result['against'])}, by episode")
    table.add_column("episode")
    table.add_column("reward", justify="right")
    courses = {name: result[name] for name in COURSES if result[name]}
    for name in courses:
        table.add_column(COURSES[name], justify="right")
    for first, end in episode_groups(len(result["curve"])):
        row = [f"{first + 1}" if end == first + 1 else f"{first + 1} to {end}"]
        row.append(f"{np.mean(result['curve'][first:end]):.2f}")
        for course in courses.values():
            known = [value for value in course["by_episode"][first:end] if value is not None]
            row.append(f"{np.mean(known):.2f}" if known else "-")
        table.add_row(*row)
    table.add_section()
    for name in ("random", "best_response"):
        if result[name] is not None:
            table.add_row(name.replace("_", " "), f"{result[name]:.2f}", *[""] * len(courses))
    console_for_tables().print(table)


def episode_groups(count: int) -> list[tuple[int, int]]:
    """[first, end) of groups of episodes: five alone, then groups that double."""
    ends = [*range(min(count, 5) + 1)]
    while ends[-1] < count:
        ends.append(min(2 * ends[-1], count))
    return list(itertools.pairwise(ends))


def _share(course: dict[str, Any]) -> str:
    """A share in all, and the best possible one if it is known."""
    best = f" of {course['best']:.3f}" if "best" in course else ""
    return _number(course["mean"]) + best


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def _span(interval: list[float] | None) -> str:
    return "-" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"


def draw_adaptation(path: str | os.PathLike[str], result: dict[str, Any]) -> None:
    """A picture of one set: reward by episode with its interval, beside random and best response;
    below it belief and accuracy, for players that have them."""
    courses = {name: result[name] for name in ("belief", "accuracy") if result[name]}
    width, height = ALONE
    figure = charts.new_figure(width, height + 2 * bool(courses), roomy=True)
    heights = [5, 2] if courses else [1]
    panels = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights, sharex=True)
    _curve(panels[0, 0], result)
    title = textwrap.fill(f"{result['player']} against {set_name(result['against'])}", 72)
    panels[0, 0].set_title(title, loc="left", fontsize=14, fontweight="bold", color=INK)
    if courses:
        _courses(panels[1, 0], courses)
    panels[-1, 0].set_xlabel("episode", fontsize=11, color=INK)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    if courses:
        more = panels[1, 0].get_legend_handles_labels()
        handles, labels = handles + more[0], labels + more[1]
    charts.legend_below(figure, handles, labels, ncols=min(len(labels), 4))
    charts.save(figure, path)


def draw_suite(path: str | os.PathLike[str], results: list[dict[str, Any]]) -> None:
    """A picture of a suite: a panel for each set."""
    columns = min(3, len(results))
    rows = math.ceil(len(results) / columns)
    figure = charts.new_figure(columns * PANEL[0], rows * PANEL[1] + 0.6, roomy=True)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, result in zip(panels, results, strict=False):
        _curve(axes, result)
        share = result["normalised"]
        note = "" if share is None else f"  ({share:.2f} normalised)"
        title = textwrap.fill(set_name(result["against"]) + note, 48)
        axes.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK)
        axes.set_xlabel("episode", fontsize=10, color=INK)
    for axes in panels[len(results) :]:
        axes.set_visible(False)
    figure.suptitle(results[0]["player"], x=0.01, ha="left", fontsize=14, color=INK)
    charts.legend_below(figure, *panels[0].get_legend_handles_labels())
    charts.save(figure, path)


def _curve(axes: Axes, result: dict[str, Any]) -> None:
    curve = np.array(result["curve"])
    band = np.array(result["curve_interval"]).reshape(-1, 2)
    episodes = np.arange(len(curve))
    colour = seat_colour(0)
    axes.fill_between(episodes, band[:, 0], band[:, 1], color=colour, alpha=0.18, linewidth=0)
    axes.plot(episodes, curve, color=colour, linewidth=0.7, alpha=0.6, label="mean of repetitions")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(curve) >= SMOOTH:
        smooth = np.convolve(curve, np.full(SMOOTH, 1 / SMOOTH), mode="valid")
        axes.plot(
            episodes[: len(smooth)],
            smooth,
            color=INK,
            linewidth=2.2,
            label=f"of the following {SMOOTH} episodes",
        )
    styles = {"random": (0, (1, 2)), "best_response": (0, (5, 3))}
    for name, style in styles.items():
        if result[name] is not None:
            label = f"{name.replace('_', ' ')}"
            axes.axhline(result[name], color=FAINT_INK, linewidth=1.3, linestyle=style, label=label)
    axes.set_ylabel("reward", fontsize=10, color=INK)
    _plain(axes)


def _courses(axes: Axes, courses: dict[str, dict[str, Any]]) -> None:
    for seat, (name, course) in enumerate(courses.items()):
        values = [math.nan if value is None else value for value in course["by_episode"]]
        axes.plot(values, color=seat_colour(seat + 1), linewidth=1.6, label=COURSES[name])
    axes.set_ylim(0, 1.02)
    axes.set_ylabel("share", fontsize=10, color=INK)
    _plain(axes)


def _plain(axes: Axes) -> None:
    charts.make_plain(axes, length=3)
    axes.margins(x=0.01, y=0.06)
