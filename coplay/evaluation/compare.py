"""Runs beside each other: final results with intervals, learning curves, and who is better.

The unit is the seed of a run. Runs of the same game are compared; several games are several tasks
of one comparison. Two runs whose curves are equal number by number are refused: different
algorithms do not do that, so one of them was not called.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coplay.core.errors import UserError, see
from coplay.core.reading import read_field
from coplay.matches.statistics import (
    aggregate_iqm,
    bootstrap_interval,
    improvement_interval,
    iqm,
    performance_profile,
    probability_of_improvement,
    stratified_interval,
)
from coplay.training.records import read_rows
from coplay.training.run import RunFolder

POINTS = 40  # of a learning curve that was logged at every update
LEVELS = 51  # scores at which performance profiles are given
LATE = 0.75  # of a run: what is measured after that is what it is like in the end
NON_STATIONARITY = (
    "policy_shift_kl",
    "policy_shift_kl_joint",
    "policy_shift_ess",
    "policy_shift_others",
    "policy_shift_clip",
    "gradient_cosine",
    "explained_variance",
    "increment_norm",
    "increment_step",
    "diversity",
)
"""Metrics of how the agents' policies change under each other (`coplay/training/metrics.py`)."""


@dataclass(frozen=True)
class Curve:
    """One seed of a run. steps, values: [point]; seconds: when. evaluated: the values are those of
    evaluations, else of the training episodes. final: score name -> the final evaluation's mean.
    non_stationarity: those of `NON_STATIONARITY` that were logged -> mean over seats and late
    updates."""

    seed: int
    steps: np.ndarray
    values: np.ndarray
    seconds: np.ndarray
    evaluated: bool
    final: dict[str, float]
    non_stationarity: dict[str, float]


@dataclass(frozen=True)
class ComparedRun:
    """A run. label: its name in tables: its player, or its folder if that is not enough."""

    path: Path
    label: str
    player: str
    game: str
    curves: tuple[Curve, ...]

    def final(self, score: str) -> np.ndarray:
        """[seed]"""
        return np.array([curve.final[score] for curve in self.curves])


def load_runs(paths: Sequence[Path]) -> list[ComparedRun]:
    """The runs, or an error that says which cannot be compared and why."""
    if len(paths) < 2:
        raise UserError("a comparison needs at least two runs")
    folders = [RunFolder(path) for path in paths]
    configs = [folder.read_config() for folder in folders]
    kinds = [(config.player, config.game_name) for config in configs]
    runs = []
    for folder, config in zip(folders, configs, strict=True):
        name = config.player
        if kinds.count((name, config.game_name)) > 1:
            name = folder.path.name
        runs.append(
            ComparedRun(folder.path, name, config.player, config.game_name, _curves(folder, config))
        )
    labels = [(run.label, run.game) for run in runs]
    for run in runs:
        if labels.count((run.label, run.game)) > 1:
            raise UserError(f"two runs are called {run.label}: give their folders different names")
    refuse_identical(runs)
    return runs


def _curves(folder: RunFolder, config: Any) -> tuple[Curve, ...]:
    summary = folder.read_summary()
    if summary is None:
        raise UserError(
            f"{folder.path} is not finished; go on with: coplay train {config.player} --resume "
            f"{folder.path}"
        )
    rows = read_rows(folder.metrics_file)
    evaluations = read_rows(folder.evaluations_file)
    for row in (*rows, *evaluations):
        for name in ("step", "seed", "seconds"):
            read_field(row, name, float, str(folder.path))
        if row.get("team_mean") is not None:
            read_field(row, "team_mean", float, str(folder.path))
    curves = []
    for number in range(config.run.seeds):
        seed = config.run.seed + number
        mine = [row for row in (evaluations or rows) if row["seed"] == seed]
        mine = [row for row in mine if row.get("team_mean") is not None]
        last = _of_seed(folder, summary, number) if config.run.seeds > 1 else summary
        final = {"team_mean": last["team_mean"]} | last.get("scores", {})
        step, value, seconds = (
            np.array([row[name] for row in mine], float)
            for name in ("step", "team_mean", "seconds")
        )
        late = late_means([row for row in rows if row["seed"] == seed])
        curves.append(Curve(seed, step, value, seconds, bool(evaluations), final, late))
    return tuple(curves)


