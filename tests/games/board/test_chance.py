"""What happens by chance on a board: evenly, and by places instead of seats."""

import jax
import jax.numpy as jnp
import numpy as np

from coplay.games.board.chance import drawn_cell, first_come
from coplay.games.board.walls import random_words


def test_cells_of_a_mask_are_drawn_evenly_and_no_others() -> None:
    among = jnp.array([False, True, False, True, True, False])
    words = random_words(jax.random.key(0), 6000)
    found = np.bincount(jax.vmap(drawn_cell, (0, None))(words, among), minlength=6)
    assert found[[0, 2, 5]].sum() == 0 and found.sum() == 6000
    assert (np.abs(found[[1, 3, 4]] - 2000) < 5 * (6000 * 2 / 9) ** 0.5).all()


def test_one_of_several_gets_a_thing_and_who_does_not_hang_on_seats() -> None:
    contenders = jnp.array([[True, False], [True, False], [True, True], [False, False]])
    words = random_words(jax.random.key(1), 4 * 3000).reshape(3000, 4)
    place, order = jnp.array([0, 1, 2, 3]), jnp.array([2, 0, 3, 1])
    wins = jax.vmap(first_come, (0, None, None))
    found = np.asarray(wins(words, place, contenders))
    assert (found.sum(axis=1) == [1, 1]).all() and found[:, 2, 1].all() and not found[:, 3].any()
    assert (np.abs(found[:, :3, 0].sum(axis=0) - 1000) < 5 * (3000 * 2 / 9) ** 0.5).all()
    moved = wins(words, place[order], contenders[order])
    np.testing.assert_array_equal(moved, found[:, order])
