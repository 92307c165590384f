"""The page of an adaptation: how a player did among co-players it did not know."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coplay.core.reading import shown_in_line
from coplay.reports import charts, page
from coplay.reports.adaptation import repetitions, set_name


def write_adaptation_page(
    out: Path, results: Sequence[dict[str, Any]], pictures: Sequence[tuple[Path, str, str]]
) -> Path:
    """Write index.html into the folder of an adaptation and return its path.

    results: one for each set of co-players. pictures: file, title, what it shows.
    """
    first = results[0]
    player = str(first["player"])
    parts = [
        page.paragraph(verdict(results), "verdict"),
        page.paragraph(
            f"{repetitions(first)}, of {first['steps']} steps each. The score is the mean reward "
            f"per episode of the last {first['last']} "
            "steps. Normalised: 0 is random play, 1 the best response that was trained."
        ),
        page.link_to_run(out, player),
    ]
    for path, title, words in pictures:
        parts += charts.shown(path, title, words)
    titles = ("co-players", "score", "95 % interval", "random", "best response", "normalised")
    parts += [
        page.heading("Results"),
        page.table(
            (*titles, "episodes to 90 %"),
            (
                (
                    shown_in_line(set_name(result["against"])),
                    charts.number(result["score"]),
                    _span(result["interval"]),
                    *(
                        charts.number(result[name])
                        for name in ("random", "best_response", "normalised", "episodes_to_90")
                    ),
                )
                for result in results
            ),
        ),
    ]
    # A run, and not a scripted player; co-players on sides have no short form.
    if parts[2] and not first.get("side"):
        least = min(results, key=_least)
        watch = ["coplay", "watch", player, "--against", str(least["against"])]
        parts += [
            page.heading("See what it believes, episode after episode"),
            page.command_line(shlex.join([*watch, "--episodes", "20", "--out", "replay.html"])),
        ]
    path = out / "index.html"
    page.write_page(path, f"Adaptation of {shown_in_line(player)}", parts)
    return path


def verdict(results: Sequence[dict[str, Any]]) -> str:
    """The result in a sentence."""
    known = [result for result in results if result["normalised"] is not None]
    if len(results) == 1:
        one = results[0]
        words = f"It gets {one['score']:.2f} per episode among {set_name(one['against'])}"
        if known:
            words += f", which is {_percent(one)} of the way from random play to the best "
            words += "response"
        if one["episodes_to_90"] is not None:
            words += f"; 90 % of it after {one['episodes_to_90']:.0f} episodes"
        return f"{words}."
    if not known:
        return f"{len(results)} sets of co-players, without a best response to measure by."
    worst = min(known, key=lambda result: result["normalised"])
    mean = sum(result["normalised"] for result in known) / len(known)
    return (
        f"Over {len(known)} sets of co-players it goes {100 * mean:.0f} % of the way from random "
        f"play to the best response. Worst: {_percent(worst)} among {set_name(worst['against'])}."
    )


def _least(result: dict[str, Any]) -> float:
    """By which the co-players are found with whom it does worst."""
    return result["score"] if result["normalised"] is None else result["normalised"]


def _percent(result: dict[str, Any]) -> str:
    return f"{100 * result['normalised']:.0f} %"


def _span(interval: list[float] | None) -> str:
    return "" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"
