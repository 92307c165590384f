"""RL²: advantages over the episodes of a meeting, against plain loops."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

from coplay.algorithms.rl2.config import RL2Config
from coplay.algorithms.rl2.learner import RL2
from coplay.core.game import Observation
from coplay.core.trajectory import Trajectory
from coplay.rl.advantages import meeting_gae

STEPS, COPIES, SEATS = 12, 5, 2
DISCOUNT, LAMBDA = 0.9, 0.8


def test_advantages_go_on_over_episodes_and_end_with_the_meeting() -> None:
    rng = np.random.default_rng(0)
    shape = (STEPS, COPIES, SEATS)
    reward, value = rng.normal(size=shape), rng.normal(size=shape)
    last = rng.normal(size=shape[1:])
    alive = rng.random(shape) < 0.7
    ends = np.repeat(rng.random((STEPS, COPIES, 1)) < 0.2, SEATS, axis=-1)
    stays = rng.random(shape[1:]) < 0.5
    # A seat that was out when a meeting ended, and did not come back: nothing follows.
    alive[-3:, 0, 0], ends[-2, 0], stays[0, 0] = False, True, False
    reward = np.where(alive, reward, 0.0)
    given = (jnp.asarray(x, jnp.float32) for x in (reward, value, last))
    found = jax.jit(meeting_gae, static_argnums=(6, 7))(
        *given, stays, alive, ends, DISCOUNT, LAMBDA
    )
    assert ends.any() and (~alive & ends).any() and (~stays & ~alive[-1]).any()
    for copy in range(COPIES):
        for seat in range(SEATS):
            slow = slow_advantages(
                [x[:, copy, seat] for x in (reward, value, alive, ends)],
                last[copy, seat] if stays[copy, seat] else None,
            )
            np.testing.assert_allclose(found[:, copy, seat], slow, atol=1e-5)


def test_who_is_in_the_game_after_the_last_step() -> None:
    """All after the end of an episode; else those who did not leave. For others their own last
    value stands for what follows."""
    shape = (1, 2, 3)
    seen = Observation(
        jnp.zeros((*shape, 0, 0, 0)), jnp.zeros((*shape, 1)), jnp.ones((*shape, 2), bool)
    )
    zeros = jnp.zeros(shape)
    played = Trajectory(
        observation=seen,
        action=jnp.zeros(shape, jnp.int32),
        log_policy=jnp.zeros((*shape, 2)),
        truncated=jnp.zeros(shape, bool),
        final=seen,
        last=jax.tree.map(lambda x: x[0], seen),
        episode_reward=zeros,
        episode_steps=jnp.zeros(shape, jnp.int32),
        reward=zeros,
        alive=jnp.ones(shape, bool).at[0, :, 2].set(False),
        terminated=jnp.zeros(shape, bool).at[0, :, 1].set(True),
        over=jnp.array([[True, False]]),
        meeting_over=None,
    )
    value, last = jnp.full(shape, jnp.float32(2)), jnp.full(shape[1:], jnp.float32(5))
    asked = SimpleNamespace(config=RL2Config(discount=DISCOUNT, gae_lambda=LAMBDA))
    found = RL2.advantages(asked, played, value, value, last)
    there, gone = DISCOUNT * 5.0 - 2.0, DISCOUNT * 2.0 - 2.0
    np.testing.assert_allclose(found[0], [[there, there, 0.0], [there, gone, 0.0]], atol=1e-6)


def slow_advantages(played: list[np.ndarray], last: float | None) -> list[float]:
    """Sums over the steps in the game that follow in the same meeting, one by one."""
    reward, value, alive, ends = played
    advantages = []
    for begin in range(STEPS):
        if not alive[begin]:
            advantages.append(0.0)
            continue
        over = next((t for t in range(begin, STEPS) if ends[t]), None)
        until = STEPS if over is None else over + 1
        steps = [t for t in range(begin, until) if alive[t]]
        values = [*value[steps], 0.0 if over is not None else value[steps[-1]]]
        if over is None and last is not None:
            values[-1] = last
        total, weight = 0.0, 1.0
        for number, t in enumerate(steps):
            total += weight * (reward[t] + DISCOUNT * values[number + 1] - values[number])
            weight *= DISCOUNT * LAMBDA
        advantages.append(total)
    return advantages
