"""The test of whether seats are worth the same, on rewards made up."""

import numpy as np
import pytest

from coplay.evaluation.audits.seat_fairness import RewardSums, compare_seats, threshold

SEATS = 4


def rewards(better: float):
    """Portions of 2000 episodes in which the last seat gets so much more."""

    def draw(portion: int) -> np.ndarray:
        rng = np.random.default_rng(portion)
        return rng.normal(10.0, 3.0, (2000, SEATS)) + better * (np.arange(SEATS) == SEATS - 1)

    return draw


def test_equal_seats_pass_and_an_advantage_is_found() -> None:
    alike = compare_seats(rewards(0.0), SEATS, 0.02, 200_000, 1)
    assert np.abs(alike.z).max() < threshold(1)
    better = compare_seats(rewards(0.5), SEATS, 0.02, 200_000, 1)
    assert better.z[-1] > threshold(1)
    assert better.advantage[-1] == pytest.approx(0.05, abs=0.01)


def test_episodes_are_played_until_the_advantage_cannot_be_missed() -> None:
    coarse = compare_seats(rewards(0.0), SEATS, 0.1, 10**6, 1)
    fine = compare_seats(rewards(0.0), SEATS, 0.02, 10**6, 1)
    assert coarse.episodes < fine.episodes < 10**6 and fine.detectable <= 0.02
    assert compare_seats(rewards(0.0), SEATS, 0.001, 5000, 1).episodes == 5000


def test_portions_add_up() -> None:
    whole, parts = RewardSums(SEATS), RewardSums(SEATS)
    given = rewards(1.0)(0)
    whole.add(given)
    for part in np.split(given, 4):
        parts.add(part)
    np.testing.assert_allclose(whole.result(1).mean, given.mean(0))
    np.testing.assert_allclose(whole.stderr(), parts.stderr())


def test_more_comparisons_ask_for_more() -> None:
    assert threshold(1) < threshold(10)
