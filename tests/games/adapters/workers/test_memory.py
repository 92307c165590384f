"""Arrays that processes share."""

import os

import numpy as np

from coplay.games.adapters.workers.memory import ALIGNED, new_file, open_arrays
from coplay.games.adapters.workers.seats import Seat, Seats

SEATS = Seats(
    tuple(
        Seat(agent, (2, 3, 1), "uint8", 5, True, 0, 0, False, False, actions, 0)
        for agent, actions in (("a", 4), ("b", 2))
    ),
    scores=("won",),
    global_state=7,
)


def test_two_openings_see_the_same_numbers() -> None:
    file = new_file(SEATS, rows=3, workers=2)
    try:
        mine, theirs = (open_arrays(file, SEATS, 3, 2) for _ in range(2))
    finally:
        os.close(file)
    mine.action[1] = [3, 1]
    mine.after.planes[2, 0] = 9
    mine.fresh.global_state[0] = np.arange(7)
    np.testing.assert_array_equal(theirs.action, [[0, 0], [3, 1], [0, 0]])
    assert theirs.after.planes.sum() == 9 * 6 and not theirs.fresh.planes.any()
    np.testing.assert_array_equal(theirs.fresh.global_state[0], np.arange(7))


def test_arrays_have_the_shapes_of_all_seats_and_are_aligned() -> None:
    file = new_file(SEATS, rows=3, workers=2)
    arrays = open_arrays(file, SEATS, 3, 2)
    os.close(file)
    assert arrays.after.legal.shape == (3, 2, 4), "as many actions as the seat with most"
    assert arrays.score.shape == (3, 1) and arrays.at.shape == (2, 4)
    starts = [x.ctypes.data % ALIGNED for x in (arrays.reward, arrays.at, *arrays.after)]
    assert not any(starts)
