"""What a player thinks of the others, drawn below the frames of a film: beliefs and predictions."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coplay.games.drawing import FAINT_INK, GRID, INK, PAPER, Pen, blend, seat_colour, text_width
from coplay.matches.recording import EpisodeRecord

SIZE = 13.0
"""Height of letters, in pixels."""
PITCH = 2.1 * SIZE
"""From one line to the next."""
MARGIN = SIZE
SHORTEST_BAR = 140.0
"""Pixels of a bar of beliefs, at least."""
SURE = 0.1
"""Probability from which a candidate is named inside its part of the bar, if it has the room."""


def thinking_seat(episode: EpisodeRecord) -> int | None:
    """The first seat that believes or predicts something about others; None: there is none."""
    for seat, record in enumerate(episode.steps[0]["seats"]):
        if "belief" in record or "predicted" in record:
            return seat
    return None


def with_thoughts(
    frames: Sequence[np.ndarray], about: Mapping[str, Any], episode: EpisodeRecord, seat: int
) -> list[np.ndarray]:
    """The frames of an episode with what a seat thinks before each step below them.

    frames: T + 1 pictures [pixel row, pixel column, RGB] uint8 of one size. about: as
    `coplay.matches.recording.describe` makes it. The last frame keeps the last thoughts.
    """
    width = max(frames[0].shape[1], _needed(about, seat))
    panels = [_panel(about, step["seats"], seat, width) for step in episode.steps]
    panels.append(panels[-1])
    return [
        np.concatenate([_widened(frame, width), panel])
        for frame, panel in zip(frames, panels, strict=True)
    ]


def _widened(frame: np.ndarray, width: int) -> np.ndarray:
    more = width - frame.shape[1]
    return np.pad(frame, ((0, 0), (0, more), (0, 0)), constant_values=255)


def _cell(about: Mapping[str, Any]) -> float:
    """Pixels of an action's column."""
    return max(text_width(name, 0.85 * SIZE) for name in about["actions"]) + 0.9 * SIZE


def _needed(about: Mapping[str, Any], seat: int) -> int:
    bar = SHORTEST_BAR if "candidates" in about["seats"][seat] else 0.0
    return int(2 * MARGIN + 3 * SIZE + bar + MARGIN + _cell(about) * len(about["actions"]))


def _panel(
    about: Mapping[str, Any], seats: Sequence[Mapping[str, Any]], seat: int, width: int
) -> np.ndarray:
    """One picture: a line for each co-player, then the names of actions and candidates. A line is
    empty once the co-player, or the seat itself, has left."""
    names: list[str] = about["seats"][seat].get("candidates", [])
    number = len(seats)
    pen = Pen(PITCH * (number + 1) + MARGIN / 2, width)
    cell = _cell(about)
    actions_at = width - MARGIN - cell * len(about["actions"])
    bar_at = MARGIN + 3 * SIZE
    bar = actions_at - MARGIN - bar_at
    mind = seats[seat]
    y = PITCH / 2
    title = f"seat {seat} believes" if names else f"seat {seat}"
    pen.text(MARGIN, y, title, 0.85 * SIZE, FAINT_INK)
    pen.text(actions_at, y, "and expects (coloured: done)", 0.85 * SIZE, FAINT_INK)
    for other in range(number - 1):
        who = (seat + 1 + other) % number
        y += PITCH
        there = mind["alive"] and seats[who]["alive"]
        pen.disc(MARGIN + 0.8 * SIZE, y, 0.8 * SIZE, who, dimmed=not there)
        if not there:
            continue
        if "belief" in mind:
            _bar(pen, bar_at, y, bar, mind["belief"][other], names)
        if "predicted" in mind:
            did = seats[who]["action"]
            _actions(pen, actions_at, y, cell, mind["predicted"][other], did, seat_colour(who))
    y += PITCH
    for action, name in enumerate(about["actions"]):
        middle = actions_at + (action + 0.5) * cell
        pen.text(middle, y, name, 0.85 * SIZE, FAINT_INK, "mm")
    if names:
        _legend(pen, bar_at, y, actions_at - MARGIN, names)
    return pen.picture()


def _bar(
    pen: Pen, x: float, y: float, width: float, belief: Sequence[float], names: Sequence[str]
) -> None:
    """Probabilities as parts of one bar, with the names of those that have the room."""
    height = 1.3 * SIZE
    pen.rectangle(x, y - height / 2, width, height, GRID)
    for number, (p, name) in enumerate(zip(belief, names, strict=True)):
        part = p * width
        pen.rectangle(x, y - height / 2, part, height, _tint(number))
        if p >= SURE and part > text_width(name, 0.8 * SIZE) + 6:
            pen.text(x + part / 2, y, name, 0.8 * SIZE, INK, "mm")
        x += part


def _actions(
    pen: Pen, x: float, y: float, cell: float, predicted: Sequence[float], did: int, colour: str
) -> None:
    """The probability of each action as a column; the one that was then played has the colour."""
    height = 1.5 * SIZE
    for action, p in enumerate(predicted):
        left = x + action * cell + 0.15 * cell
        pen.rectangle(left, y - height / 2, 0.7 * cell, height, blend(GRID, PAPER, 0.6))
        ink = colour if action == did else FAINT_INK
        pen.rectangle(left, y + height / 2 - p * height, 0.7 * cell, p * height, ink)


def _legend(pen: Pen, x: float, y: float, end: float, names: Sequence[str]) -> None:
    """What the colours of the bars mean; nothing if there is no room for all, since a bar names its
    larger parts itself."""
    widths = [text_width(name, 0.8 * SIZE) + 2.2 * SIZE for name in names]
    if x + sum(widths) - SIZE > end:
        return
    for number, (name, width) in enumerate(zip(names, widths, strict=True)):
        pen.rectangle(x, y - 0.4 * SIZE, 0.8 * SIZE, 0.8 * SIZE, _tint(number))
        pen.text(x + 1.1 * SIZE, y, name, 0.8 * SIZE, FAINT_INK)
        x += width


def _tint(candidate: int) -> tuple[int, int, int]:
    """The colour of a candidate, light enough for ink on it. Seats keep their own colours."""
    return blend(seat_colour(candidate + 4), PAPER, 0.35)
