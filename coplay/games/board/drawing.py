"""Drawing of board games, as pictures and as text: the board, its walls, things and players.

`draw_board` and `text_board` know nothing of any game's rules. Everything is drawn several times
as large and then averaged down, which gives smooth edges (`Pen`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from coplay.core.layout import Icon, Layout, PlacedThing
from coplay.games.drawing import (
    FAINT_INK,
    FLOOR,
    GRID,
    INK,
    PAPER,
    WALL,
    Colour,
    Pen,
    blend,
    seat_colour,
    text_width,
)

# --- things on a board -------------------------------------------------------------------------


def stag_icon(pen: Pen, x: float, y: float, size: float) -> None:
    """The head of a stag with its antlers."""
    fur, dark, light = "#8A5A33", "#5E3B1F", "#D9B891"
    for side in (-1, 1):

        def along(*points: tuple[float, float], side: int = side) -> np.ndarray:
            return np.array([x, y]) + size * np.array(points) * [side, 1]

        thick = 0.055 * size
        beam = along((0.06, 0.02), (0.13, -0.14), (0.28, -0.22), (0.35, -0.36), (0.31, -0.47))
        pen.line(beam, thick, dark)
        pen.line(along((0.14, -0.15), (0.16, -0.3), (0.11, -0.43)), thick, dark)
        pen.line(along((0.29, -0.23), (0.45, -0.27)), thick, dark)
        ear_x, ear_y = x + 0.21 * side * size, y + 0.01 * size
        pen.ellipse(ear_x, ear_y, 0.14 * size, 0.065 * size, dark, turn=-14 * side)
        pen.ellipse(ear_x, ear_y, 0.09 * size, 0.035 * size, light, turn=-14 * side)
    face = [(0.0, -0.06), (0.12, -0.03), (0.165, 0.07), (0.14, 0.2), (0.1, 0.32), (0.09, 0.4)]
    face += [(0.05, 0.46), (0.0, 0.475)]
    outline = np.array(face + [(-across, down) for across, down in reversed(face)])
    pen.polygon(np.array([x, y]) + size * outline, fur)
    pen.ellipse(x, y + 0.37 * size, 0.085 * size, 0.1 * size, light)
    pen.ellipse(x, y + 0.345 * size, 0.055 * size, 0.04 * size, INK)
    for side in (-1, 1):
        pen.ellipse(x + 0.085 * side * size, y + 0.1 * size, 0.027 * size, 0.032 * size, INK)


def hare_icon(pen: Pen, x: float, y: float, size: float) -> None:
    """The head of a hare with its long ears."""
    edge, fur, pink = "#857B70", "#D3CBC0", "#E3A9A4"
    for grow, colour in ((0.022, edge), (0.0, fur)):
        for side in (-1, 1):
            ear = x + 0.115 * side * size, y - 0.2 * size
            pen.ellipse(*ear, (0.07 + grow) * size, (0.245 + grow) * size, colour, turn=9 * side)
        pen.ellipse(x, y + 0.2 * size, (0.23 + grow) * size, (0.215 + grow) * size, colour)
    for side in (-1, 1):
        ear = x + 0.12 * side * size, y - 0.205 * size
        pen.ellipse(*ear, 0.034 * size, 0.175 * size, pink, turn=9 * side)
        pen.ellipse(x + 0.1 * side * size, y + 0.145 * size, 0.03 * size, 0.038 * size, INK)
    pen.ellipse(x, y + 0.245 * size, 0.038 * size, 0.027 * size, "#C9736C")
    mouth = np.array([(-0.075, 0.3), (-0.04, 0.33), (0.0, 0.3), (0.04, 0.33), (0.075, 0.3)])
    pen.line(np.array([x, y]) + size * mouth, 0.022 * size, edge)


def drift_icon(pen: Pen, x: float, y: float, size: float) -> None:
    """A heap of snow."""
    edge, snow, shade = "#7C93A8", "#F4F9FD", "#C9DCEB"
    for grow, colour in ((0.03, edge), (0.0, snow)):
        for across, down, wide, high in (
            (-0.2, 0.2, 0.24, 0.2),
            (0.2, 0.22, 0.24, 0.18),
            (0.0, 0.06, 0.26, 0.3),
        ):
            half = (wide + grow) * size, (high + grow) * size
            pen.ellipse(x + across * size, y + down * size, *half, colour)
    for across, down, wide in ((-0.2, 0.3, 0.13), (0.16, 0.31, 0.15), (0.03, 0.08, 0.1)):
        pen.ellipse(x + across * size, y + down * size, wide * size, 0.03 * size, shade)


@functools.cache
def coin_icon(seat: int) -> Icon:
    """A coin in the colour of a seat."""

    def coin(pen: Pen, x: float, y: float, size: float) -> None:
        colour = seat_colour(seat)
        pen.ellipse(x, y, 0.34 * size, 0.34 * size, blend(colour, INK, 0.45))
        pen.ellipse(x, y, 0.29 * size, 0.29 * size, blend(colour, PAPER, 0.25))
        pen.ellipse(x, y, 0.2 * size, 0.2 * size, blend(colour, INK, 0.25))
        pen.ellipse(x, y, 0.17 * size, 0.17 * size, blend(colour, PAPER, 0.45))

    return coin


@functools.cache
def food_icon(level: int) -> Icon:
    """An apple with a level written on it; 0: without a level."""

    def apple(pen: Pen, x: float, y: float, size: float) -> None:
        edge, skin, leaf = "#8E2F25", "#D2503F", "#5B8C3A"
        stalk = np.array([(0.0, -0.2), (0.03, -0.4)])
        pen.line(np.array([x, y]) + size * stalk, 0.045 * size, "#6B4A2B")
        pen.ellipse(x + 0.13 * size, y - 0.33 * size, 0.12 * size, 0.055 * size, leaf, turn=-25)
        for grow, colour in ((0.025, edge), (0.0, skin)):
            for side in (-1, 1):
                half = (0.2 + grow) * size, (0.26 + grow) * size
                pen.ellipse(x + 0.12 * side * size, y + 0.07 * size, *half, colour)
        if level:
            pen.text(x, y + 0.19 * size, str(level), 0.38 * size, PAPER, anchor="ms", bold=True)

    return apple


def waste_icon(pen: Pen, x: float, y: float, size: float) -> None:
    """A patch of waste in the water."""
    for across, down, wide, high in ((-0.12, 0.1, 0.25, 0.16), (0.14, -0.04, 0.22, 0.15)):
        pen.ellipse(x + across * size, y + down * size, wide * size, high * size, "#6E5A33")
    for across, down in ((-0.2, 0.06), (0.02, 0.14), (0.18, -0.08)):
        pen.ellipse(x + across * size, y + down * size, 0.05 * size, 0.04 * size, "#A08A50")


def paw_icon(pen: Pen, x: float, y: float, size: float) -> None:
    """The print of a paw."""
    pen.ellipse(x, y + 0.14 * size, 0.2 * size, 0.17 * size, INK)
    for across, down in ((-0.26, -0.06), (-0.1, -0.21), (0.1, -0.21), (0.26, -0.06)):
        pen.ellipse(x + across * size, y + down * size, 0.075 * size, 0.1 * size, INK)


# --- boards ------------------------------------------------------------------------------------


def draw_board(
    height: int,
    width: int,
    walls: np.ndarray,
    things: Sequence[tuple[int, Icon]],
    players: Sequence[int | None],
    time: int,
    horizon: int,
    cell: int = 48,
    ground: Mapping[int, Colour] = MappingProxyType({}),
) -> np.ndarray:
    """A board with what stands on it: [pixel row, pixel column, RGB] uint8.

    The size depends on the board and the number of players only, so that the pictures of an episode
    make a film. Beneath the board: the time, and the players that left.

    walls: [cell] bool; cells are numbered row by row.
    things: the cell and the icon of each thing.
    players: [seat] the cell where each player stands; None for one that left.
    ground: cell -> its colour, where it is no plain floor.
    """
    margin, line = cell / 6, max(1.0, cell / 48)
    text_size, radius = 0.27 * cell, 0.23 * cell  # of the words and discs beneath the board
    step, strip_row = 2.1 * radius, 0.6 * cell
    inner = max(width, 4) * cell  # room for the words even beneath a narrow board
    room = inner - text_width("left ", text_size)
    time_room = text_width(f"t {horizon}/{horizon}  ", text_size)
    first_row = max(1, int((room - time_room) / step))
    per_row = max(1, int(room / step))
    strip_rows = 1 + math.ceil(max(0, len(players) - first_row) / per_row)
    pen = Pen((height + 0.05) * cell + 2 * margin + strip_rows * strip_row, inner + 2 * margin)
    left_edge, top = margin + (inner - width * cell) / 2, margin

    pen.rectangle(
        left_edge - line, top - line, width * cell + 2 * line, height * cell + 2 * line, WALL
    )
    for index in range(height * width):
        x, y = left_edge + index % width * cell, top + index // width * cell
        if walls[index]:
            pen.rectangle(x, y, cell, cell, WALL)
        else:
            pen.rectangle(x, y, cell, cell, GRID)
            floor = ground.get(index, FLOOR)
            pen.rectangle(x + line / 2, y + line / 2, cell - line, cell - line, floor)
    for index in range(height * width):
        x, y = left_edge + index % width * cell, top + index // width * cell
        icons = [icon for place, icon in things if place == index]
        seats = [seat for seat, place in enumerate(players) if place == index]
        _draw_cell(pen, x, y, cell, icons, seats)

    middle = top + (height + 0.17) * cell + strip_row / 2
    pen.text(margin, middle, f"t {time}/{horizon}", text_size)
    gone = [seat for seat, place in enumerate(players) if place is None]
    rows = [gone[:first_row]]
    rows += [gone[start : start + per_row] for start in range(first_row, len(gone), per_row)]
    for row, seats in enumerate(rows):
        for place, seat in enumerate(reversed(seats)):
            x = margin + inner - radius - step * place
            pen.disc(x, middle + row * strip_row, radius, seat, dimmed=True)
    if gone:
        x = margin + inner - step * len(rows[0])
        pen.text(x, middle, "left ", text_size, FAINT_INK, anchor="rm")
    return pen.picture()


def _draw_cell(
    pen: Pen, x: float, y: float, cell: float, icons: Sequence[Icon], seats: Sequence[int]
) -> None:
    """What stands in the cell with its upper left corner at (x, y)."""
    things, discs = places_in_cell(len(icons), len(seats))
    for icon, (across, down, size) in zip(icons, things, strict=True):
        icon(pen, x + across * cell, y + down * cell, size * cell)
    for seat, (across, down, radius) in zip(seats, discs, strict=True):
        pen.disc(x + across * cell, y + down * cell, radius * cell, seat)


Place = tuple[float, float, float]
"""The middle (x, y) in a cell, and the size of a thing or the radius of a player."""


def places_in_cell(icons: int, seats: int) -> tuple[list[Place], list[Place]]:
    """Where so many things and players stand in a cell of size 1.

    Players beneath a thing hide its lowest part only: antlers and ears tell prey apart.
    """
    inset = 0.05
    side = 1 - 2 * inset
    things, players = [], []
    if icons:
        size = min(side * (0.7 if seats else 1.0), side / icons)
        things = [
            (inset + (i + 0.5) * side / icons, inset + size / 2, 0.98 * size) for i in range(icons)
        ]
    if seats:
        room = side * (0.46 if icons else 1.0)
        columns = max(
            reversed(range(1, seats + 1)),  # if equally large, rather side by side
            key=lambda c: min(side / c, room / math.ceil(seats / c)),
        )
        rows = math.ceil(seats / columns)
        columns = math.ceil(seats / rows)
        step = min(side / columns, room / rows, 0.74 * side)
        for i in range(seats):
            row, column = divmod(i, columns)
            in_row = min(columns, seats - row * columns)
            across = inset + side / 2 + (column - (in_row - 1) / 2) * step
            down = inset + side - room / 2 + (row - (rows - 1) / 2) * step
            players.append((across, down, 0.49 * step))
    return things, players


def lay_out_board(
    height: int,
    width: int,
    walls: np.ndarray,
    things: Sequence[tuple[int, Icon]],
    players: Sequence[int | None],
) -> Layout:
    """A board with what stands on it, for drawing elsewhere; the arguments are `draw_board`'s."""
    placed: list[PlacedThing] = []
    standing: list[Place | None] = [None] * len(players)
    for index in {place for place, _ in things} | {place for place in players if place is not None}:
        row, column = divmod(index, width)
        icons = [icon for place, icon in things if place == index]
        seats = [seat for seat, place in enumerate(players) if place == index]
        spots, discs = places_in_cell(len(icons), len(seats))
        for icon, (x, y, size) in zip(icons, spots, strict=True):
            placed.append(PlacedThing(icon, column + x, row + y, size))
        for seat, (x, y, radius) in zip(seats, discs, strict=True):
            standing[seat] = (column + x, row + y, radius)
    blocked = tuple((int(cell) % width, int(cell) // width) for cell in np.flatnonzero(walls))
    return Layout(width, height, placed, standing, True, blocked)


def text_board(
    height: int,
    width: int,
    walls: np.ndarray,
    things: Sequence[tuple[int, str]],
    players: Sequence[int | None],
    time: int,
    horizon: int,
) -> str:
    """A board as lines of text: letters for things, numbers for players, # walls, · empty cells.

    All cells have the same width, which for up to four players never changes; more on one cell
    widen the columns of that picture. See `draw_board` for the arguments.
    """
    apart = "," if len(players) > 10 else ""  # seat 10 and seats 1 and 0 differ
    contents = []
    for index in range(height * width):
        here = "".join(letter for place, letter in things if place == index)
        here += apart.join(str(seat) for seat, place in enumerate(players) if place == index)
        contents.append(here or "·")
    column = max(1 + min(len(players), 4), *(len(here) for here in contents))
    contents = [
        "#" * column if wall else here.center(column)
        for here, wall in zip(contents, walls, strict=True)
    ]
    edge = "─" * (width * (column + 1) + 1)
    lines = [f"┌{edge}┐"]
    for row in range(height):
        lines.append("│ " + " ".join(contents[row * width : (row + 1) * width]) + " │")
    lines.append(f"└{edge}┘")
    gone = " ".join(str(seat) for seat, place in enumerate(players) if place is None)
    lines.append(f"t {time}/{horizon}" + (f"   left: {gone}" if gone else ""))
    return "\n".join(lines)
