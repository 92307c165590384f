"""The mixture that is best in the worst case, and what trees assume of the other side."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.search.worst_case import assumed_actions, by_joint_action, maximin, opposing


@pytest.mark.parametrize(
    ("table", "legal", "mixture"),
    [
        ([[1, -1], [-1, 1]], [1, 1], [0.5, 0.5]),
        ([[3, 0], [-1, 1]], [1, 1], [0.2, 0.8]),  # 3p = 1 - 2p
        ([[2, 1], [3, 0]], [1, 1], [1.0, 0.0]),  # the first action is better against both
        ([[0, -1, 1], [1, 0, -1], [-1, 1, 0]], [1, 1, 1], [1 / 3, 1 / 3, 1 / 3]),
        ([[9, 1, -1], [9, -1, 1]], [0, 1, 1], [0.0, 0.5, 0.5]),
    ],
)
def test_maximin(table: list, legal: list, mixture: list) -> None:
    """Rows are what the other side may do, columns own actions."""
    found = maximin(jnp.array(table, float), jnp.array(legal, bool))
    np.testing.assert_allclose(found, mixture, atol=0.02)


def test_trees_assume_all_that_the_others_may_do() -> None:
    seed = jax.random.bits(jax.random.key(0), (4 * 5,), jnp.uint32)
    legal = jnp.broadcast_to(jnp.array([[True, True], [True, False]]), (20, 2, 2))
    first = np.asarray(assumed_actions(seed, legal, 4)).reshape(4, 5, 2)
    assert (first[..., 0].sum(0) == 2).all(), "each of two actions in two of four trees"
    assert (first[..., 1] == 0).all(), "only legal actions"


def test_trees_that_assume_the_same_are_averaged() -> None:
    """Three trees of one copy with two actions: the first two assume the same. Of the second action
    only the last tree knows anything."""
    q = jnp.array([[[1.0, 9.0]], [[3.0, 9.0]], [[5.0, 2.0]]])
    seen = jnp.array([[[True, False]], [[True, False]], [[True, True]]])
    joint = jnp.array([[[0]], [[0]], [[1]]])
    found = by_joint_action(q, seen, joint, jnp.array([[0.0, -1.0]]))
    np.testing.assert_array_equal(found[:, 0], [[2.0, -1.0], [2.0, -1.0], [5.0, 2.0]])


def test_sides_move_with_the_players() -> None:
    game = coplay.make_game("predator-prey", height=5, width=5)
    state = game.reset(jax.random.key(0))
    of_seats = [game.ego_state(state, seat) for seat in range(4)]
    against = opposing(game, jax.tree.map(lambda *x: jnp.stack(x), *of_seats))
    expected = [[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1]]
    np.testing.assert_array_equal(against, np.array(expected, bool))
