"""What a comparison leaves: its page, comparison.json, marl_eval.json, curves and profiles."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter
from rich.table import Table

from coplay.core.files import write_json
from coplay.evaluation.compare import NON_STATIONARITY, ComparedRun, compare, marl_eval
from coplay.games.drawing import INK, seat_colour
from coplay.reports import charts, page
from coplay.reports.results import console_for_tables, print_json


def write_comparison(out: Path, runs: Sequence[ComparedRun]) -> dict[str, Any]:
    """Writes everything and returns the comparison."""
    out.mkdir(parents=True, exist_ok=True)
    result = compare(runs)
    write_json(out / "comparison.json", result)
    write_json(out / "marl_eval.json", marl_eval(runs))
    parts = [page.paragraph(text, "verdict") for text in _words(result)]
    for game, curves in result["curves"].items():
        name = re.sub(r"[^A-Za-z0-9_.]+", "-", game)  # a game's name may be from a file
        profiles = result["games"][game]["team_mean"]["profiles"]
        drawn = {
            out / f"curves-{name}.png": (draw_curves(game, curves), f"{game}: learning curves"),
            out / f"profiles-{name}.png": (draw_profiles(game, profiles), f"{game}: profiles"),
        }
        for path, (figure, title) in drawn.items():
            charts.save(figure, path)
            parts += [page.heading(title), page.picture(path, title)]
    parts += [part for game, scores in result["games"].items() for part in _tables(game, scores)]
    parts += [page.link_to_run(out, str(run.path)) for run in runs]
    page.write_page(out / "index.html", f"Comparison of {len(runs)} runs", parts)
    return result


def _words(result: dict[str, Any]) -> list[str]:
    """Who is better, as far as it is known, in a sentence for each pair; and who has only one seed,
    of which nothing is known."""
    found = []
    for game, scores in result["games"].items():
        for pair in scores["team_mean"]["better"]:
            interval = _span(pair["interval"], 2)
            found.append(
                f"{game}: a seed of {pair['first']} is better than one of {pair['second']} with "
                f"probability {pair['probability']:.2f}, 95 % interval {interval}."
            )
        if words := _alone(scores["team_mean"]["runs"]):
            found.append(f"{game}: {words}")
    return found


def _alone(runs: dict[str, dict[str, Any]]) -> str:
    """What to say of runs with one seed; empty if there are none."""
    names = [label for label, row in runs.items() if row["interval"] is None]
    if not names:
        return ""
    return (
        f"{' and '.join(names)} trained one seed, so nothing tells how far others would lie from "
        "it: train with --seeds 5 to see who is better."
    )


def _columns(runs: dict[str, dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Titles and rows of a table of results. Seeds and intervals are left out where no run has
    several seeds."""
    several = any(row["interval"] is not None for row in runs.values())
    titles = ["run", "seeds", "interquartile mean", "95 % interval"] if several else ["run", "mean"]
    rows = [
        [label, str(row["seeds"]), f"{row['iqm']:.3f}", _span(row["interval"], 3)]
        if several
        else [label, f"{row['iqm']:.3f}"]
        for label, row in runs.items()
    ]
    return titles, rows


def _tables(game: str, scores: dict[str, Any]) -> list[str]:
    parts = []
    for score, found in scores.items():
        title = f"{game}: {score} in the final evaluation"
        parts += [page.heading(title), page.table(*_columns(found["runs"]))]
    return parts


def draw_curves(game: str, curves: dict[str, dict[str, list[float]]]) -> Figure:
    """Interquartile means over the seeds with their 95 % intervals."""
    figure, (axes,) = charts.panels(1, height=5.2)
    for index, (label, band) in enumerate(curves.items()):
        colour = seat_colour(index)
        if band["low"]:
            axes.fill_between(band["step"], band["low"], band["high"], color=colour, alpha=0.16)
        marker = "o" if len(band["step"]) == 1 else None
        axes.plot(band["step"], band["iqm"], color=colour, linewidth=2, label=label, marker=marker)
    several = any(band["low"] for band in curves.values())
    over = "interquartile mean over seeds, 95 % intervals" if several else "one seed of each"
    axes.set_title(f"{game}: {over}", loc="left", color=INK)
    axes.set_xlabel("step", color=INK)
    axes.set_ylabel("reward per episode, mean over seats", color=INK)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    charts.legend_beside(axes, fontsize=10)
    return figure


def draw_profiles(game: str, profiles: dict[str, Any]) -> Figure:
    """Performance profiles: which share of the seeds ends above each reward."""
    figure, (axes,) = charts.panels(1, height=4.2)
    for index, (label, shares) in enumerate(profiles["runs"].items()):
        axes.step(profiles["levels"], shares, where="post", color=seat_colour(index), label=label)
    axes.set_ylim(-0.02, 1.02)
    axes.set_title(f"{game}: seeds above a reward in the final evaluation", loc="left", color=INK)
    axes.set_xlabel("reward per episode, mean over seats", color=INK)
    axes.set_ylabel("share of the seeds", color=INK)
    charts.legend_beside(axes, fontsize=10)
    return figure


def print_comparison(result: dict[str, Any], out: Path, as_json: bool) -> None:
    """The tables, or everything as JSON."""
    if as_json:
        print_json(result | {"out": str(out)})
        return
    console = console_for_tables()
    for game, scores in result["games"].items():
        for score, found in scores.items():
            table = Table(title=f"{game}: {score} in the final evaluation")
            titles, rows = _columns(found["runs"])
            for name in titles:
                table.add_column(name, justify="left" if name == "run" else "right")
            for row in rows:
                table.add_row(*row)
            console.print(table)
            _print_better(console, found["better"])
        if words := _alone(scores["team_mean"]["runs"]):
            console.print(words, soft_wrap=True)
        _print_non_stationarity(console, game, result["non_stationarity"][game])
    if result["all_games"]:
        table = Table(title="all games: team_mean")
        for name in ("run", "interquartile mean", "95 % interval"):
            table.add_column(name, justify="left" if name == "run" else "right")
        for label, row in result["all_games"]["runs"].items():
            table.add_row(label, f"{row['iqm']:.3f}", _span(row["interval"], 3))
        console.print(table)
        _print_better(console, result["all_games"]["better"])
    console.print(f"all of it with curves and profiles: {out / 'index.html'}")


def _span(interval: list[float] | None, digits: int) -> str:
    if interval is None:
        return ""
    return " to ".join(f"{limit:.{digits}f}" for limit in interval)


def _print_better(console: Any, pairs: list[dict[str, Any]]) -> None:
    for pair in pairs:
        console.print(
            f"P({pair['first']} better than {pair['second']}) = {pair['probability']:.2f} "
            f"({_span(pair['interval'], 2)})"
        )


def _print_non_stationarity(console: Any, game: str, runs: dict[str, dict[str, float]]) -> None:
    """Measurements as rows and runs as columns; nothing if no run logged any."""
    names = [name for name in NON_STATIONARITY if any(name in found for found in runs.values())]
    if not names:
        return
    table = Table(title=f"{game}: non-stationarity, means of the last quarter of the run")
    table.add_column("measured")
    for label in runs:
        table.add_column(label, justify="right")
    for name in names:
        cells = [f"{found[name]:.4f}" if name in found else "" for found in runs.values()]
        table.add_row(name, *cells)
    console.print(table)
