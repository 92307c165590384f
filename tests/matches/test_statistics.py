"""Statistics over runs against slow computations and known distributions."""

import math

import numpy as np
import pytest

from coplay.matches.statistics import (
    bootstrap_band,
    bootstrap_interval,
    improvement_interval,
    iqm,
    performance_profile,
    probability_of_improvement,
    stratified_interval,
)


def slow_iqm(values: list[float]) -> float:
    """Takes the smallest and the largest away, a quarter of the number each, then the mean."""
    rest = list(values)
    for _ in range(len(values) // 4):
        rest.remove(min(rest))
        rest.remove(max(rest))
    return math.fsum(rest) / len(rest)


@pytest.mark.parametrize("n", [*range(1, 10), 100])
def test_iqm_is_the_mean_of_the_middle_half(n: int) -> None:
    rng = np.random.default_rng(n)
    for values in (rng.normal(size=n), rng.integers(3, size=n).astype(float)):
        assert iqm(values) == pytest.approx(slow_iqm(values.tolist()), abs=1e-12)


def test_iqm_of_few_runs() -> None:
    assert iqm([7.0]) == 7.0
    assert iqm([0.0, 10.0, 2.0]) == 4.0, "below four runs nothing is cut"
    assert iqm([100.0, 1.0, 3.0, -50.0]) == 2.0
    assert isinstance(iqm([1, 2, 3, 4]), float)


def test_iqm_along_an_axis() -> None:
    values = np.random.default_rng(0).normal(size=(9, 5, 2))
    along = iqm(values, axis=0)
    assert along.shape == (5, 2)
    for i in range(5):
        for j in range(2):
            assert along[i, j] == pytest.approx(slow_iqm(values[:, i, j].tolist()))
    assert iqm(values) == pytest.approx(slow_iqm(values.reshape(-1).tolist()))


def test_nan_is_not_hidden() -> None:
    values = [1.0, math.nan, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    assert math.isnan(iqm(values))
    rows = iqm(np.array([values, [1.0] * 8]), axis=1)
    assert math.isnan(rows[0]) and rows[1] == 1.0


@pytest.mark.parametrize("statistic", [iqm, bootstrap_interval])
def test_no_values_is_an_error(statistic) -> None:
    with pytest.raises(ValueError, match="no values"):
        statistic([])


def test_interval_is_deterministic_and_depends_on_the_seed() -> None:
    values = np.random.default_rng(0).normal(size=12)
    assert bootstrap_interval(values) == bootstrap_interval(list(values))
    assert bootstrap_interval(values, seed=1) != bootstrap_interval(values, seed=2)
    low, high = bootstrap_interval(values)
    assert low < iqm(values) < high


def test_interval_of_one_run_or_equal_runs_has_no_width() -> None:
    assert bootstrap_interval([3.0]) == (3.0, 3.0)
    assert bootstrap_interval([2.0] * 6) == (2.0, 2.0)


def test_interval_grows_with_the_level() -> None:
    values = np.random.default_rng(3).normal(size=20)
    half, most = bootstrap_interval(values, level=0.5), bootstrap_interval(values, level=0.99)
    assert most[0] < half[0] < half[1] < most[1]


def test_interval_of_the_mean_is_near_the_normal_one() -> None:
    values = np.random.default_rng(4).normal(5.0, 2.0, size=400)
    mean, stderr = values.mean(), values.std(ddof=1) / math.sqrt(len(values))
    low, high = bootstrap_interval(values, statistic=np.mean)
    assert low == pytest.approx(mean - 1.96 * stderr, abs=0.25 * stderr)
    assert high == pytest.approx(mean + 1.96 * stderr, abs=0.25 * stderr)


def test_interval_in_portions_is_an_interval_of_all_resamples() -> None:
    values = np.random.default_rng(5).normal(size=3000)
    shapes = []

    def counted(drawn: np.ndarray, /, *, axis: int) -> np.ndarray:
        shapes.append(drawn.shape)
        return drawn.mean(axis=axis)

    bootstrap_interval(values, statistic=counted, resamples=1000)
    assert sum(shape[0] for shape in shapes) == 1000
    assert all(shape[0] * shape[1] <= 1_000_000 for shape in shapes)


@pytest.mark.parametrize("draw", ["normal", "uniform"])
def test_interval_covers_the_truth_about_as_often_as_it_says(draw: str) -> None:
    """Both distributions are symmetric about 0, so their interquartile mean is 0."""
    rng = np.random.default_rng(6)
    samples = rng.normal(size=(400, 30)) if draw == "normal" else rng.uniform(-1, 1, (400, 30))
    covered = 0
    for values in samples:
        low, high = bootstrap_interval(values, resamples=500)
        covered += low <= 0 <= high
    # 400 trials have a standard error of 0.011; the percentile interval is a little too narrow.
    assert 0.89 <= covered / 400 <= 0.98


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="level"):
        bootstrap_interval([1.0, 2.0], level=95)
    with pytest.raises(ValueError, match="resamples"):
        bootstrap_interval([1.0, 2.0], resamples=0)


# --- several tasks --------------------------------------------------------------------------------

TASKS = [np.random.default_rng(0).normal(size=7), np.random.default_rng(1).normal(3.0, size=5)]
OTHERS = [np.round(TASKS[0] + 0.3, 1), np.round(TASKS[1] - 2.0, 1)]


def test_probability_of_improvement_is_mann_and_whitneys() -> None:
    stats = pytest.importorskip("scipy.stats")
    expected = np.mean(
        [
            stats.mannwhitneyu(x, y).statistic / (len(x) * len(y))
            for x, y in zip(TASKS, OTHERS, strict=True)
        ]
    )
    assert probability_of_improvement(TASKS, OTHERS) == pytest.approx(expected)
    tied = probability_of_improvement([[1.0, 2.0]], [[1.0, 2.0]])
    assert tied == 0.5


def test_stratified_interval_by_a_plain_loop() -> None:
    """The same draws, one resample after the other, in plain Python."""
    low, high = stratified_interval(TASKS, resamples=300, seed=5)
    rng = np.random.default_rng(5)
    picks = [rng.integers(len(task), size=(300, len(task))) for task in TASKS]
    found = []
    for number in range(300):
        pairs = zip(TASKS, picks, strict=True)
        drawn = sorted(task[i] for task, pick in pairs for i in pick[number])
        cut = len(drawn) // 4
        found.append(sum(drawn[cut : len(drawn) - cut]) / (len(drawn) - 2 * cut))
    assert low == pytest.approx(np.quantile(found, 0.025))
    assert high == pytest.approx(np.quantile(found, 0.975))


def test_strata_keep_their_shares() -> None:
    """Tasks that do not vary leave nothing to chance, which drawing across tasks would."""
    assert stratified_interval([[0.0] * 3, [1.0] * 3], lambda t: np.mean(t, axis=(0, 2))) == (
        0.5,
        0.5,
    )


def test_improvement_interval_holds_the_estimate() -> None:
    low, high = improvement_interval(TASKS, OTHERS)
    assert 0 <= low < probability_of_improvement(TASKS, OTHERS) < high <= 1


def test_performance_profile() -> None:
    profile = performance_profile([[0.0, 1.0, 2.0, 3.0], [5.0]], [-1.0, 1.0, 2.5, 9.0])
    np.testing.assert_allclose(profile, [1.0, (0.5 + 1) / 2, (0.25 + 1) / 2, 0.0])


def test_a_band_is_an_interval_at_every_point() -> None:
    values = np.random.default_rng(1).normal(size=(7, 5))
    low, high = bootstrap_band(values)
    for point in range(5):
        assert (low[point], high[point]) == bootstrap_interval(values[:, point])
