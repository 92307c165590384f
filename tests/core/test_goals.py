"""Goals of both games: what is open, what a step realises, labels in hindsight, priors."""

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.core.goals import hindsight, restricted
from coplay.games.registry import game_parts
from coplay.games.snowdrift import REMOVE, Snowdrift, SnowdriftConfig
from coplay.games.stag_hunt import HUNT_HARE, HUNT_STAG, STAY, StagHunt, StagHuntConfig

KEY = jax.random.key(0)
HUNT = StagHunt(StagHuntConfig(height=2, width=4, players=3, stags=1, hares=2))
DRIFTS = Snowdrift(SnowdriftConfig(height=2, width=4, players=2, drifts=3, horizon=20))


def played(game: Any, state: Any, joint: list[list[int]]) -> list[Any]:
    states = [state]
    for actions in joint:
        states.append(game.step(KEY, states[-1], jnp.array(actions))[0])
    return states


def labels(game: Any, states: list[Any], over_at: int | None) -> np.ndarray:
    realised = jnp.stack([game.goals.realised(a, b) for a, b in pairwise(states)])
    over = jnp.arange(len(realised)) == (-1 if over_at is None else over_at)
    return np.asarray(hindsight(realised, over, game.goals.unrealised))


def test_hindsight_fills_backwards_and_stops_at_ends_of_episodes() -> None:
    realised = jnp.array([-1, 1, -1, -1, 0, -1, -1, -1, 2, -1])[:, None]
    over = jnp.array([0, 0, 0, 0, 0, 0, 1, 0, 0, 0], bool)
    assert hindsight(realised, over, 7)[:, 0].tolist() == [1, 1, 0, 0, 0, 7, 7, 2, 2, -1]
    assert hindsight(realised, over, -1)[:, 0].tolist() == [1, 1, 0, 0, 0, -1, -1, 2, 2, -1]


def test_stag_hunt_is_labelled_by_the_prey_caught_at_exit() -> None:
    state = HUNT.reset(KEY)._replace(
        cell=np.array([0, 1, 6], np.int16), prey=np.array([1, 5, 3], np.int16)
    )
    joint = [
        [3, STAY, STAY],  # seat 0 goes to the stag
        [HUNT_STAG, HUNT_STAG, STAY],  # both catch it
        [STAY, STAY, 2],
        [STAY, STAY, HUNT_HARE],
    ]
    states = played(HUNT, state, joint)
    goals = HUNT.goals
    assert labels(HUNT, states, over_at=3)[:, 0].tolist()[:2] == [0, 0]
    assert labels(HUNT, states, over_at=3)[:, 2].tolist() == [1, 1, 1, 1]
    assert labels(HUNT, states[:3], over_at=1)[:, 2].tolist() == [-1, -1], "caught nothing"
    assert np.asarray(goals.open(states[0])).tolist() == [[True, True]] * 3
    assert np.asarray(goals.open(states[2])).tolist() == [[False, True]] * 3
    lonely = states[0]._replace(alive=np.array([False, False, True]))
    assert np.asarray(goals.open(lonely)).tolist() == [[False, True]] * 3, "no partner for a stag"
    nothing = states[0]._replace(prey_alive=np.zeros(3, bool))
    assert np.asarray(goals.open(nothing)).all()


def test_stag_hunt_habit_is_the_kind_caught_and_the_prior_follows_it() -> None:
    goals = HUNT.goals
    counts = jnp.array([[0, 0], [1, 0], [0, 1]])
    assert goals.habit(counts).tolist() == [-1, 0, 1]
    habits = jnp.array([0.25, 0.75])
    none, everything = jnp.zeros(2, jnp.int32), jnp.array([True, True])
    np.testing.assert_allclose(goals.prior(habits, none, everything), [0.25, 0.75])
    np.testing.assert_allclose(goals.prior(habits, none, jnp.array([True, False])), [1.0, 0.0])


def test_snowdrift_is_labelled_by_the_next_drift_and_by_none_afterwards() -> None:
    state = DRIFTS.reset(KEY)._replace(
        cell=np.array([0, 7], np.int16), drift=jnp.array([1, 3, 6], jnp.int16)
    )
    joint = [[3, 2], [REMOVE, STAY], [3, REMOVE], [3, STAY], [REMOVE, STAY]]
    states = played(DRIFTS, state, joint)
    both = labels(DRIFTS, states, over_at=4)
    assert both[:, 0].tolist() == [0, 0, 1, 1, 1]
    assert both[:, 1].tolist() == [2, 2, 2, 3, 3], "none is the last candidate"
    assert labels(DRIFTS, states, over_at=None)[:, 1].tolist() == [2, 2, 2, -1, -1]
    assert np.asarray(DRIFTS.goals.open(states[3]))[0].tolist() == [False, True, False, True]


