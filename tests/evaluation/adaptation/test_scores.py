"""Scores of an adaptation against plain loops and hand-made curves."""

import numpy as np
import pytest

from coplay.core.errors import UserError
from coplay.evaluation.adaptation.protocol import Played
from coplay.evaluation.adaptation.scores import (
    References,
    cut_episodes,
    episode_time,
    first_good,
    first_reached,
    first_robust,
    summarise,
    unit_scores,
)
from coplay.matches.statistics import iqm

STEPS, LAST = 60, 20


@pytest.fixture
def played() -> Played:
    rng = np.random.default_rng(0)
    over = rng.random((6, STEPS)) < 0.3
    over[:, -5] = True
    believed = rng.integers(0, 3, over.shape)
    return Played(
        reward=rng.normal(size=over.shape).astype(np.float32),
        over=over,
        belief=(believed * rng.random(over.shape)).astype(np.float32),
        believed=believed,
        predicted=None,
        acted=None,
        best=None,
    )


def plainly(played: Played, unit: int) -> list[dict[str, float]]:
    """The whole episodes of a unit by a loop over its steps."""
    assert played.belief is not None and played.believed is not None
    episodes, now = [], {"reward": 0.0, "belief": 0.0, "believed": 0, "begin": 0}
    for step in range(STEPS):
        now["reward"] += float(played.reward[unit, step])
        now["belief"] += float(played.belief[unit, step])
        now["believed"] += int(played.believed[unit, step])
        if played.over[unit, step]:
            episodes.append(now | {"end": step + 1})
            now = {"reward": 0.0, "belief": 0.0, "believed": 0, "begin": step + 1}
    return episodes


def test_scores_and_curves_agree_with_a_plain_loop(played: Played) -> None:
    result = summarise(played, STEPS, LAST, References(None, None))
    plain = [plainly(played, unit) for unit in range(6)]
    scores = [
        np.mean([e["reward"] for e in episodes if e["end"] > STEPS - LAST]) for episodes in plain
    ]
    np.testing.assert_allclose(result["scores"], scores, rtol=1e-5)
    assert result["score"] == pytest.approx(iqm(scores), rel=1e-5)
    assert result["interval"][0] <= result["score"] <= result["interval"][1]
    common = min(map(len, plain))
    curve = [np.mean([episodes[k]["reward"] for episodes in plain]) for k in range(common)]
    np.testing.assert_allclose(result["curve"], curve, rtol=1e-4, atol=1e-6)
    for found, episodes in zip(cut_episodes(played), plain, strict=True):
        assert found.begin.tolist() == [e["begin"] for e in episodes]
        belief = [e["belief"] / e["believed"] if e["believed"] else np.nan for e in episodes]
        np.testing.assert_allclose(found.belief, belief, rtol=1e-4)
    assert result["cumulative"] == pytest.approx(played.reward.sum() / 6, rel=1e-4)
    assert result["accuracy"] is None and len(result["belief"]["by_episode"]) == common


def test_time_in_the_episode(played: Played) -> None:
    time = episode_time(played.over)
    for unit in range(6):
        now = 0
        for step in range(STEPS):
            assert time[unit, step] == now
            now = 0 if played.over[unit, step] else now + 1


def test_no_episode_in_the_last_steps_is_an_error(played: Played) -> None:
    over = played.over.copy()
    over[3, -LAST:] = False
    with pytest.raises(UserError, match="no episode ended"):
        unit_scores(cut_episodes(played._replace(over=over)), STEPS, LAST)


def test_normalised() -> None:
    lines = References(1.0, 3.0)
    assert lines.normalised(1.0) == 0 and lines.normalised(3.0) == 1
    assert lines.normalised(2.8) == pytest.approx(0.9)
    assert References(1.0, None).normalised(2.0) is None
    assert References(2.0, 2.0).normalised(2.0) is None
    assert References(2.0, 1.0).normalised(2.0) is None, "no better than random play"


def test_when_a_curve_is_good_for_good() -> None:
    step_up = np.array([0.0] * 7 + [1.0] * 20)
    # From episode 6 on the mean of the next ten is 9/10.
    assert first_good(step_up, 0.9) == first_reached(step_up, 0.9) == 6
    relapse = np.array([1.0] * 12 + [0.0] * 5 + [1.0] * 20)
    assert first_good(relapse, 0.9) == 16 and first_reached(relapse, 0.9) == 0
    assert first_good(np.ones(15), 0.9) == 0
    assert first_good(np.zeros(15), 0.9) is None
    assert first_good(np.array([1.0] * 30 + [0.0] * 2), 0.9) is None
    assert first_good(np.ones(9), 0.9) is None  # too short to say
    assert first_good(np.full(20, 0.9, np.float32), 0.9) == 0


def test_an_unlucky_stretch_is_no_fall_and_a_lasting_one_is() -> None:
    rng = np.random.default_rng(3)
    rewards = 0.95 + 0.6 * rng.standard_normal((40, 200))
    plain = first_good(rewards.mean(0), 0.9)
    assert plain is not None and plain > 50 and first_robust(rewards, 0.9) == 0
    learned = rewards.copy()
    learned[:, :30] -= 0.9
    # A window of ten that begins at episode 28 still holds two bad ones: 0.95 - 0.18.
    assert 25 <= (first_robust(learned, 0.9) or 0) <= 30
    assert first_robust(rewards - 0.9, 0.9) is None
    assert first_robust(rewards[:, :9], 0.9) is None  # too short to say


def test_steps_to_90_counts_the_steps_before_that_episode() -> None:
    over = np.ones((2, 40), bool)
    over[1, ::2] = False  # two steps per episode
    reward = np.zeros((2, 40))
    reward[0, 5:] = 1.0
    reward[1, 11::2] = 1.0  # its sixth episode is the first good one
    nothing = Played(reward, over, None, None, None, None, None)
    result = summarise(nothing, 40, 10, References(0.0, 1.0))
    assert result["episodes_to_90"] == 4
    assert result["episodes_to_90_robust"] in range(5)
    assert result["steps_to_90"] == np.mean([4, 8])
    assert result["normalised"] == pytest.approx(1.0)


def test_accuracy_stands_beside_the_best_possible_one(played: Played) -> None:
    acted = np.full(played.over.shape, 3)
    best = np.full(played.over.shape, 1.5)
    best[:, ::2] = 3.0
    known = played._replace(predicted=acted - 1, acted=acted, best=best)
    found = summarise(known, STEPS, LAST, References(None, None))["accuracy"]
    assert found["mean"] == pytest.approx(2 / 3)
    assert found["best"] == pytest.approx(0.75)
    assert "best" not in (summarise(played, STEPS, LAST, References(None, None))["accuracy"] or {})
