"""What board games share: cells, moves, distances, windows."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.core.errors import UserError
from coplay.games.board.board_game import STAY, BoardConfig, approach, uniform
from coplay.games.stag_hunt import HUNT_HARE, StagHunt, StagHuntConfig

GAME = StagHunt(StagHuntConfig(height=3, width=4, players=2, stags=1, hares=2))


def test_things_are_scattered_over_different_cells() -> None:
    for seed in range(20):
        state = GAME.reset(jax.random.key(seed))
        cells = [*state.cell.tolist(), *state.prey.tolist()]
        assert len(set(cells)) == 5 and all(0 <= cell < 12 for cell in cells)


def test_moves_stay_on_the_board() -> None:
    state = GAME.reset(jax.random.key(0))._replace(cell=jnp.array([0, 11], jnp.int16))
    up, down, left, right = range(4)
    legal = np.asarray(GAME.legal_moves(state))
    assert legal[0].tolist() == [False, True, False, True]
    assert legal[1].tolist() == [True, False, True, False]
    for action, cell in ((down, 4), (right, 1)):
        chosen, executed = GAME.executed(GAME.legal(state), jnp.array([action, STAY]))
        assert GAME.moved(state, chosen).tolist() == [cell, 11] and executed[0] == action
    chosen, executed = GAME.executed(GAME.legal(state), jnp.array([up, left]))
    assert GAME.moved(state, chosen).tolist() == [0, 10] and executed.tolist() == [STAY, left]


def test_distances_are_in_moves() -> None:
    state = GAME.reset(jax.random.key(0))
    cells = jnp.arange(12)
    found = GAME.distance(state, cells[:, None], cells[None, :])
    for one in range(12):
        for other in range(12):
            apart = abs(one // 4 - other // 4) + abs(one % 4 - other % 4)
            assert found[one, other] == apart


def test_a_scripted_player_goes_to_the_nearest_thing_and_takes_it() -> None:
    state = GAME.reset(jax.random.key(0))._replace(
        cell=jnp.array([0, 5], jnp.int16), prey=jnp.array([11, 2, 8], jnp.int16)
    )
    hares, there = state.prey[1:], jnp.array([True, True])
    probs = approach(GAME, state, GAME.legal(state)[0], hares, there, HUNT_HARE)
    np.testing.assert_allclose(probs, [0, 0.5, 0, 0.5, 0, 0, 0])  # both hares are 2 away
    state = state._replace(cell=jnp.array([2, 5], jnp.int16))
    probs = approach(GAME, state, GAME.legal(state)[0], hares, there, HUNT_HARE)
    assert int(jnp.argmax(probs)) == HUNT_HARE and probs[HUNT_HARE] == 1


def test_uniform_over_nothing_is_nothing() -> None:
    np.testing.assert_allclose(uniform(jnp.array([True, False, True])), [0.5, 0, 0.5])
    np.testing.assert_array_equal(uniform(jnp.zeros(3, bool)), 0.0)


def test_boards_that_do_not_fit_into_16_bits_are_refused() -> None:
    with pytest.raises(UserError, match="200x200 is too large: at most 32000 cells"):
        BoardConfig(height=200, width=200)
    with pytest.raises(UserError, match="horizon must be between 1 and 32000"):
        BoardConfig(horizon=40_000)


# --- building blocks of partners -----------------------------------------------------------------


def plain_distance(a: int, b: int, width: int) -> int:
    return abs(a // width - b // width) + abs(a % width - b % width)


def plain_follow(cells: list[int], legal: np.ndarray, width: int, away: bool) -> set[int]:
    """The actions of seat 0 towards the nearest other player, or away from the others."""
    me, others = cells[0], cells[1:]
    takes = {action for action in range(5, len(legal)) if legal[action]}
    nearest = min(plain_distance(me, other, width) for other in others)
    steps = {0: -width, 1: width, 2: -1, 3: 1, 4: 0}
    if away:
        if takes:
            return takes
        room = {
            action: min(plain_distance(me + step, other, width) for other in others)
            for action, step in steps.items()
            if legal[action]
        }
        return {action for action, far in room.items() if far == max(room.values())}
    if nearest == 0:
        return takes or {4}
    targets = [other for other in others if plain_distance(me, other, width) == nearest]
    return {
        action
        for action in range(4)
        if legal[action]
        and any(plain_distance(me + steps[action], one, width) < nearest for one in targets)
    }


@pytest.mark.slow
@pytest.mark.parametrize("block", ["follow", "avoid"])
def test_following_and_avoiding_agree_with_a_plain_computation(block: str) -> None:
    game = StagHunt(StagHuntConfig(height=3, width=4, players=3, stags=1, hares=2))
    rng = np.random.default_rng(0)
    states = jax.vmap(game.reset)(jax.random.split(jax.random.key(0), 60))
    states = states._replace(cell=jnp.asarray(rng.integers(12, size=(60, 3)), jnp.int16))
    probs = np.asarray(jax.jit(jax.vmap(lambda state: game.blocks[block](game, state)))(states))
    legal = np.asarray(jax.vmap(game.legal)(states))[:, 0]
    for copy in range(60):
        wanted = plain_follow(states.cell[copy].tolist(), legal[copy], 4, block == "avoid")
        assert set(np.flatnonzero(probs[copy])) == wanted
        np.testing.assert_allclose(probs[copy].sum(), 1, rtol=1e-6)


def test_the_farthest_hare_is_gone_to_and_any_hare_is_hunted() -> None:
    game = StagHunt(StagHuntConfig(height=1, width=5, players=1, stags=0, hares=2))
    state = game.reset(jax.random.key(0))._replace(prey=jnp.array([0, 4], jnp.int16))
    for cell, action in {1: 3, 3: 2, 0: 6, 4: 6}.items():
        placed = state._replace(cell=jnp.array([cell], jnp.int16))
        assert np.flatnonzero(game.blocks["far hare"](game, placed)).tolist() == [action]


@pytest.mark.parametrize("name", ["stag-hunt", "snowdrift"])
def test_events_are_those_of_the_step(name: str) -> None:
    game: Any = coplay.make_game(name, height=3, width=3, players=3)
    steps = 12

    def play(key: Any) -> Any:
        def step(state: Any, key: Any) -> Any:
            keys = jax.random.split(key)
            eager = jnp.where(jnp.arange(game.actions) > 4, 2.0, 0.0)
            logits = jnp.where(game.legal(state), eager, -jnp.inf)
            action = jax.random.categorical(keys[0], logits)
            after, outcome = game.step(keys[1], state, action)
            return after, (state, action, outcome.reward, after, game.events(state, after))

        return jax.lax.scan(step, game.reset(key), jax.random.split(key, steps))[1]

    state, action, reward, after, events = jax.tree.map(
        np.asarray, jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(1), 200))
    )
    alive = np.asarray(jax.vmap(jax.vmap(game.alive))(state))
    index = {title: place for place, title in enumerate(game.event_names)}
    assert not events[~alive].any()
    np.testing.assert_array_equal(events[..., index["waited"]] > 0, alive & (action == 4))
    np.testing.assert_array_equal(events[..., index["moved"]] > 0, alive & (action < 4))
    first = events[..., 0] > 0
    if name == "stag-hunt":
        # Half of a stag or a third of it, a hare or a part of it.
        np.testing.assert_array_equal(first, (action == 5) & (reward > 0) & alive)
        np.testing.assert_array_equal(events[..., 1] > 0, (action == 6) & (reward > 0) & alive)
    else:
        gone = state.left & ~after.left
        mine = gone[..., None, :] & (state.cell[..., None] == state.drift[..., None, :])
        removed = mine.any(-1) & (action == 5) & alive
        np.testing.assert_array_equal(first, removed)
        others = removed.sum(-1, keepdims=True) - removed > 0
        np.testing.assert_array_equal(events[..., 1] > 0, others & alive)
    assert first.any() and not first.all()
    there = np.asarray(jax.vmap(jax.vmap(game.present))(after))
    row, column = after.cell // 3, after.cell % 3
    far = abs(row[..., None] - row[..., None, :]) + abs(column[..., None] - column[..., None, :])
    near = (far <= 1) & there[..., None] & there[..., None, :] & ~np.eye(3, dtype=bool)
    np.testing.assert_array_equal(events[..., index["near another"]] > 0, near.any(-1) & alive)
