"""What a compiled run needs of memory, and how many game copies would fit."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from coplay.core.archive import memory
from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.nn.networks import view_shape
from coplay.training.config import RunConfig


def needed(program: Any) -> int:
    """Bytes that a compiled program holds at once; 0: the backend does not say."""
    found = program.memory_analysis()
    if found is None:
        return 0
    sizes = ("argument_size_in_bytes", "output_size_in_bytes", "temp_size_in_bytes")
    return sum(getattr(found, name) for name in sizes) - int(found.alias_size_in_bytes)


def refuse_too_much(bytes_: int, run: RunConfig, need: Callable[[RunConfig], int]) -> None:
    """An error if a run needs more memory than the machine has, with the copies that fit.

    need: the bytes of another run of the same phase. A line through two sizes says which copies
    fit, and they are compiled to check it.
    """
    if bytes_ <= memory():
        return
    advice = _advice(largest_that_fits(bytes_, run, need))
    there = f"this machine has {as_gb(memory())}"
    raise UserError(f"this run needs {as_gb(bytes_)} of memory, {there}: give {advice}")


def refuse_too_large(run: RunConfig, game: Game, need: Callable[[RunConfig], int]) -> None:
    """An error if the views of one rollout alone are larger than the machine's memory. Such a run
    is not even compiled."""
    views = _view_bytes(run, game)
    if views <= memory():
        return
    small = run
    while small.copies > 1 and _view_bytes(small, game) > memory() / 16:
        small = dataclasses.replace(small, copies=small.copies // 2)
    try:
        fits = largest_that_fits(need(small), small, need)
    except UserError:  # copies that do not divide
        fits = 0
    raise UserError(
        f"a rollout of {run.copies} copies and {run.rollout} steps takes at least {as_gb(views)} "
        f"of memory, this machine has {as_gb(memory())}: give {_advice(fits)}"
    )


def _view_bytes(run: RunConfig, game: Game) -> int:
    """A byte for each number in the views of one rollout."""
    shape = view_shape(game)
    each = game.seats * (math.prod(shape.planes) + shape.features)
    return run.copies * run.rollout * each


def _advice(copies: int) -> str:
    return f"--copies {copies}" if copies else "fewer --copies or a shorter --rollout"


def largest_that_fits(bytes_: int, run: RunConfig, need: Callable[[RunConfig], int]) -> int:
    """The largest number of copies that fits, by a line; 0: none was found. bytes_: of `run`, which
    may fit or not."""
    copies, half = run.copies, run.copies // 2
    while half:
        try:
            less = need(dataclasses.replace(run, copies=half))
        except UserError:  # copies that do not divide
            return 0
        if less >= bytes_:
            return 0
        slope = (bytes_ - less) / (copies - half)
        # In steps of a quarter of a half: what divides the copies divides most of these.
        step = max(1, half // 8)
        fits = int((memory() - less) / slope) + half if memory() > less else 0
        fits = fits // step * step
        if fits >= half:
            if need(dataclasses.replace(run, copies=fits)) <= memory():
                return fits
            return copies if bytes_ <= memory() else half
        copies, half, bytes_ = half, half // 2, less
    return 0


def as_gb(bytes_: int) -> str:
    return f"{bytes_ / 2**30:,.1f} GB"
