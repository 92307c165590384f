"""Statistics over independent runs: interquartile mean, bootstrap intervals, comparisons.

The unit is the run (a seed): give one number per run, not one per episode of a single run, because
episodes of one run share their parameters and say nothing about the chance in training.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, overload

import numpy as np
from numpy.typing import ArrayLike


class Statistic(Protocol):
    """Reduces one axis of an array, as `iqm`, `np.mean` and `np.median` do."""

    def __call__(self, values: np.ndarray, /, *, axis: int) -> Any: ...


@overload
def iqm(values: ArrayLike, axis: None = None) -> float: ...
@overload
def iqm(values: ArrayLike, axis: int) -> np.ndarray: ...
def iqm(values: ArrayLike, axis: int | None = None) -> float | np.ndarray:
    """The interquartile mean: the mean of the middle half of the runs.

    With the n values sorted, x_1 <= ... <= x_n, and k = floor(n / 4),

        iqm = (x_{k+1} + ... + x_{n-k}) / (n - 2 k),

    which is `scipy.stats.trim_mean(values, 0.25)`, as in rliable. For n < 4 nothing is cut and it
    is the mean; for n = 4 it is the mean of the middle two. NaN if any value is NaN.

    values: [run], or any shape: all values count as runs when `axis` is None.
    axis: the axis of the runs; it is reduced.
    """
    array = np.asarray(values, float)
    runs = array.reshape(-1) if axis is None else np.moveaxis(array, axis, -1)
    n = runs.shape[-1]
    if n == 0:
        raise ValueError("the interquartile mean of no values is not defined")
    cut = n // 4
    # Only the sets left and right of the cuts matter, so a partition does what a sort would.
    middle = np.partition(runs, sorted({cut, n - cut - 1}), axis=-1)[..., cut : n - cut]
    mean = np.where(np.isnan(runs).any(axis=-1), np.nan, middle.mean(axis=-1))
    return float(mean) if axis is None else mean


def bootstrap_interval(
    values: ArrayLike,
    statistic: Statistic = iqm,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """The percentile bootstrap interval (low, high) of a statistic of the runs.

    `resamples` times, n runs are drawn with replacement from the n given ones; low and high are the
    (1 - level) / 2 and (1 + level) / 2 quantiles of the statistic of the drawn sets. The same
    arguments give the same interval. One run gives an interval of no width, which does not mean
    that the result is certain. NaN if any value is NaN.

    values: [run], or any shape: all values count as runs.
    """
    runs = np.asarray(values, float).reshape(-1)
    n = runs.size
    if n == 0:
        raise ValueError("the bootstrap interval of no values is not defined")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {level}")
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, not {resamples}")
    rng = np.random.default_rng(seed)
    # In portions of about a million numbers, so that memory stays flat in the number of runs.
    portion = max(1, 1_000_000 // n)
    found = []
    for start in range(0, resamples, portion):
        drawn = rng.integers(n, size=(min(portion, resamples - start), n))
        found.append(np.asarray(statistic(runs[drawn], axis=1)))
    low, high = np.quantile(np.concatenate(found), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def bootstrap_band(
    values: np.ndarray,
    statistic: Statistic = iqm,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """`bootstrap_interval` at every point of curves: low and high, [point]. values: [run, point].

    The same runs are drawn at all points.
    """
    runs, points = values.shape
    drawn = np.random.default_rng(seed).integers(runs, size=(resamples, runs))
    # In portions of about a million numbers, so that memory stays flat in the number of points.
    portion = max(1, 1_000_000 // (resamples * runs))
    limits = [np.empty((2, 0))]
    for start in range(0, points, portion):
        found = statistic(values[drawn, start : start + portion], axis=1)
        limits.append(np.quantile(found, [(1 - level) / 2, (1 + level) / 2], axis=0))
    low, high = np.concatenate(limits, axis=1)
    return low, high


def spread_of_groups(curves: np.ndarray) -> np.ndarray:
    """How far the groups' mean curves lie apart, relative to the spread of single runs.

        sum over windows of   var_g(mean_r x_grw) / var_gr(x_grw)

    curves: [..., group, run, window]; windows in which all runs are equal do not count. [...] comes
    back.
    """
    between = curves.mean(axis=-2).var(axis=-2)
    total = curves.reshape(*curves.shape[:-3], -1, curves.shape[-1]).var(axis=-2)
    return np.where(total > 0, between / np.where(total > 0, total, 1.0), 0.0).sum(axis=-1)


def permutation_p_value(
    curves: ArrayLike, paired: bool = False, permutations: int = 20_000, seed: int = 0
) -> float:
    """The probability that groups which do not differ lie as far apart as these, by
    `spread_of_groups`; a permutation test, whatever the distribution of the runs.

    curves: [group, run, window], one number per run and window of its course.
    paired: run r of one group belongs to run r of the others (seats of one training run): numbers
        are exchanged within a run only. Else any runs are exchanged.

    The given arrangement counts as one of the permutations, so the result is never 0 and at least
    1 / (permutations + 1).
    """
    array = np.asarray(curves, float)
    groups, runs, windows = array.shape
    rng = np.random.default_rng(seed)
    found = spread_of_groups(array) * (1 - 1e-9)  # equal arrangements must not fall to rounding
    as_large, done = 1, 0
    portion = max(1, 2_000_000 // array.size)
    while done < permutations:
        count = min(portion, permutations - done)
        if paired:
            order = rng.random((count, groups, runs)).argsort(axis=1)
            drawn = np.take_along_axis(array[None], order[..., None], axis=1)
        else:
            order = rng.random((count, groups * runs)).argsort(axis=1)
            drawn = array.reshape(groups * runs, windows)[order]
            drawn = drawn.reshape(count, groups, runs, windows)
        as_large += int((spread_of_groups(drawn) >= found).sum())
        done += count
    return as_large / (permutations + 1)


# --- several tasks at once ---------------------------------------------------------------------


def stratified_interval(
    scores: Sequence[ArrayLike],
    statistic: Callable[[list[np.ndarray]], np.ndarray] | None = None,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """The percentile bootstrap interval of a statistic of several tasks (strata): runs are drawn
    with replacement within each task, so that every task keeps its share.

    scores: task -> [run]. statistic: of [task -> (resample, run)] to [resample]; default: the
    interquartile mean of all scores together.
    """
    tasks = [np.asarray(task, float).reshape(-1) for task in scores]
    if not tasks or any(task.size == 0 for task in tasks):
        raise ValueError("the bootstrap interval of no values is not defined")
    statistic = statistic or aggregate_iqm
    rng = np.random.default_rng(seed)
    drawn = [task[rng.integers(task.size, size=(resamples, task.size))] for task in tasks]
    low, high = np.quantile(statistic(drawn), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def aggregate_iqm(scores: Sequence[ArrayLike]) -> np.ndarray:
    """The interquartile mean of all runs of all tasks together; task -> [..., run]."""
    return iqm(np.concatenate([np.asarray(task, float) for task in scores], axis=-1), axis=-1)


def probability_of_improvement(
    ours: Sequence[ArrayLike], theirs: Sequence[ArrayLike]
) -> float | np.ndarray:
    """P(a run of ours is better than one of theirs on the same task), mean over the tasks:

        mean_task  sum_ij [x_i > y_j] + [x_i = y_j] / 2   /  (n m)

    which is Mann and Whitney's U over n m. ours, theirs: task -> [..., run].
    """
    each = []
    for mine, other in zip(ours, theirs, strict=True):
        x, y = np.asarray(mine, float)[..., :, None], np.asarray(other, float)[..., None, :]
        each.append(((x > y) + 0.5 * (x == y)).mean(axis=(-2, -1)))
    mean = np.mean(each, axis=0)
    return float(mean) if mean.ndim == 0 else mean


def improvement_interval(
    ours: Sequence[ArrayLike],
    theirs: Sequence[ArrayLike],
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """The stratified bootstrap interval of `probability_of_improvement`; the runs of both sides
    are drawn independently."""
    count = len(ours)

    def statistic(drawn: list[np.ndarray]) -> np.ndarray:
        return np.asarray(probability_of_improvement(drawn[:count], drawn[count:]))

    return stratified_interval([*ours, *theirs], statistic, level, resamples, seed)


def performance_profile(scores: Sequence[ArrayLike], levels: ArrayLike) -> np.ndarray:
    """[level] the share of runs, mean over the tasks, whose score is above each level."""
    above = np.asarray(levels, float)
    each = [(np.asarray(task, float).reshape(-1, 1) > above).mean(axis=0) for task in scores]
    return np.mean(each, axis=0)
