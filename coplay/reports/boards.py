"""States as plain data that a page can draw: places of things where the game gives a layout, else a
picture, else text."""

import base64
import io
from typing import Any

import jax
import numpy as np
from PIL import Image

from coplay.core.game import Game, State
from coplay.core.layout import Layout
from coplay.games.svg import icon_svg

COLOURS = 64  # of an embedded picture: smooth edges and a small file


class Boards:
    """Collects what the states of one game share.

    sheet: width, height and grid of the layouts; None where the game gives none.
    icons: name -> SVG elements. images: pictures as data addresses, each different one once.
    """

    def __init__(self, game: Game):
        self.game = game
        self.sheet: dict[str, Any] | None = None
        self.icons: dict[str, str] = {}
        self.images: list[str] = []
        self._known: dict[bytes, int] = {}
        self._names: dict[Any, str] = {}

    def shared(self) -> dict[str, Any]:
        """What a page needs beside the boards."""
        return {"sheet": self.sheet, "icons": self.icons, "images": self.images}

    def board(self, state: State) -> dict[str, Any] | None:
        """A state: {things, players, walls}, {image}, {text}, or None for a game that shows
        nothing."""
        state = jax.tree.map(_on_host, state)
        for form in (self._layout, self._image, self._text):
            try:
                return form(state)
            except NotImplementedError:
                continue
        return None

    def _layout(self, state: State) -> dict[str, Any]:
        layout = self.game.layout(state)
        self.sheet = {"width": layout.width, "height": layout.height, "grid": layout.grid}
        things = [
            [self._look(thing.look), *(round(value, 3) for value in thing[1:])]
            for thing in layout.things
        ]
        found: dict[str, Any] = {"things": things, "players": _places(layout)}
        if layout.walls:
            found["walls"] = [list(corner) for corner in layout.walls]
        return found

    def _look(self, look: Any) -> str:
        if isinstance(look, str):
            return look
        if look not in self._names:
            # Icons made by one function, such as coins of different colours, share its name.
            number = sum(known.__name__ == look.__name__ for known in self._names)
            self._names[look] = f"{look.__name__}-{number + 1}" if number else look.__name__
            self.icons[self._names[look]] = icon_svg(look)
        return self._names[look]

    def _image(self, state: State) -> dict[str, Any]:
        picture = np.asarray(self.game.draw(state))
        shape = picture.tobytes()
        if shape not in self._known:
            packed = io.BytesIO()
            image = Image.fromarray(picture).quantize(COLOURS)
            image.save(packed, "PNG", optimize=True)
            data = base64.b64encode(packed.getvalue()).decode()
            self._known[shape] = len(self.images)
            self.images.append(f"data:image/png;base64,{data}")
        return {"image": self._known[shape]}

    def _text(self, state: State) -> dict[str, Any]:
        return {"text": self.game.text(state)}


def _places(layout: Layout) -> list[list[float] | None]:
    return [
        None if place is None else [round(float(value), 3) for value in place]
        for place in layout.players
    ]


def _on_host(x: Any) -> Any:
    """An array as NumPy has it; random keys stay as they are."""
    return x if jax.numpy.issubdtype(x.dtype, jax.dtypes.prng_key) else np.asarray(x)
