"""Advantage Alignment: its advantages against plain loops, and reciprocity in the dilemma."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.algorithms.advantage_alignment.config import AdvantageAlignmentConfig
from coplay.algorithms.advantage_alignment.learner import AdvantageAlignment, aligned
from coplay.core.config import with_fields
from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.core.trajectory import Trajectory
from coplay.games.matrix import matrix_parts
from coplay.matches.rollout import new_table, rollout
from coplay.nn.networks import view_shape

STEPS, COPIES, SEATS = 9, 4, 3


def slow_alignment(
    advantage: np.ndarray, alive: np.ndarray, first: np.ndarray, weight: float, discount: float
) -> np.ndarray:
    """[time, copy, seat] sums over earlier steps of the episode and over others, one by one."""
    found = np.zeros_like(advantage)
    for t, copy, seat in np.ndindex(advantage.shape):
        if not alive[t, copy, seat]:
            continue
        begin = max([k for k in range(t + 1) if first[k, copy, seat]], default=0)
        past = sum(
            discount ** (t - k) * advantage[k, copy, seat]
            for k in range(begin, t)
            if alive[k, copy, seat]
        )
        for other in range(advantage.shape[2]):
            if other != seat and alive[t, copy, other]:
                found[t, copy, seat] += weight * past * advantage[t, copy, other]
        found[t, copy, seat] += advantage[t, copy, seat]
    return found


def test_advantages_are_those_of_plain_loops() -> None:
    rng = np.random.default_rng(0)
    advantage = rng.normal(size=(STEPS, COPIES, SEATS)).astype(np.float32)
    alive = rng.random(advantage.shape) < 0.8
    first = np.repeat(rng.random((STEPS, COPIES, 1)) < 0.3, SEATS, axis=-1)
    assert (~alive).any() and first.any()
    found = jax.jit(aligned, static_argnums=(3, 4))(advantage, alive, first, 0.7, 0.9)
    expected = slow_alignment(advantage, alive, first, 0.7, 0.9)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    plain = aligned(jnp.asarray(advantage), jnp.asarray(alive), jnp.asarray(first), 0.0, 0.9)
    np.testing.assert_allclose(plain, np.where(alive, advantage, 0.0))


def learner(**fields: Any) -> AdvantageAlignment:
    small = {"network.hidden": (4,), "minibatches": 1, "epochs": 1}
    config = with_fields(AdvantageAlignmentConfig(), small | fields)
    seats = (0, 1)
    return AdvantageAlignment(config, view_shape(DILEMMA), 2, seats, seats)


KIND, MAKE = matrix_parts("prisoners-dilemma")
DILEMMA = MAKE(KIND(rounds=5))


def played(made: AdvantageAlignment) -> tuple[Any, Trajectory]:
    @jax.jit
    def play(key: jax.Array) -> tuple[Any, Trajectory]:
        state = made.init(key, jnp.arange(2))
        groups = (made.group(state),)
        table = new_table(DILEMMA, groups, key, COPIES)
        return state, rollout(DILEMMA, groups, table, key, STEPS, jnp.arange(2))[1]

    return play(jax.random.key(1))


@pytest.mark.parametrize("parameters", ["shared", "separate", "shared+id"])
def test_a_seat_learns_from_its_own_advantages(parameters: str) -> None:
    """Each seat by its own critic; what the others' rewards change is their part of A* alone, and
    without weight it is PPO."""
    made = learner(parameters=parameters, discount=0.9)
    state, trajectory = played(made)
    _, batch = made.prepare(state, made.training_data(DILEMMA, trajectory))
    plain = learner(parameters=parameters, discount=0.9, alignment_weight=0.0)
    _, before = plain.prepare(state, plain.training_data(DILEMMA, trajectory))
    sets = 2 if parameters == "separate" else 1
    assert batch.advantage.shape == (sets, COPIES, STEPS, 2 // sets)
    np.testing.assert_array_equal(batch.target, before.target)
    # As arrays [time, copy, seat]: the values that targets were made with.
    raw = np.asarray(before.target - before.value)
    raw = np.moveaxis(raw, 0, -2).reshape(COPIES, STEPS, 2).swapaxes(0, 1)
    assert trajectory.past is not None
    first = np.asarray(trajectory.past.first)
    found = np.moveaxis(np.asarray(batch.advantage), 0, -2).reshape(COPIES, STEPS, 2)
    found = found.swapaxes(0, 1)
    if parameters == "separate":  # every set judges the others by its own critic
        assert np.abs(found).max() > 0
        return
    scaled = raw / np.sqrt((raw**2).mean())
    expected = slow_alignment(scaled, np.ones(raw.shape, bool), first, 1.0, 0.9)
    expected = (expected - expected.mean()) / expected.std()
    np.testing.assert_allclose(found, expected, atol=2e-3)


class Alone(Game):
    """Has a single seat."""

    name = "alone"
    action_names = ("wait",)

    @property
    def seats(self) -> int:
        return 1


def test_it_needs_somebody_to_shape() -> None:
    with pytest.raises(UserError, match="two seats"):
        learner().check(Alone())
