"""What a compiled run needs of memory, and how many game copies would fit."""

import dataclasses
from collections.abc import Callable
from typing import Any

from coplay.core.archive import memory
from coplay.core.errors import RunStopped, UserError
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
    words = f"this run needs {_gb(bytes_)} of memory, this machine has {_gb(memory())}"
    fits = _fitting(bytes_, run, need)
    advice = f"--copies {fits}" if fits else "fewer --copies or a shorter --rollout"
    raise RunStopped(f"{words}: begin it again in another folder with {advice}")


def _fitting(bytes_: int, run: RunConfig, need: Callable[[RunConfig], int]) -> int:
    """The largest number of copies that fits; 0: none was found."""
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
            return half
        copies, half, bytes_ = half, half // 2, less
    return 0


def _gb(bytes_: int) -> str:
    return f"{bytes_ / 2**30:,.1f} GB"
