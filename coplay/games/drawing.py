"""What all pictures share: colours of seats, and a pen that draws smooth edges."""

from __future__ import annotations

import colorsys
import functools
import math
from pathlib import Path

import numpy as np
from PIL import Image, ImageColor, ImageDraw, ImageFont

# Okabe and Ito's colours, which people with any kind of colour blindness can tell apart, without
# black (the team) and ordered so that the first four are easy to see as thin lines on white.
SEAT_COLOURS = (
    "#0072B2",  # blue
    "#E69F00",  # orange
    "#009E73",  # green
    "#CC79A7",  # pink
    "#56B4E9",  # sky
    "#D55E00",  # vermilion
    "#8C8C8C",  # grey
    "#D9C700",  # yellow, darker than the original, which is hardly visible on white
)


INK, FAINT_INK = "#2B303A", "#8A8F98"


PAPER, FLOOR, GRID, WALL = "#FFFFFF", "#F7F5F0", "#DDD9CF", "#3A404C"


Colour = str | tuple[int, int, int]


def seat_colour(seat: int) -> str:
    """The colour of a seat, in pictures and plots: #RRGGBB, different for any number of seats.

    Beyond the first eight the same hues return in other shades.
    """
    turn, index = divmod(seat, len(SEAT_COLOURS))
    red, green, blue = (value / 255 for value in ImageColor.getrgb(SEAT_COLOURS[index])[:3])
    hue, light, saturation = colorsys.rgb_to_hls(red, green, blue)
    # Alternately darker and lighter, each time by a part of what is left.
    change = 1 - 0.7 ** ((turn + 1) // 2)
    light = light * (1 - change) if turn % 2 else light + change * (1 - light)
    rgb = colorsys.hls_to_rgb(hue, light, saturation)
    return "#" + "".join(f"{round(255 * value):02X}" for value in rgb)


def blend(colour: Colour, other: Colour, share: float) -> tuple[int, int, int]:
    """`colour` with a `share` of `other` mixed in."""
    blended = [
        round((1 - share) * a + share * b) for a, b in zip(_rgb(colour), _rgb(other), strict=True)
    ]
    return blended[0], blended[1], blended[2]


def hexadecimal(colour: Colour) -> str:
    """A colour as #RRGGBB."""
    return "#" + "".join(f"{value:02X}" for value in _rgb(colour))


def _rgb(colour: Colour) -> tuple[int, int, int]:
    if isinstance(colour, tuple):
        return colour
    red, green, blue = ImageColor.getrgb(colour)[:3]
    return red, green, blue


@functools.lru_cache(maxsize=64)
def _font(size: int, bold: bool) -> ImageFont.FreeTypeFont:
    # The fonts that come with matplotlib are on every machine where this library is installed, and
    # know more letters than Pillow's own. Imported here because games are used without drawing.
    import matplotlib

    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    path = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name
    return ImageFont.truetype(str(path), size)  # Pillow 10.0 takes no Path


class Pen:
    """Draws smooth shapes on a white sheet. All lengths are in pixels of the finished picture."""

    fine = 4  # how many times larger the sheet is while it is drawn on

    def __init__(self, height: float, width: float, colour: Colour = PAPER):
        size = math.ceil(width) * self.fine, math.ceil(height) * self.fine
        self._sheet = Image.new("RGB", size, _rgb(colour))
        self._draw = ImageDraw.Draw(self._sheet)

    def picture(self) -> np.ndarray:
        """The finished picture: [pixel row, pixel column, RGB] uint8."""
        return np.array(self._sheet.reduce(self.fine), np.uint8)

    def rectangle(self, x: float, y: float, width: float, height: float, colour: Colour) -> None:
        """A filled rectangle with its upper left corner at (x, y); nothing if it is too thin."""
        if min(width, height) * self.fine < 1:
            return
        box = [length * self.fine for length in (x, y, x + width, y + height)]
        # Pillow counts the last pixel in.
        self._draw.rectangle((box[0], box[1], box[2] - 1, box[3] - 1), fill=_rgb(colour))

    def ellipse(
        self, x: float, y: float, across: float, down: float, colour: Colour, turn: float = 0
    ) -> None:
        """A filled ellipse around (x, y) with two half axes, turned clockwise by `turn` degrees."""
        angles = np.linspace(0, 2 * math.pi, 72, endpoint=False)
        c, s = math.cos(math.radians(turn)), math.sin(math.radians(turn))
        u, v = across * np.cos(angles), down * np.sin(angles)
        self.polygon(np.stack([x + c * u - s * v, y + s * u + c * v], axis=1), colour)

    def polygon(self, points: np.ndarray, colour: Colour) -> None:
        """A filled polygon through [point, (x, y)]."""
        self._draw.polygon([(x * self.fine, y * self.fine) for x, y in points], fill=_rgb(colour))

    def line(self, points: np.ndarray, thick: float, colour: Colour) -> None:
        """A line through [point, (x, y)] with round ends and joints."""
        scaled = [(x * self.fine, y * self.fine) for x, y in points]
        self._draw.line(scaled, fill=_rgb(colour), width=max(1, round(thick * self.fine)))
        for x, y in points:
            self.ellipse(x, y, thick / 2, thick / 2, colour)

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
        """Words at (x, y); `anchor` is Pillow's: l/m/r across, a/m/s down (m: middle)."""
        font = _font(max(1, round(size * self.fine)), bold)
        self._draw.text((x * self.fine, y * self.fine), words, _rgb(colour), font, anchor=anchor)

    def disc(self, x: float, y: float, radius: float, seat: int, dimmed: bool = False) -> None:
        """A player: a disc in its seat's colour with the seat's number, dimmed once it left."""
        colour = blend(seat_colour(seat), PAPER, 0.72 if dimmed else 0.0)
        self.ellipse(x, y, radius, radius, PAPER)
        self.ellipse(x, y, 0.95 * radius, 0.95 * radius, blend(colour, INK, 0.0 if dimmed else 0.3))
        self.ellipse(x, y, 0.86 * radius, 0.86 * radius, colour)
        number = str(seat)
        size = radius * (1.15 if len(number) == 1 else 1.75 / len(number))
        words = blend(colour, INK, 0.45) if dimmed else PAPER if _is_dark(colour) else INK
        # Digits have no descenders: their middle lies a little above the middle of a line.
        self.text(x, y + 0.36 * size, number, size, words, anchor="ms", bold=True)


def _is_dark(colour: Colour) -> bool:
    red, green, blue = _rgb(colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue < 150


def text_width(words: str, size: float, bold: bool = False) -> float:
    """How many pixels wide words are."""
    return _font(max(1, round(size * Pen.fine)), bold).getlength(words) / Pen.fine
