"""Centred boards, against a loop over cells."""

import jax.numpy as jnp
import numpy as np
import pytest

from coplay.nn.ego_centred import centre, centre_indices, centred_size

BOARD = (3, 5, 4)


def views(count: int) -> np.ndarray:
    """Random boards with the own player somewhere on plane 0, and two numbers after them."""
    random = np.random.default_rng(0)
    planes = (random.random((count, *BOARD)) < 0.3).astype(np.float32)
    planes[..., 0] = 0.0
    row, column = random.integers(BOARD[0], size=count), random.integers(BOARD[1], size=count)
    planes[np.arange(count), row, column, 0] = 1.0
    return np.concatenate([planes.reshape(count, -1), random.random((count, 2))], axis=1)


def slowly(view: np.ndarray) -> np.ndarray:
    height, width, planes = BOARD
    board = view[: height * width * planes].reshape(BOARD)
    (me,) = np.argwhere(board[..., 0])
    shifted = np.zeros((2 * height - 1, 2 * width - 1, planes - 1))
    for row in range(height):
        for column in range(width):
            place = row - me[0] + height - 1, column - me[1] + width - 1
            shifted[place] = board[row, column, 1:]
    return np.concatenate([board[..., 0].ravel(), shifted.ravel(), view[-2:]])


def test_centred_views_are_shifted_boards() -> None:
    given = views(20)
    found = centre(jnp.asarray(given), BOARD)
    assert found.shape == (20, centred_size(BOARD) + 2)
    np.testing.assert_allclose(found, np.stack([slowly(view) for view in given]), rtol=1e-6)


@pytest.mark.slow
def test_marks_of_centred_views() -> None:
    """Marks on the board and beyond it, the last of them nowhere."""
    given = views(20)
    given[:, -2:] = [1.0, 0.0]
    for view in given:
        own = view[: np.prod(BOARD)].reshape(BOARD)[..., 0].argmax() * BOARD[-1]
        indices = np.append(np.flatnonzero(view), view.size)
        indices = np.append(own, indices[indices != own])
        found = centre_indices(jnp.asarray(indices), BOARD)
        np.testing.assert_array_equal(
            np.sort(found), np.append(np.flatnonzero(slowly(view)), centred_size(BOARD) + 2)
        )


def test_nothing_is_seen_once_the_own_player_left() -> None:
    gone = views(3)
    gone[:, : np.prod(BOARD)].reshape(3, *BOARD)[..., 0] = 0.0
    assert not np.asarray(centre(jnp.asarray(gone), BOARD))[:, :-2].any()
