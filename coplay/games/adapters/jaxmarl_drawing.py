"""Pictures and text of the environments of JaxMARL that are a plane with round things on it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coplay.core.layout import Layout, PlacedThing
from coplay.games.drawing import FLOOR, INK, Colour, Pen, hexadecimal

WIDE, ROWS, COLUMNS = 8, 21, 43  # cells across a picture; letters down and across a text


class Scene(NamedTuple):
    """Round things on a square, x to the right and y up.

    low, high: the edges of the square. position: [thing, (x, y)]. radius: [thing].
    seat: [thing] who it is, -1 for what has no seat. colour: [thing] of things without a seat.
    there: [thing] whether it is in the game.
    """

    low: float
    high: float
    position: np.ndarray
    radius: np.ndarray
    seat: list[int]
    colour: list[Colour]
    there: np.ndarray


def scene_of(environment: str, env: Any, seats: int, state: Any) -> Scene:
    """What there is to draw; NotImplementedError for environments that are no such plane.

    environment, env, state: JaxMARL's name, environment and state.
    """
    if environment.startswith("MPE"):
        position = np.asarray(state.p_pos)
        count = len(position)
        # Agents may walk away from the square in which everything begins.
        reach = max(1.2, float(np.max(np.abs(position[: env.num_agents]))) + 0.1)
        seat = [index if index < env.num_agents else -1 for index in range(count)]
        colour: list[Colour] = [(int(r), int(g), int(b)) for r, g, b in env.colour]
        return Scene(
            -reach, reach, position, np.asarray(env.rad), seat, colour, np.ones(count, bool)
        )
    if "SMAX" in environment:
        units = getattr(state, "state", state)
        count = len(units.unit_alive)
        seat = [index if index < seats else -1 for index in range(count)]
        radius = np.asarray(env.unit_type_radiuses)[np.asarray(units.unit_types)]
        position, there = np.asarray(units.unit_positions), np.asarray(units.unit_alive)
        return Scene(0.0, env.map_width, position, radius, seat, [INK] * count, there)
    raise NotImplementedError


def draw_scene(scene: Scene, cell: int) -> np.ndarray:
    """A picture: [pixel row, pixel column, RGB] uint8. Things that left are faint or not shown."""
    size = WIDE * cell
    scale = size / (scene.high - scene.low)
    pen = Pen(size, size, FLOOR)
    for index in np.argsort(-scene.radius, kind="stable"):  # small things over large ones
        x = (scene.position[index, 0] - scene.low) * scale
        y = (scene.high - scene.position[index, 1]) * scale
        radius, there = max(scene.radius[index] * scale, 3), bool(scene.there[index])
        if scene.seat[index] >= 0:
            pen.disc(x, y, max(radius, 0.15 * cell), scene.seat[index], dimmed=not there)
        elif there:
            pen.ellipse(x, y, radius, radius, scene.colour[index])
    return pen.picture()


def lay_out_scene(scene: Scene) -> Layout:
    """Where the things of a scene are; units that left are not there."""
    scale = WIDE / (scene.high - scene.low)
    things: list[PlacedThing] = []
    players: list[tuple[float, float, float] | None] = [None] * (1 + max(scene.seat, default=-1))
    for index in np.argsort(-scene.radius, kind="stable"):
        x = float(scene.position[index, 0] - scene.low) * scale
        y = float(scene.high - scene.position[index, 1]) * scale
        radius, seat = max(float(scene.radius[index]) * scale, 0.06), scene.seat[index]
        if not scene.there[index]:
            continue
        if seat >= 0:
            players[seat] = (x, y, max(radius, 0.15))
        else:
            things.append(PlacedThing(hexadecimal(scene.colour[index]), x, y, 2 * radius))
    return Layout(WIDE, WIDE, things, players)


def text_scene(scene: Scene) -> str:
    """A map of letters: seats by their numbers, the others as `o`."""
    letters = np.full((ROWS, COLUMNS), ".")
    share = (scene.position - scene.low) / (scene.high - scene.low)
    for index in sorted(range(len(scene.seat)), key=lambda index: scene.seat[index] >= 0):
        if scene.there[index]:
            across, down = np.clip([share[index, 0], 1 - share[index, 1]], 0, 1)
            place = round(down * (ROWS - 1)), round(across * (COLUMNS - 1))
            letters[place] = str(scene.seat[index] % 10) if scene.seat[index] >= 0 else "o"
    return "\n".join("".join(row) for row in letters)
