"""A played episode as a film: a GIF, an MP4, or frames of text for the terminal.

Both are given what was played in one game copy: T + 1 states, and the T joint actions and rewards
between them. Frame t shows state t with the actions that led to it and the rewards so far.
"""

import math
import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image

from coplay.core.errors import UserError
from coplay.core.files import replacing
from coplay.core.game import Game, State
from coplay.games.drawing import FAINT_INK, INK, Pen, text_width

# In place of an action: before the first, and after leaving (not "left", which is a move).
NOTHING_YET, GONE = "-", "gone"
LONGEST_LABEL = 20  # letters of a player's name that are shown


class Line(NamedTuple):
    """What a frame says of one seat.

    name: the player in the seat.
    action: the name of the action that led to this state.
    reward: the sum of its rewards so far.
    alive: whether it is in the game in this state.
    """

    name: str
    action: str
    reward: float
    alive: bool


def frames(
    game: Game,
    states: Sequence[State],
    rewards: ArrayLike,
    labels: Sequence[str],
    cell: int = 48,
    actions: ArrayLike | None = None,
) -> list[np.ndarray]:
    """The pictures of an episode, all of one size: [pixel row, pixel column, RGB] uint8 each.

    Beside the board each seat has its disc, player, last action and sum of rewards; the line of a
    seat that left is faint.

    states: T + 1 states of one game copy.
    rewards: [T, seat].
    labels: [seat] the name of the player in each seat.
    cell: pixels of a cell of the board.
    actions: [T, seat] as chosen; None: as executed, from the states' field `last` (no action is
        shown for a game whose states have none).
    """
    boards = [_drawn(game, state, cell) for state in states]
    table = _lines(game, states, rewards, actions, labels)
    return [
        _beside(board, lines, game.action_names, cell)
        for board, lines in zip(boards, table, strict=True)
    ]


def _drawn(game: Game, state: State, cell: int) -> np.ndarray:
    try:
        return game.draw(state, cell)
    except NotImplementedError:
        raise UserError(
            f"the game '{game.name}' cannot be drawn: it has no method `draw`"
        ) from None


def _lines(
    game: Game,
    states: Sequence[State],
    rewards: ArrayLike,
    actions: ArrayLike | None,
    labels: Sequence[str],
) -> list[list[Line]]:
    """[frame][seat] what is said of each seat."""
    seats, steps = game.seats, len(states) - 1
    if steps < 0:
        raise UserError("an episode needs at least one state to be shown")
    reward = _checked(rewards, "rewards", steps, seats).astype(float)
    chosen = None if actions is None else _checked(actions, "actions", steps, seats)
    if len(labels) != seats:
        raise UserError(f"{len(labels)} labels for {seats} seats; give one per seat")
    total = np.concatenate([np.zeros((1, seats)), np.cumsum(reward, axis=0)])
    alive = np.stack([np.asarray(game.alive(state)) for state in states])
    names = [_shortened(label) for label in labels]
    table = []
    for t, state in enumerate(states):
        did = [NOTHING_YET] * seats
        if t > 0:
            played = chosen[t - 1] if chosen is not None else _executed(state)
            if played is not None:
                did = [game.action_names[int(action)] for action in played]
            did = [name if there else GONE for name, there in zip(did, alive[t - 1], strict=True)]
        table.append(
            [Line(names[i], did[i], float(total[t, i]), bool(alive[t, i])) for i in range(seats)]
        )
    return table


def _checked(values: ArrayLike, name: str, steps: int, seats: int) -> np.ndarray:
    array = np.asarray(values)
    if array.size == 0:
        array = array.reshape(0, seats)
    if array.shape != (steps, seats):
        raise UserError(
            f"{name} have the shape {list(array.shape)}; {steps + 1} states of {seats} seats "
            f"need [time, seat] = [{steps}, {seats}]"
        )
    return array


def _executed(state: State) -> Any:
    return getattr(state, "last", None)