def test_two_who_remove_a_drift_together_both_realise_it() -> None:
    state = DRIFTS.reset(KEY)._replace(
        cell=np.array([1, 1], np.int16), drift=jnp.array([1, 3, 6], jnp.int16)
    )
    states = played(DRIFTS, state, [[REMOVE, REMOVE]])
    assert DRIFTS.goals.realised(*states).tolist() == [0, 0]


def test_snowdrift_features_are_the_way_from_the_seat() -> None:
    state = DRIFTS.reset(KEY)._replace(
        cell=jnp.array([0, 6], jnp.int16), drift=jnp.array([5, 6, 3], jnp.int16)
    )
    features = np.asarray(DRIFTS.goals.features(state))
    assert features.shape == (2, 4, 7)
    np.testing.assert_allclose(features[0, 0], [0, 1, 0, 1, 0.5, 0.25, 0])  # a row down, one right
    np.testing.assert_allclose(features[1, 0], [0, 0, 1, 0, 0, -0.25, 0])
    np.testing.assert_allclose(features[1, 1], [0] * 7)  # on it
    np.testing.assert_allclose(features[1, 2], [1, 0, 0, 1, -0.5, 0.25, 0])
    np.testing.assert_allclose(features[:, 3], [[0, 0, 0, 0, 0, 0, 1]] * 2)


@pytest.mark.parametrize(
    ("so_far", "open_", "expected"),
    [
        # habits: 0.4 removes 0, 0.3 removes 1, 0.2 removes 2, 0.1 removes 3
        (0, [1, 1, 1, 1], [0.2, 0.2, 0.2, 0.4]),
        (1, [1, 0, 1, 1], [0.25, 0, 0.25, 0.5]),  # (0.2 + 0.1) / (0.3 + 0.2 + 0.1)
        (2, [0, 0, 1, 1], [0, 0, 1 / 3, 2 / 3]),
        (3, [0, 0, 0, 1], [0, 0, 0, 1.0]),
    ],
)
def test_snowdrift_prior_from_how_many_are_removed(
    so_far: int, open_: list[int], expected: list[float]
) -> None:
    habits, counts = jnp.array([0.4, 0.3, 0.2, 0.1]), jnp.array([so_far, 0, 0, 0])
    prior = DRIFTS.goals.prior(habits, counts, jnp.array(open_, bool))
    np.testing.assert_allclose(prior, expected, rtol=1e-6)
    assert DRIFTS.goals.habit(counts) == so_far


def test_weight_that_is_gone_leaves_the_open_candidates_even() -> None:
    prior = restricted(jnp.array([0.0, 1.0, 0.0]), jnp.array([True, False, True]))
    np.testing.assert_allclose(prior, [0.5, 0, 0.5])


@pytest.mark.parametrize("name", ["stag-hunt", "snowdrift", "coin-game"])
def test_no_persona_expects_more_than_the_game_gives(name: str) -> None:
    """Searches take values by personas as bounds from below."""
    kind, make = game_parts(name)
    game = make(kind())
    personas = jnp.arange(len(game.goals.personas))

    @jax.jit
    def play(key: Any) -> Any:
        def step(state: Any, key: Any) -> Any:
            legal = game.observe(state).legal
            act_key, step_key = jax.random.split(key)
            actions = jax.random.categorical(act_key, jnp.where(legal, 0.0, -jnp.inf))
            after, outcome = game.step(step_key, state, actions)
            realised = game.goals.realised(state, after)
            worth = jax.vmap(game.goals.persona_reward, (0, None, None))(
                jnp.broadcast_to(personas[:, None], (len(personas), game.seats)),
                outcome.reward,
                realised,
            )
            return after, (outcome.reward - worth, realised >= 0)

        first_key, key = jax.random.split(key)
        left_out, realised = jax.lax.scan(step, game.reset(first_key), jax.random.split(key, 40))[1]
        return jnp.sum(left_out, axis=0), jnp.sum(realised)

    left_out, realised = jax.vmap(play)(jax.random.split(KEY, 64))
    assert realised.sum() > 20, "random play realises some goals"
    assert (np.asarray(left_out) > -1e-5).all()
    assert (np.asarray(left_out) > 0.5).any(axis=(0, 2)).all(), "each leaves something out"
