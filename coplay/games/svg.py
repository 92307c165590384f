"""A pen that writes SVG: what icons draw into pictures, for pages."""

import math
from collections.abc import Iterable
from html import escape

import numpy as np

from coplay.core.layout import Icon
from coplay.games.drawing import INK, Colour


class SvgPen:
    """Writes shapes as SVG elements. It takes the calls of `coplay.games.drawing.Pen`."""

    def __init__(self) -> None:
        self.elements: list[str] = []

    def rectangle(self, x: float, y: float, width: float, height: float, colour: Colour) -> None:
        size = f'width="{_number(width)}" height="{_number(height)}"'
        self._add(f'<rect x="{_number(x)}" y="{_number(y)}" {size} fill="{_colour(colour)}"/>')

    def ellipse(
        self, x: float, y: float, across: float, down: float, colour: Colour, turn: float = 0
    ) -> None:
        middle = f"{_number(x)} {_number(y)}"
        turned = f' transform="rotate({_number(turn)} {middle})"' if turn else ""
        half = f'rx="{_number(across)}" ry="{_number(down)}"'
        place = f'cx="{_number(x)}" cy="{_number(y)}" {half}'
        self._add(f'<ellipse {place} fill="{_colour(colour)}"{turned}/>')

    def polygon(self, points: np.ndarray, colour: Colour) -> None:
        self._add(f'<polygon points="{_points(points)}" fill="{_colour(colour)}"/>')

    def line(self, points: np.ndarray, thick: float, colour: Colour) -> None:
        self._add(
            f'<polyline points="{_points(points)}" fill="none" stroke="{_colour(colour)}" '
            f'stroke-width="{_number(thick)}" stroke-linecap="round" stroke-linejoin="round"/>'
        )

    def text(
        self,
        x: float,
        y: float,
        words: str,
        size: float,
        colour: Colour = INK,
        anchor: str = "lm",
        bold: bool = False,
    ) -> None:
        across = {"l": "start", "m": "middle", "r": "end"}[anchor[0]]
        down = {"a": "hanging", "m": "central", "s": "alphabetic"}[anchor[1]]
        weight = ' font-weight="700"' if bold else ""
        self._add(
            f'<text x="{_number(x)}" y="{_number(y)}" font-size="{_number(size)}" '
            f'text-anchor="{across}" dominant-baseline="{down}" fill="{_colour(colour)}"{weight}>'
            f"{escape(words)}</text>"
        )

    def _add(self, element: str) -> None:
        self.elements.append(element)


def icon_svg(icon: Icon) -> str:
    """The elements of an icon in the square of size 1 around (0, 0)."""
    pen = SvgPen()
    icon(pen, 0.0, 0.0, 1.0)
    return "".join(pen.elements)


def _number(value: float) -> str:
    """Four digits after the point are finer than a screen shows; no -0, no trailing zeros."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is no length")
    return f"{round(float(value), 4) + 0.0:g}"


def _points(points: np.ndarray | Iterable) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in points)


def _colour(colour: Colour) -> str:
    if isinstance(colour, tuple):
        return "#" + "".join(f"{value:02X}" for value in colour)
    return escape(colour, quote=True)