def _shortened(label: str) -> str:
    """Of a long name the beginning; of a long path the end, which tells runs apart."""
    if len(label) <= LONGEST_LABEL:
        return label
    kept = LONGEST_LABEL - 1
    return f"…{label[-kept:]}" if "/" in label else f"{label[:kept]}…"


def _number(reward: float) -> str:
    """Two digits after the point; never -0.00."""
    return f"{round(reward, 2) + 0.0:.2f}"


def _beside(
    board: np.ndarray, lines: Sequence[Line], action_names: Sequence[str], cell: int
) -> np.ndarray:
    """The board with the seats' lines to its right, beginning at the same height."""
    size = max(10.0, 0.27 * cell)
    pitch, radius, gap = 1.9 * size, 0.8 * size, 1.1 * size
    # Widths do not depend on the frame, so that nothing moves in a film.
    name = max(text_width(words, size) for words in ["player", *(line.name for line in lines)])
    action = max(text_width(words, size) for words in ["action", GONE, *action_names])
    reward = text_width("-000.00", size)
    width = 2 * radius + 0.6 * size + name + gap + action + gap + reward + 2 * gap
    height = max(board.shape[0], math.ceil(pitch * (len(lines) + 1) + cell / 3))

    pen = Pen(height, width)
    x = 0.8 * gap
    columns = [x + 2 * radius + 0.6 * size]
    columns.append(columns[0] + name + gap)
    columns.append(columns[1] + action + gap + reward)
    y = cell / 6 + pitch / 2
    for place, words, anchor in zip(
        columns, ("player", "action", "reward"), ("lm", "lm", "rm"), strict=True
    ):
        pen.text(place, y, words, 0.85 * size, FAINT_INK, anchor)
    for seat, line in enumerate(lines):
        y += pitch
        ink = INK if line.alive else FAINT_INK
        pen.disc(x + radius, y, radius, seat, dimmed=not line.alive)
        pen.text(columns[0], y, line.name, size, ink)
        pen.text(columns[1], y, line.action, size, FAINT_INK if line.action == GONE else ink)
        pen.text(columns[2], y, _number(line.reward), size, ink, "rm", bold=True)

    padded = np.pad(board, ((0, height - len(board)), (0, 0), (0, 0)), constant_values=255)
    return np.hstack([padded, pen.picture()])


def write_gif(path: str | os.PathLike[str], frames: Sequence[np.ndarray], fps: float = 3) -> None:
    """Writes pictures as a film that repeats for ever; the last one is held for two seconds.

    All frames share one palette, so that nothing flickers. Equal neighbours become one frame that
    stays as long as they would have. The file appears whole or not at all.

    frames: pictures [pixel row, pixel column, RGB] uint8 of one size.
    fps: frames per second; GIF counts in hundredths of a second.
    """
    if not frames:
        raise UserError("there are no frames to write as a GIF")
    if not 0 < fps <= 50:
        raise UserError(f"fps must be above 0 and at most 50, not {fps}")
    if len({np.shape(frame) for frame in frames}) > 1:
        raise UserError("the frames of a GIF must be of one size")
    drawn = _with_palette(frames)
    duration = [10 * round(100 / fps)] * (len(drawn) - 1) + [2000]
    with replacing(path) as partial:
        drawn[0].save(
            partial,
            format="GIF",
            save_all=True,
            append_images=drawn[1:],
            duration=duration,
            loop=0,
            optimize=True,
        )


def write_mp4(path: str | os.PathLike[str], frames: Sequence[np.ndarray], fps: float = 3) -> None:
    """Writes pictures as a film by the program ffmpeg. The arguments are those of `write_gif`."""
    if not frames:
        raise UserError("there are no frames to write as a film")
    program = shutil.which("ffmpeg")
    if program is None:
        raise UserError(
            f"{path}: an MP4 film is written by the program ffmpeg, which is not installed: "
            "install it, or write a .gif"
        )
    # The common pixel format needs even sizes.
    height, width = (size + size % 2 for size in frames[0].shape[:2])
    with replacing(path) as partial:
        command = [program, "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24"]
        command += ["-s", f"{width}x{height}", "-r", str(fps), "-i", "-", "-f", "mp4"]
        command += ["-pix_fmt", "yuv420p", str(partial)]
        padded = (
            np.pad(
                frame,
                ((0, height - frame.shape[0]), (0, width - frame.shape[1]), (0, 0)),
                constant_values=255,
            )
            for frame in frames
        )
        given = b"".join(np.ascontiguousarray(frame).tobytes() for frame in padded)
        done = subprocess.run(command, input=given, capture_output=True, check=False)
        if done.returncode:
            words = done.stderr.decode(errors="replace").strip().splitlines()
            raise UserError(f"{path}: ffmpeg failed: {words[-1] if words else 'no reason given'}")


