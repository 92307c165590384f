"""Colours and the pen."""

import numpy as np

from coplay.games.drawing import Pen, blend, seat_colour, text_width


def test_seats_have_different_colours() -> None:
    assert len({seat_colour(seat) for seat in range(40)}) == 40


def test_blending_goes_from_one_colour_to_the_other() -> None:
    assert blend("#000000", "#FFFFFF", 0.0) == (0, 0, 0)
    assert blend("#000000", "#FFFFFF", 1.0) == (255, 255, 255)
    assert blend((10, 20, 30), (20, 40, 60), 0.5) == (15, 30, 45)


def test_shapes_are_where_they_were_drawn() -> None:
    pen = Pen(20, 30)
    pen.rectangle(5, 2, 10, 4, "#FF0000")
    picture = pen.picture()
    assert picture.shape == (20, 30, 3) and picture.dtype == np.uint8
    red = (picture == [255, 0, 0]).all(-1)
    rows, columns = np.nonzero(red)
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (2, 5, 5, 14)


def test_words_are_as_wide_as_they_are_long_and_large() -> None:
    assert 0 < text_width("ab", 10) < text_width("abc", 10) < text_width("abc", 20)
