"""Dispersion against plain Python; what is seen; who does what."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.core.errors import UserError
from coplay.games.check import check_game
from coplay.games.dispersion import Dispersion, DispersionConfig
from tests.games import dispersion_reference as plain


def played(game: Dispersion, policies: Any, key: int = 0) -> tuple[Any, np.ndarray]:
    """The last state of an episode, and the rewards of each seat. policies: by seat, of the game's
    own; the most probable action is taken."""
    scripted = game.scripted

    @jax.jit
    def run(key: jax.Array) -> Any:
        def one(carry: Any, _: Any) -> Any:
            state, total = carry
            actions = jnp.stack(
                [
                    jnp.argmax(scripted[name](game, game.ego_state(state, seat)))
                    for seat, name in enumerate(policies)
                ]
            )
            going = game.alive(state)[0]
            after, outcome = game.step(key, state, actions)
            state = jax.tree.map(lambda new, old: jnp.where(going, new, old), after, state)
            return (state, total + outcome.reward), None

        start = (game.reset(key), jnp.zeros(game.seats))
        return jax.lax.scan(one, start, None, game.horizon)[0]

    state, total = run(jax.random.key(key))
    return state, np.asarray(total)


@pytest.mark.parametrize("share", [False, True])
def test_like_plain_python(share: bool) -> None:
    game = Dispersion(DispersionConfig(players=3, size=3, horizon=12, share_reward=share))
    step, rng = jax.jit(game.step), np.random.default_rng(0)
    reset = jax.jit(game.reset)
    for seed in range(3):
        state = reset(jax.random.key(seed))
        food = [(float(x), float(y)) for x, y in np.asarray(state.food)]
        other = plain.PlainDispersion([(0, 0)] * 3, food, {0, 1, 2}, 0)
        done = cut = False
        while not (done or cut):
            actions = rng.integers(0, 5, 3)
            state, outcome = step(jax.random.key(0), state, jnp.asarray(actions))
            other, rewards, done, cut = plain.step(other, actions.tolist(), 3, 12, 1.0, share)
            np.testing.assert_allclose(outcome.reward, rewards, atol=1e-6)
            np.testing.assert_array_equal(state.place, other.places)
            assert set(np.flatnonzero(state.left)) == other.left
            assert bool(outcome.terminated.all()) == done and bool(outcome.truncated) == cut


def test_all_see_the_same_at_first_and_not_the_others() -> None:
    game = Dispersion(DispersionConfig(players=4))

    @jax.jit
    def seen(key: jax.Array) -> Any:
        state = game.reset(key)
        moved, _ = game.step(key, state, jnp.asarray([0, 4, 4, 4]))
        return game.observe(state).features, game.observe(moved).features

    views, after = map(np.asarray, seen(jax.random.key(0)))
    assert views.shape == (4, 3 + 3 * 4) and (views == views[0]).all()
    assert (after[1:] == after[1]).all() and not np.array_equal(after[0], after[1])


@pytest.mark.parametrize("players", [2, 8])
def test_views_of_the_nearest_food_have_one_size(players: int) -> None:
    game = Dispersion(DispersionConfig(players=players, nearest=3))

    @jax.jit
    def shown(key: jax.Array) -> Any:
        state = game.reset(key)._replace(left=jnp.arange(players) != 0)
        return state, game.observe(state).features

    state, features = shown(jax.random.key(0))
    seen = np.asarray(features)[0, 3:].reshape(3, 3)
    there = min(3, players - 1)
    np.testing.assert_array_equal(seen[:, 2], [1] * there + [0] * (3 - there))
    far = np.linalg.norm(seen[:there, :2], axis=1)
    assert (np.diff(far) >= 0).all()
    others = np.linalg.norm(np.asarray(state.food)[1:], axis=1)
    assert far[0] * 20 == pytest.approx(others.min(), rel=1e-5)


@pytest.mark.parametrize("nearest", [0, 2])
def test_food_is_declared_as_a_list(nearest: int) -> None:
    game = Dispersion(DispersionConfig(players=3, size=3, nearest=nearest))
    (foods,) = game.entities
    state = jax.jit(game.reset)(jax.random.key(2))
    state = state._replace(left=jnp.asarray([True, False, True]))
    seen = np.asarray(game.observe(state).features)[:, np.array(foods.places)]
    assert seen.shape == (3, nearest or 3, 3)
    ways = np.asarray(state.food)[[0, 2]] / 6
    for rows in seen:
        there = rows[rows[:, foods.there] != 0, :2]
        np.testing.assert_allclose(sorted(there.tolist()), sorted(ways.tolist()), atol=1e-6)


def test_who_parts_eats_all_and_who_goes_together_does_not() -> None:
    game = Dispersion(DispersionConfig(players=3, horizon=20))
    apart, rewards = played(game, ["food-0", "food-1", "food-2"])
    together, shared = played(game, ["nearest"] * 3)
    assert not apart.left.any() and rewards.sum() == pytest.approx(3, abs=1e-4)
    assert together.left.any() and (shared == shared[0]).all()


@pytest.mark.slow
def test_it_keeps_the_rules_of_games() -> None:
    check_game(Dispersion(DispersionConfig(players=3, size=4, horizon=6, nearest=2)))


def test_it_can_be_drawn() -> None:
    game = Dispersion(DispersionConfig(players=3, size=4))
    state = jax.jit(game.reset)(jax.random.key(1))
    assert game.draw(state, 20).shape == (160, 160, 3)
    assert game.text(state).count("2") == 1 and len(game.layout(state).players) == 3


def test_reach_covers_the_lattice() -> None:
    with pytest.raises(UserError, match=r"reach must be at least 0\.75"):
        DispersionConfig(reach=0.5)
