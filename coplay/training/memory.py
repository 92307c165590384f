"""What a compiled run needs of memory, and how many game copies would fit."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.core.machine import free_memory
from coplay.nn.networks import view_shape
from coplay.training.config import RunConfig

ROOM = 0.9
"""The share of the free memory that a run may take: other programs grow, too."""


def room() -> int:
    """Bytes that a run may take."""
    return int(ROOM * free_memory())


def needed(program: Any) -> int:
    """Bytes that a compiled program holds at once; 0: the backend does not say."""
    found = program.memory_analysis()
    if found is None:
        return 0
    sizes = ("argument_size_in_bytes", "output_size_in_bytes", "temp_size_in_bytes")
    return sum(getattr(found, name) for name in sizes) - int(found.alias_size_in_bytes)


def refuse_too_much(
    bytes_: int, run: RunConfig, need: Callable[[RunConfig], int], unit: int = 1
) -> None:
    """An error if a run needs more memory than is free, with the copies that fit.

    need: the bytes of another run of the same phase. A line through two sizes says which copies
    fit, and they are compiled to check it. unit: copies are a multiple of it.
    """
    if bytes_ <= room():
        return
    advice = _advice(largest_that_fits(bytes_, run, need, unit))
    there = f"this machine has {as_gb(free_memory())} free"
    raise UserError(f"this run needs {as_gb(bytes_)} of memory, {there}: give {advice}")


def refuse_too_large(
    run: RunConfig, game: Game, need: Callable[[RunConfig], int], unit: int = 1
) -> None:
    """An error if the views of one rollout alone are larger than the memory that is free. Such a
    run is not even compiled. need, unit: as of `refuse_too_much`."""
    views, there = _view_bytes(run, game), room()
    if views <= there:
        return
    share = int(run.copies * there / 16 / views)
    small = dataclasses.replace(run, copies=max(share // unit, 1) * unit)
    try:
        fits = largest_that_fits(need(small), small, need, unit)
    except UserError:  # several devices
        fits = 0
    raise UserError(
        f"a rollout of {run.copies} copies and {run.rollout} steps takes at least {as_gb(views)} "
        f"of memory, this machine has {as_gb(free_memory())} free: give {_advice(fits)}"
    )


def _view_bytes(run: RunConfig, game: Game) -> int:
    """A byte for each number in the views of one rollout."""
    shape = view_shape(game)
    each = game.seats * (math.prod(shape.planes) + shape.features)
    return run.copies * run.rollout * each


def _advice(copies: int) -> str:
    return f"--copies {copies}" if copies else "fewer --copies or a shorter --rollout"


def largest_that_fits(
    bytes_: int, run: RunConfig, need: Callable[[RunConfig], int], unit: int = 1
) -> int:
    """The largest number of copies that fits, by a line; 0: none was found. bytes_: of `run`, which
    may fit or not. unit: copies are a multiple of it."""
    there = room()
    parts = run.copies // unit  # everything is counted in units from here on
    half = parts // 2

    def needed_by(parts: int) -> int:
        return need(dataclasses.replace(run, copies=parts * unit))

    while half:
        try:
            less = needed_by(half)
        except UserError:  # several devices
            return 0
        if less >= bytes_:
            return 0
        slope = (bytes_ - less) / (parts - half)
        step = max(1, half // 8)  # rounded down, for the line is not exact
        fits = int((there - less) / slope) + half if there > less else 0
        fits = fits // step * step
        if fits >= half:
            if needed_by(fits) <= there:
                return fits * unit
            return (parts if bytes_ <= there else half) * unit
        parts, half, bytes_ = half, half // 2, less
    return 0


def as_gb(bytes_: int) -> str:
    return f"{bytes_ / 2**30:,.1f} GB"
