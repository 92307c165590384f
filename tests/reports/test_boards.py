"""States as data that a page can draw."""

import base64
import io
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from PIL import Image

import coplay
from coplay.core.layout import Icon, Layout, PlacedThing
from coplay.reports.boards import Boards


class Shown(coplay.Game):
    """A game of one's own that only has `draw`, or only `text`."""

    name = "shown"
    action_names = ("a", "b")

    def draw(self, state, cell=48):
        return np.full((4, 6, 3), int(state), np.uint8)


class Told(coplay.Game):
    name = "told"
    action_names = ("a", "b")

    def text(self, state):
        return f"<{int(state)}>"


def test_a_game_that_only_has_draw_gets_pictures_each_once() -> None:
    boards = Boards(Shown())
    found = [boards.board(jnp.int32(state)) for state in (7, 9, 7)]
    assert found == [{"image": 0}, {"image": 1}, {"image": 0}]
    kind, data = boards.shared()["images"][1].split(",")
    assert kind == "data:image/png;base64"
    picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"))
    np.testing.assert_array_equal(picture, np.full((4, 6, 3), 9))


def test_text_is_shown_where_there_is_no_picture_and_nothing_where_there_is_neither() -> None:
    assert Boards(Told()).board(jnp.int32(3)) == {"text": "<3>"}

    class Bare(coplay.Game):
        name = "bare"
        action_names = ("a",)

    assert Boards(Bare()).board(jnp.int32(3)) is None


def test_icons_of_one_name_are_told_apart() -> None:
    def coin(radius: float) -> Icon:
        def icon(pen, x, y, size):
            pen.ellipse(x, y, radius, radius, "#112233")

        return icon

    class Coins(coplay.Game):
        name = "coins"
        action_names = ("a",)
        looks: ClassVar[list[Icon]] = [coin(0.1), coin(0.2)]

        def layout(self, state):
            things = [PlacedThing(self.looks[at], at, 0.5, 1.0) for at in (0, 1, 0)]
            return Layout(3, 1, things, [])

    boards = Boards(Coins())
    board = boards.board(jnp.int32(0))
    assert board is not None
    names = [thing[0] for thing in board["things"]]
    assert names == ["icon", "icon-2", "icon"] and len(boards.icons) == 2
    assert 'rx="0.1"' in boards.icons["icon"] and 'rx="0.2"' in boards.icons["icon-2"]
