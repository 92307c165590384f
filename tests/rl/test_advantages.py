"""Advantages against a recursion that goes through every seat's episodes one by one."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coplay.core.numerics import masked_mean
from coplay.rl.advantages import explained_variance, gae, normalise

SETTINGS = settings(max_examples=25, deadline=None, derandomize=True, database=None)
STEPS, COPIES, SEATS = 14, 3, 3
HUGE = 1e30

fast_gae = jax.jit(gae, static_argnames=("discount", "gae_lambda"))
fast_normalise = jax.jit(normalise)


class Played(NamedTuple):
    """Made-up episodes; all arrays [time, copy, seat] but last_value [copy, seat]."""

    reward: np.ndarray
    value: np.ndarray
    final_value: np.ndarray
    last_value: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    alive: np.ndarray


def made_up(seed: int, leave: float, cut: float) -> Played:
    """Seats leave with probability `leave`, episodes are cut with probability `cut`."""
    rng = np.random.default_rng(seed)
    shape = (STEPS, COPIES, SEATS)
    terminated, truncated, alive = (np.zeros(shape, bool) for _ in range(3))
    for copy in range(COPIES):
        here = [True] * SEATS
        for time in range(STEPS):
            alive[time, copy] = here
            for seat in range(SEATS):
                if here[seat] and rng.random() < leave:
                    terminated[time, copy, seat] = True
                    here[seat] = False
            if any(here) and rng.random() < cut:
                truncated[time, copy] = here
                here = [False] * SEATS
            if not any(here):
                here = [True] * SEATS
    reward, value, final_value = (rng.normal(scale=3, size=shape) for _ in range(3))
    last_value = rng.normal(scale=3, size=shape[1:])
    return Played(reward, value, final_value, last_value, terminated, truncated, alive)


def with_garbage(played: Played, seed: int) -> Played:
    """Huge numbers and random marks wherever nothing may matter."""
    rng = np.random.default_rng(seed)

    def spoilt(values: np.ndarray, where: np.ndarray) -> np.ndarray:
        if values.dtype == bool:
            return np.where(where, rng.random(values.shape) < 0.5, values)
        return np.where(where, rng.uniform(-HUGE, HUGE, values.shape), values)

    dead = ~played.alive
    ended = dead | played.terminated | played.truncated
    return played._replace(
        reward=spoilt(played.reward, dead),
        value=spoilt(played.value, dead),
        final_value=spoilt(played.final_value, ~played.truncated),
        last_value=spoilt(played.last_value, ended[-1]),
        terminated=spoilt(played.terminated, dead),
        truncated=spoilt(played.truncated, dead),
    )


def compiled(played: Played, discount: float, gae_lambda: float) -> np.ndarray:
    arrays = (x if x.dtype == bool else x.astype(np.float32) for x in played[:-1])
    return np.asarray(fast_gae(*arrays, discount=discount, gae_lambda=gae_lambda))


def slow_advantage(
    played: Played, time: int, copy: int, seat: int, discount: float, gae_lambda: float
) -> float:
    """The advantage of one action, by recursion along the seat's own episode."""
    at = (time, copy, seat)
    now = float(played.reward[at]) - float(played.value[at])
    if played.terminated[at]:
        return now
    if played.truncated[at]:
        return now + discount * float(played.final_value[at])
    if time + 1 == STEPS:
        return now + discount * float(played.last_value[copy, seat])
    assert played.alive[time + 1, copy, seat]
    later = slow_advantage(played, time + 1, copy, seat, discount, gae_lambda)
    return (
        now + discount * float(played.value[time + 1, copy, seat]) + discount * gae_lambda * later
    )


@SETTINGS
@given(
    seed=st.integers(0, 10**6),
    leave=st.sampled_from([0.0, 0.1, 0.4]),
    cut=st.sampled_from([0.0, 0.15, 1.0]),
    weights=st.sampled_from([(0.99, 0.95), (0.5, 1.0), (0.9, 0.0), (0.0, 0.7), (1.0, 1.0)]),
)
def test_gae_is_the_recursion(
    seed: int, leave: float, cut: float, weights: tuple[float, float]
) -> None:
    discount, gae_lambda = weights
    played = made_up(seed, leave, cut)
    advantages = compiled(played, discount, gae_lambda)
    for time, copy, seat in np.argwhere(played.alive):
        expected = slow_advantage(played, time, copy, seat, discount, gae_lambda)
        assert advantages[time, copy, seat] == pytest.approx(expected, rel=1e-4, abs=1e-4)


@SETTINGS
@given(seed=st.integers(0, 10**6), garbage=st.integers(0, 10**6))
def test_dead_rows_and_unused_values_influence_no_alive_row(seed: int, garbage: int) -> None:
    played = made_up(seed, 0.3, 0.1)
    advantages = compiled(played, 0.99, 0.95)
    spoilt = compiled(with_garbage(played, garbage), 0.99, 0.95)
    assert (advantages[played.alive] == spoilt[played.alive]).all()


