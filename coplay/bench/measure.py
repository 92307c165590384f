"""How to measure: programs in one process taking turns, medians, compile time apart."""

import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax

from coplay.core.progress import Told
from coplay.reports.progress import ProgressLine


@dataclass(frozen=True)
class Work:
    """A program to measure. unit: what is counted; amount: how many of them one call does."""

    name: str
    unit: str
    amount: int
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Speed:
    """seconds: median of the calls. compile_seconds: tracing and compiling, cache left out.
    turns: seconds of each call, in order."""

    work: Work
    seconds: float
    compile_seconds: float
    turns: tuple[float, ...] = ()

    @property
    def per_second(self) -> float:
        return self.work.amount / self.seconds


def measure(works: list[Work], repeats: int) -> list[Speed]:
    """Every program is compiled and warmed up, then all take turns `repeats` times. A line tells
    how far it is."""
    with ProgressLine(transient=True) as progress:
        return _measure(works, repeats, progress.work)


def _measure(works: list[Work], repeats: int, told: Told) -> list[Speed]:
    compiled, compile_seconds = [], []
    for number, work in enumerate(works):
        told("compiling programs", number, len(works))
        begun = time.perf_counter()
        program = jax.jit(work.function).lower(*work.arguments).compile()
        compile_seconds.append(time.perf_counter() - begun)
        jax.block_until_ready(program(*work.arguments))
        compiled.append(program)
    times: list[list[float]] = [[] for _ in works]
    for turn in range(repeats):
        told("measuring turns", turn, repeats)
        for index, (work, program) in enumerate(zip(works, compiled, strict=True)):
            begun = time.perf_counter()
            jax.block_until_ready(program(*work.arguments))
            times[index].append(time.perf_counter() - begun)
    return [
        Speed(work, statistics.median(taken), seconds, tuple(taken))
        for work, taken, seconds in zip(works, times, compile_seconds, strict=True)
    ]


def ratio_words(row: Mapping[str, Any]) -> str:
    """How many times faster ours is, with the range over turns."""
    low, high = row["range"]
    return f"{row['ratio']:.2f} ({low:.2f} to {high:.2f})"


def peak_memory_mb() -> float:
    """The largest resident memory of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 if sys.platform != "darwin" else 1024 * 1024)