def _of_seed(folder: RunFolder, summary: dict[str, Any], number: int) -> dict[str, Any]:
    """What a summary says of one of several seeds."""
    seeds = summary.get("seeds", [])
    if number >= len(seeds):
        raise UserError(f"{folder.summary_file} speaks of {len(seeds)} seeds; the run has more")
    return seeds[number]


def late_means(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Those of `NON_STATIONARITY` that are in the rows of a seed's metrics, as means over seats and
    over the updates of the last quarter of the run."""
    last = max((row["step"] for row in rows), default=0)
    late = [row for row in rows if row["step"] > LATE * last]
    found = {}
    for name in NON_STATIONARITY:
        values = [
            value
            for row in late
            for metric, value in row.items()
            if metric.partition("/")[0] == name and isinstance(value, int | float)
        ]
        if values:
            found[name] = float(np.mean(values))
    return found


def refuse_identical(runs: Sequence[ComparedRun]) -> None:
    """An error if two runs of a game have a curve in common, number by number."""
    for index, run in enumerate(runs):
        for other in runs[index + 1 :]:
            if run.game != other.game:
                continue
            for mine in run.curves:
                for theirs in other.curves:
                    if same_series(mine.values, theirs.values):
                        raise UserError(
                            f"{run.path} (seed {mine.seed}) and {other.path} (seed {theirs.seed}) "
                            "have identical learning curves, number by number: the same program "
                            "ran twice, so what should tell them apart is never called. Put both "
                            f"through coplay audit wiring{see('how-to/audit')}"
                        )


def same_series(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two series are equal number by number; what never changes proves nothing."""
    length = min(len(one), len(other))
    if length < 3 or len(set(one[:length].tolist())) < 3:
        return False
    return bool(np.array_equal(one[:length], other[:length]))


def thinned(curve: Curve) -> tuple[np.ndarray, np.ndarray]:
    """Steps and values of a curve: evaluations as they are, training episodes as means of windows
    of equal numbers of points, at most `POINTS` of them."""
    count = len(curve.steps)
    if curve.evaluated or count <= POINTS:
        return curve.steps, curve.values
    parts = np.array_split(np.arange(count), POINTS)
    return (
        np.array([curve.steps[part[-1]] for part in parts]),
        np.array([curve.values[part].mean() for part in parts]),
    )


def band(run: ComparedRun) -> dict[str, list[float]]:
    """Over the steps that all seeds have: the interquartile mean and its 95 % interval, low to
    high; both empty for a single seed, which has none."""
    curves = [thinned(curve) for curve in run.curves]
    points = min(len(steps) for steps, _ in curves)
    values = np.stack([values[:points] for _, values in curves])
    several = len(values) > 1
    limits = [bootstrap_interval(values[:, point]) for point in range(points * several)]
    return {
        "step": curves[0][0][:points].tolist(),
        "iqm": np.asarray(iqm(values, axis=0)).tolist(),
        "low": [low for low, _ in limits],
        "high": [high for _, high in limits],
    }


def compare(runs: Sequence[ComparedRun]) -> dict[str, Any]:
    """Everything as JSON: per game and score the results of every run, for each pair the
    probability that a seed of the first is better than one of the second, and performance
    profiles; what was measured of
    non-stationarity, means over seeds; with several games, the results over all of them for those
    who played all."""
    games = list(dict.fromkeys(run.game for run in runs))
    result: dict[str, Any] = {"games": {}, "curves": {}, "non_stationarity": {}, "all_games": {}}
    for game in games:
        mine = [run for run in runs if run.game == game]
        scores = [s for s in mine[0].curves[0].final if all(s in r.curves[0].final for r in mine)]
        result["games"][game] = {score: _of_score(mine, score) for score in scores}
        result["curves"][game] = {run.label: band(run) for run in mine}
        result["non_stationarity"][game] = {run.label: _non_stationarity(run) for run in mine}
    if len(games) > 1:
        by_label: dict[str, dict[str, ComparedRun]] = {}
        for run in runs:
            by_label.setdefault(run.label, {})[run.game] = run
        full = {label: all_ for label, all_ in by_label.items() if len(all_) == len(games)}
        finals = {
            label: [all_[game].final("team_mean") for game in games] for label, all_ in full.items()
        }
        result["all_games"] = {
            "runs": {
                label: {
                    "iqm": float(aggregate_iqm(tasks)),
                    "interval": list(stratified_interval(tasks)) if several(tasks) else None,
                }
                for label, tasks in finals.items()
            },
            "better": _better(finals),
        }
    return result


def _non_stationarity(run: ComparedRun) -> dict[str, float]:
    """Means over the seeds of what all of them logged."""
    logged = [curve.non_stationarity for curve in run.curves]
    names = [name for name in NON_STATIONARITY if all(name in found for found in logged)]
    return {name: float(np.mean([found[name] for found in logged])) for name in names}


def _of_score(runs: Sequence[ComparedRun], score: str) -> dict[str, Any]:
    finals = {run.label: run.final(score) for run in runs}
    return {
        "runs": {
            label: {
                "seeds": len(values),
                "iqm": iqm(values),
                "interval": list(bootstrap_interval(values)) if several([values]) else None,
                "values": values.tolist(),
            }
            for label, values in finals.items()
        },
        "better": _better({label: [values] for label, values in finals.items()}),
        "profiles": _profiles(finals),
    }


def _profiles(finals: dict[str, np.ndarray]) -> dict[str, Any]:
    """The share of each run's seeds whose score is above each of some levels."""
    everything = np.concatenate(list(finals.values()))
    levels = np.linspace(everything.min(), everything.max(), LEVELS)
    shares = {name: performance_profile([x], levels).tolist() for name, x in finals.items()}
    return {"levels": levels.tolist(), "runs": shares}


def several(tasks: Sequence[np.ndarray]) -> bool:
    """Whether every task has more than one seed: of one seed nothing says how far others lie."""
    return all(len(values) > 1 for values in tasks)


def _better(finals: dict[str, list[np.ndarray]]) -> list[dict[str, Any]]:
    """For each pair with several seeds on both sides the probability that the first is better, with
    its interval. Of one seed it would be 0 or 1, whatever the players are."""
    known = [label for label, tasks in finals.items() if several(tasks)]
    pairs = [(one, other) for index, one in enumerate(known) for other in known[index + 1 :]]
    return [
        {
            "first": first,
            "second": second,
            "probability": float(probability_of_improvement(finals[first], finals[second])),
            "interval": list(improvement_interval(finals[first], finals[second])),
        }
        for first, second in pairs
    ]


def marl_eval(runs: Sequence[ComparedRun]) -> dict[str, Any]:
    """The runs in the JSON form of marl-eval: environment → task → algorithm → seed → steps."""
    data: dict[str, Any] = {}
    for run in runs:
        family, _, task = run.game.partition(":")
        algorithms = data.setdefault(family, {}).setdefault(task or family, {})
        for curve in run.curves:
            points: dict[str, Any] = {}
            rows = zip(curve.steps, curve.values, curve.seconds, strict=True)
            for number, (step, value, seconds) in enumerate(rows):
                points[f"step_{number}"] = {
                    "step_count": int(step),
                    "elapsed_time": float(seconds),
                    "mean_episode_return": [float(value)],
                }
            points["absolute_metrics"] = {"mean_episode_return": [curve.final["team_mean"]]} | {
                name: [x] for name, x in curve.final.items() if name != "team_mean"
            }
            algorithms.setdefault(run.label, {})[f"seed_{curve.seed}"] = points
    return data
