"""Where everything is in a state: a game says it, and pages draw it."""

from collections.abc import Callable
from typing import Any, NamedTuple

Icon = Callable[[Any, float, float, float], None]
"""(pen, x, y, size): draws a thing in the square of that size around (x, y)."""


class PlacedThing(NamedTuple):
    """A thing with its middle at (x, y). look: an icon, or the colour of a disc as "#RRGGBB".
    size: of the square that it fills."""

    look: Icon | str
    x: float
    y: float
    size: float


class Layout(NamedTuple):
    """A state as places on a sheet. The unit is a cell; x goes to the right and y down.

    width, height: of the sheet, the same in all states of a game.
    players: [seat] (x, y, radius) of each; None for one that is not to be seen.
    grid: the sheet is a board of cells. walls: (x, y) of the upper left corners of wall cells.
    """

    width: float
    height: float
    things: list[PlacedThing]
    players: list[tuple[float, float, float] | None]
    grid: bool = False
    walls: tuple[tuple[int, int], ...] = ()