def test_the_made_up_episodes_show_everything() -> None:
    seen: set[str] = set()
    for seed in range(5):
        played = made_up(seed, 0.3, 0.1)
        ended = played.terminated | played.truncated
        shown = {
            "left": played.terminated.any(),
            "dead": not played.alive.all(),
            "cut while others had left": (played.truncated.any(2) & ~played.alive.all(2)).any(),
            "left and cut at once": (played.truncated.any(2) & played.terminated.any(2)).any(),
            "another episode": ended[:-1][played.alive[1:]].any(),
            "goes on beyond the rollout": (played.alive[-1] & ~ended[-1]).any(),
            "ends with the rollout": ended[-1].any(),
        }
        seen |= {name for name, there in shown.items() if there}
    assert seen == set(shown)


def test_gae_of_one_step_and_of_one_axis() -> None:
    """A single row of two seats: one goes on, one leaves."""
    advantage = gae(
        jnp.array([[1.0, 1.0]]),
        jnp.array([[0.5, 0.5]]),
        jnp.array([[100.0, 100.0]]),
        jnp.array([2.0, 2.0]),
        jnp.array([[False, True]]),
        jnp.array([[False, False]]),
        0.5,
        0.9,
    )
    assert np.asarray(advantage).tolist() == [[1.5, 0.5]]


def slow_mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_masked_mean(share: float) -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(4, 3, 2)).astype(np.float32)
    mask = rng.random(values.shape) < share
    mask[:, 0, 0] = False
    values[~mask] = HUGE
    one, two, everything = (
        np.asarray(masked_mean(jnp.asarray(values), jnp.asarray(mask), axis))
        for axis in (0, (0, 1), None)
    )
    assert (one.shape, two.shape, everything.shape) == ((3, 2), (2,), ())
    for j in range(3):
        for k in range(2):
            column = [float(values[i, j, k]) for i in range(4) if mask[i, j, k]]
            assert one[j, k] == pytest.approx(slow_mean(column), abs=1e-6)
    for k in range(2):
        page = [float(v) for v in values[:, :, k][mask[:, :, k]]]
        assert two[k] == pytest.approx(slow_mean(page), abs=1e-6)
    assert everything == pytest.approx(slow_mean([float(v) for v in values[mask]]), abs=1e-6)
    assert one[0, 0] == 0.0, "nobody in the mask"


@SETTINGS
@given(seed=st.integers(0, 10**6), share=st.floats(0.2, 1.0), shift=st.floats(-50, 50))
def test_normalise(seed: int, share: float, shift: float) -> None:
    rng = np.random.default_rng(seed)
    values = (shift + 7 * rng.normal(size=(6, 5, 2))).astype(np.float32)
    mask = rng.random(values.shape) < share
    mask[0, 0] = True
    values[~mask] = rng.choice([HUGE, -HUGE], size=(~mask).sum())
    result = np.asarray(fast_normalise(values, mask))
    among = values[mask].astype(np.float64)
    expected = (among - among.mean()) / among.std()
    np.testing.assert_allclose(result[mask], expected, rtol=1e-3, atol=1e-4)
    assert result[mask].mean() == pytest.approx(0, abs=1e-5)
    assert result[mask].std() == pytest.approx(1, abs=1e-4)
    assert (result[~mask] == 0).all()


def test_normalise_of_equal_values_and_of_none() -> None:
    values, everyone = np.full((6, 5, 2), 3.0, np.float32), np.ones((6, 5, 2), bool)
    assert (np.asarray(fast_normalise(values, everyone)) == 0).all()
    assert (np.asarray(fast_normalise(values, ~everyone)) == 0).all()


def test_explained_variance() -> None:
    rng = np.random.default_rng(5)
    target = rng.normal(size=(40, 4)).astype(np.float32)
    predicted = (target + rng.normal(scale=[0.0, 0.5, 1.0, 3.0], size=(40, 4))).astype(np.float32)
    mask = rng.random((40, 4)) < 0.6
    predicted[~mask], target[~mask] = HUGE, -HUGE
    result = np.asarray(explained_variance(*(jnp.asarray(x) for x in (predicted, target, mask))))
    for seat in range(4):
        here = mask[:, seat]
        t, p = target[here, seat].astype(np.float64), predicted[here, seat].astype(np.float64)
        assert result[seat] == pytest.approx(1 - np.var(t - p) / np.var(t), abs=1e-5)
    assert result[0] == 1.0
    assert result[3] < 0.0
    shifted = explained_variance(
        jnp.asarray(target[:, 0] + 5.0), jnp.asarray(target[:, 0]), jnp.asarray(mask[:, 0])
    )
    assert shifted == pytest.approx(1.0, abs=1e-5), "a constant error does not count"
