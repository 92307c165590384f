"""The diagnostic games: what they show, what they reward, and when they end."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.core.errors import UserError
from coplay.games.diagnostic import (
    HiddenKind,
    HiddenKindConfig,
    HiddenTarget,
    HiddenTargetConfig,
    Identity,
    IdentityConfig,
)


def test_seat_i_is_rewarded_for_action_i() -> None:
    game = Identity(IdentityConfig(players=3, horizon=2))
    state = game.reset(jax.random.key(0))
    state, outcome = game.step(jax.random.key(1), state, jnp.array([0, 0, 2]))
    np.testing.assert_array_equal(outcome.reward, [1.0, 0.0, 1.0])
    assert not outcome.terminated.any() and game.alive(state).all()
    state, outcome = game.step(jax.random.key(1), state, jnp.array([0, 1, 2]))
    assert outcome.terminated.all() and not outcome.truncated and not game.alive(state).any()


def test_targets_are_hidden_and_differ_from_episode_to_episode() -> None:
    game = HiddenTarget(HiddenTargetConfig(players=2, choices=5))
    keys = jax.random.split(jax.random.key(0), 40)
    targets = np.stack([game.reset(key).target for key in keys])
    assert set(targets.ravel()) == set(range(5)) and game.actions == 5
    views = [game.observe(game.reset(key)).features for key in keys[:2]]
    np.testing.assert_array_equal(*views)


def test_who_does_as_the_others_is_rewarded_and_nobody_sees_them() -> None:
    game = HiddenKind(HiddenKindConfig(players=3, choices=2, horizon=1))
    state = game.reset(jax.random.key(0))
    before = game.observe(state)
    state, outcome = game.step(jax.random.key(1), state, jnp.array([0, 1, 1]))
    np.testing.assert_array_equal(outcome.reward, [0.0, 0.5, 0.5])
    np.testing.assert_array_equal(game.last_actions(game.ego_state(state, 1)), [1, 1, 0])
    assert outcome.terminated.all()
    np.testing.assert_array_equal(before.features, game.observe(state).features)


@pytest.mark.parametrize("field", ["players", "choices", "horizon"])
def test_sizes_are_positive(field: str) -> None:
    with pytest.raises(UserError, match=f"{field} must be above 0, not 0"):
        HiddenTargetConfig(**{field: 0})
