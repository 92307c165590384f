"""Learning in every seat: one learner moved through the seats, and self-play over seeds.

Real training runs, kept in the audit's folder. Curves are cut into windows of equal length, and a
permutation test asks whether the seats' curves lie further apart than runs of one seat do. In a
game with sides, seats are compared within their side.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np

from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.evaluation.audits.checks import Check
from coplay.matches.statistics import permutation_p_value
from coplay.training.config import TrainConfig
from coplay.training.records import read_rows
from coplay.training.run import RunFolder
from coplay.training.trainer import Trainer, Watcher

FALSE_ALARM = 1e-3
"""Probability that a fair learner fails any of the tests of this file."""
METRICS = ("reward", "value_loss", "entropy", "kl")
"""Curves compared between seats, where the learner logs them."""
WINDOWS = 8
"""Parts into which a curve is cut."""


def plan_runs(
    config: TrainConfig, game: Game, among: str, out: Path
) -> list[tuple[RunFolder, TrainConfig]]:
    """The training runs of an audit: one learner in seat 0, 1, … among others, then self-play.

    A folder that holds another audit's run is an error; one of the same audit is gone on with.
    """
    run = config.run
    runs = []
    for seat in range(game.seats):
        entries = [config.player if other == seat else among for other in range(game.seats)]
        # Other seeds for every seat: the same ones would only repeat the exact comparison.
        of_seat = replace(run, seating=",".join(entries), seed=run.seed + (seat + 1) * run.seeds)
        runs.append((RunFolder(out / f"seat_{seat}"), replace(config, run=of_seat)))
    runs.append((RunFolder(out / "self_play"), config))
    for folder, wanted in runs:
        if folder.exists() and folder.read_config() != wanted:
            raise UserError(f"{folder.path} holds a run of another audit; choose another --out")
    return runs


def learning_checks(
    runs: list[tuple[RunFolder, TrainConfig]], game: Game, among: str, watcher: Watcher
) -> Iterator[Check]:
    """Train and compare; `runs` as planned."""
    sides = [side for side in game.sides if len(side) > 1]
    limit = FALSE_ALARM / (len(METRICS) + 1) / max(len(sides), 1)
    rows = []
    for number, (folder, config) in enumerate(runs, 1):
        seating = config.run.seating or "self-play"
        watcher.say(
            f"training run {number} of {len(runs)}: {seating}, {config.run.seeds} seeds x "
            f"{config.run.steps:,} steps"
        )
        watcher.work("training runs", number - 1, len(runs))
        if folder.read_summary() is None:
            Trainer(config, folder.path, watcher, resume=folder.exists()).run()
        rows.append(read_rows(folder.metrics_file))
    *moved, together = rows
    for side in sides:
        whose = "" if len(side) == game.seats else f", seats {', '.join(map(str, side))}"
        for metric in METRICS:
            curves = _stack([_curves(moved[seat], f"{metric}/seat_{seat}") for seat in side])
            if curves is not None:
                what = f"{metric.replace('_', ' ')} curves{whose}"
                name = f"one learner in every seat among {among}: {what}"
                yield _check(name, metric, curves, limit, paired=False)
        curves = _stack([_curves(together, f"reward/seat_{seat}") for seat in side])
        if curves is None:
            raise UserError("no episode ended in self-play: raise --steps")
        name = f"self-play: no seat better than another{whose}"
        yield _check(name, "reward", curves, limit, paired=True)


def _curves(rows: list[dict[str, Any]], name: str) -> np.ndarray | None:
    """[seed, window] means of a metric; None if it is not logged or a window is empty."""
    steps = sorted({row["step"] for row in rows})
    windows = min(WINDOWS, len(steps))
    place = {step: index * windows // len(steps) for index, step in enumerate(steps)}
    seeds = sorted({row["seed"] for row in rows})
    found: list[list[list[float]]] = [[[] for _ in range(windows)] for _ in seeds]
    for row in rows:
        value = row.get(name)
        if value is not None and np.isfinite(value):
            found[seeds.index(row["seed"])][place[row["step"]]].append(value)
    # Before the first episodes have ended there is no reward: those windows are left out for all.
    full = [w for w in range(windows) if all(of_seed[w] for of_seed in found)]
    if not full:
        return None
    return np.array([[np.mean(of_seed[w]) for w in full] for of_seed in found])


def _stack(curves: list[np.ndarray | None]) -> np.ndarray | None:
    """[seat, seed, window] of the windows that all seats have."""
    found = [curve for curve in curves if curve is not None]
    if len(found) < len(curves):
        return None
    windows = min(curve.shape[1] for curve in found)
    return np.stack([curve[:, -windows:] for curve in found])


def _check(name: str, metric: str, curves: np.ndarray, limit: float, paired: bool) -> Check:
    """curves: [seat, seed, window]; paired: the seats of a seed played together."""
    kind = "self_play" if paired else "one_learner"
    seats, seeds, _ = curves.shape
    p_value = permutation_p_value(curves, paired)
    last = ", ".join(f"{value:.4g}" for value in curves[..., -1].mean(axis=1))
    words = f"last window of seats 0, 1, …: {last}; p = {p_value:.2g} (counts below {limit:.2g})"
    if seeds < (fewest := fewest_seeds(seats, limit, paired)):
        words += f"; {seeds} seeds can show nothing, at least {fewest} are needed"
    return Check(
        name,
        "update",
        bool(p_value >= limit),
        words,
        exact=False,
        figures={"metric": metric, kind: curves.tolist(), "p_value": p_value},
    )


def fewest_seeds(seats: int, limit: float, paired: bool) -> int:
    """The fewest seeds with which the permutation test can fall below the limit at all: of all
    arrangements, those with whole groups exchanged lie equally far apart."""
    seeds = 1
    while True:
        arrangements = (
            factorial(seats) ** seeds
            if paired
            else factorial(seats * seeds) // factorial(seeds) ** seats
        )
        if factorial(seats) / arrangements < limit:
            return seeds
        seeds += 1
