"""What a comparison leaves: comparison.json, marl_eval.json, pictures of curves and profiles."""

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
from coplay.reports import charts
from coplay.reports.results import console_for_tables, print_json


def write_comparison(out: Path, runs: Sequence[ComparedRun]) -> dict[str, Any]:
    """Writes everything and returns the comparison."""
    out.mkdir(parents=True, exist_ok=True)
    result = compare(runs)
    write_json(out / "comparison.json", result)
    write_json(out / "marl_eval.json", marl_eval(runs))
    for game, curves in result["curves"].items():
        name = re.sub(r"[^A-Za-z0-9_.]+", "-", game)  # a game's name may be from a file
        charts.save(draw_curves(game, curves), out / f"curves-{name}.png")
        profiles = result["games"][game]["team_mean"]["profiles"]
        charts.save(draw_profiles(game, profiles), out / f"profiles-{name}.png")
    return result


def draw_curves(game: str, curves: dict[str, dict[str, list[float]]]) -> Figure:
    """Interquartile means over the seeds with their 95 % intervals."""
    figure, (axes,) = charts.panels(1, height=5.2)
    for index, (label, band) in enumerate(curves.items()):
        colour = seat_colour(index)
        if band["low"]:
            axes.fill_between(band["step"], band["low"], band["high"], color=colour, alpha=0.16)
        marker = "o" if len(band["step"]) == 1 else None
        axes.plot(band["step"], band["iqm"], color=colour, linewidth=2, label=label, marker=marker)
    axes.set_title(f"{game}: interquartile mean over seeds, 95 % intervals", loc="left", color=INK)
    axes.set_xlabel("step", color=INK)
    axes.set_ylabel("reward per episode, mean over seats", color=INK)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.legend(frameon=False)
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
    axes.legend(frameon=False)
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
            for name in ("run", "seeds", "interquartile mean", "95 % interval"):
                table.add_column(name, justify="left" if name == "run" else "right")
            for label, row in found["runs"].items():
                span = _span(row["interval"], 3)
                table.add_row(label, str(row["seeds"]), f"{row['iqm']:.3f}", span)
            console.print(table)
            _print_better(console, found["better"])
        _print_non_stationarity(console, game, result["non_stationarity"][game])
    if result["all_games"]:
        table = Table(title="all games: team_mean")
        for name in ("run", "interquartile mean", "95 % interval"):
            table.add_column(name, justify="left" if name == "run" else "right")
        for label, row in result["all_games"]["runs"].items():
            table.add_row(label, f"{row['iqm']:.3f}", _span(row["interval"], 3))
        console.print(table)
        _print_better(console, result["all_games"]["better"])
    console.print(f"curves, profiles, comparison.json and marl_eval.json are in {out}")


def _span(interval: list[float] | None, digits: int) -> str:
    if interval is None:
        return "none: one seed"
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
