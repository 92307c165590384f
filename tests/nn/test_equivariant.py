"""Networks that are the same in the mirror."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.core.grid import MOVES
from coplay.games.registry import make_game
from coplay.nn.equivariant import EquivariantPolicy, mirror, mirrorings

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("height", "width"), [(3, 3), (2, 3)])
def test_a_mirrored_board_gives_mirrored_moves(height: int, width: int) -> None:
    shape, actions = (height, width, 2), 6
    policy = EquivariantPolicy(shape, 2, 3, (16, 13, 8), actions, jax.random.key(0))
    boards = RNG.normal(size=(5, *shape)).astype(np.float32)
    rest = RNG.normal(size=(5, 2 + 4)).astype(np.float32)  # four that are not looked at
    z = jnp.asarray(RNG.normal(size=(5, 3)), jnp.float32)

    @jax.jit
    def logits(boards: jax.Array, rest: jax.Array) -> jax.Array:
        return policy(jnp.concatenate([boards.reshape(5, -1), rest], axis=1), z)

    found = np.asarray(logits(boards, rest))
    turned = mirrorings(height == width).turned
    assert len(turned) == (8 if height == width else 4)
    for g, move in enumerate(turned):
        other = np.asarray(logits(mirror(jnp.asarray(boards), g), rest))
        np.testing.assert_allclose(other[:, [*move, 4, 5]], found, rtol=1e-4, atol=1e-5)
    assert np.abs(found[:, :4] - found[:, :1]).max() > 1e-2  # directions are told apart
    rest[:, 2:] = 0
    np.testing.assert_array_equal(logits(boards, rest), found)


def test_moves_turn_like_boards() -> None:
    """A player that moves on a board, seen in the mirror, makes the mirrored move."""
    board = np.zeros((3, 3, 1), np.float32)
    board[1, 1] = 1
    for step, (down, right) in enumerate(MOVES):
        after = np.zeros_like(board)
        after[1 + down, 1 + right] = 1
        for g, turned in enumerate(mirrorings(True).turned):
            down, right = MOVES[turned[step]]
            assert mirror(jnp.asarray(after), g)[1 + down, 1 + right, 0] == 1


def test_the_first_actions_of_games_are_the_moves() -> None:
    for name in ("stag-hunt", "snowdrift"):
        assert make_game(name).action_names[:4] == ("up", "down", "left", "right")