def _with_palette(frames: Sequence[np.ndarray]) -> list[Image.Image]:
    """Pictures [pixel row, pixel column, RGB] uint8 as images with one palette for all.

    The palette holds the commonest colours exactly, or the sheet would not be white, and for the
    rest what a median cut finds.
    """
    size, exact = 255, 64  # the format needs one of 256 entries for "as in the frame before"
    places = np.array([65536, 256, 1], np.uint32)
    packed = [np.asarray(frame, np.uint32) @ places for frame in frames]
    found, number = zip(*(np.unique(frame, return_counts=True) for frame in packed), strict=True)
    colours, where = np.unique(np.concatenate(found), return_inverse=True)
    counts = np.bincount(where, np.concatenate(number))
    colour = (colours[:, None] >> np.array([16, 8, 0]) & 255).astype(np.uint8)  # [colour, RGB]
    palette = colour
    if len(colour) > size:
        common, rest = np.split(np.argsort(-counts, kind="stable"), [exact])
        # By the root of their number: large areas count for more, and small ones are not lost.
        times = np.ceil(np.sqrt(counts[rest])).astype(int)
        row = Image.fromarray(np.repeat(colour[rest], times, axis=0)[None])
        blended = row.quantize(size - exact, method=Image.Quantize.MEDIANCUT).getpalette()
        # Pillow 10.0 fills them up to 256.
        median_cut = np.array(blended, np.uint8).reshape(-1, 3)[: size - exact]
        palette = np.concatenate([colour[common], median_cut])
    # Pillow's own search for the nearest entry is coarse and misses exact ones.
    nearest = np.concatenate(
        [
            np.argmin(np.square(part[:, None].astype(int) - palette).sum(-1), axis=1)
            for part in np.array_split(colour, math.ceil(len(colour) / 4096))
        ]
    ).astype(np.uint8)
    images = [Image.fromarray(nearest[np.searchsorted(colours, frame)]) for frame in packed]
    for image in images:
        image.putpalette(palette.reshape(-1).tolist())
    return images


def terminal(
    game: Game,
    states: Sequence[State],
    rewards: ArrayLike,
    actions: ArrayLike | None,
    labels: Sequence[str],
) -> list[str]:
    """The frames of an episode for the terminal: lines of text each, without a line's end at last.

    Beneath the board each seat has its number, player, last action and sum of rewards. The
    arguments are those of `frames`.
    """
    try:
        boards = [game.text(state) for state in states]
    except NotImplementedError:
        raise UserError(
            f"the game '{game.name}' cannot be shown in the terminal: it has no method `text`; "
            "a page shows every step: --out replay.html"
        ) from None
    table = _lines(game, states, rewards, actions, labels)
    name = max(len(words) for words in ["player", *(line.name for line in table[0])])
    action = max(len(words) for words in ["action", GONE, *game.action_names])
    number = max(len("seat"), len(str(game.seats - 1)))
    head = f"{'seat':>{number}}  {'player':<{name}}  {'action':<{action}}  {'reward':>8}"
    shown = []
    for board, lines in zip(boards, table, strict=True):
        rows = [
            f"{seat:>{number}}  {line.name:<{name}}  {line.action:<{action}}  "
            f"{_number(line.reward):>8}"
            for seat, line in enumerate(lines)
        ]
        shown.append("\n".join([board, "", head, *rows]))
    return shown
