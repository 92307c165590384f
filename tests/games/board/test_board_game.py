"""What board games share: cells, moves, distances, windows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

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
