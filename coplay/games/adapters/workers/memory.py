"""Memory that processes share: arrays in one file without a name, gone with the last of them."""

import mmap
import os
import tempfile
from typing import NamedTuple

import numpy as np

from coplay.games.adapters.workers.seats import Seats, Views

ALIGNED = 64


class SharedArrays(NamedTuple):
    """What a pool of environments and its workers exchange; a row is an environment.

    action: [row, seat] int32. active: [row] which environments step.
    after: what seats see after the step, before any reset. fresh: after the reset, where `over`.
    reward: [row, seat] float32. terminated, truncated: [row, seat] bool. over: [row] bool.
    score: [row, score] float32 of the episode that ended in the step, where `over`.
    at: [worker, 4] int64: calls begun, row, episode and step of the call that is under way.
    episode: [row] int64, the number of the episode that is played. cut: [row] bool: the
        environment failed in the step and was made anew, so its episode has no end of its own.
    """

    action: np.ndarray
    active: np.ndarray
    after: Views
    fresh: Views
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    over: np.ndarray
    score: np.ndarray
    at: np.ndarray
    episode: np.ndarray
    cut: np.ndarray


def new_file(seats: Seats, rows: int, workers: int) -> int:
    """The descriptor of an empty file that holds a board."""
    size = sum(_sizes(seats, rows, workers))
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("coplay")
    else:
        descriptor, path = tempfile.mkstemp()
        os.unlink(path)
    os.ftruncate(descriptor, size)
    return descriptor


def open_arrays(descriptor: int, seats: Seats, rows: int, workers: int) -> SharedArrays:
    """The arrays in the file."""
    sizes = _sizes(seats, rows, workers)
    memory = mmap.mmap(descriptor, sum(sizes))
    arrays, place = [], 0
    for (shape, kind), size in zip(_layout(seats, rows, workers), sizes, strict=True):
        count = int(np.prod(shape))
        arrays.append(np.frombuffer(memory, kind, count, place).reshape(shape))
        place += size
    action, active, reward, terminated, truncated, over, score, at, episode, cut, *views = arrays
    half = len(Views._fields)
    after, fresh = Views(*views[:half]), Views(*views[half:])
    return SharedArrays(
        action, active, after, fresh, reward, terminated, truncated, over, score, at, episode, cut
    )


def _layout(seats: Seats, rows: int, workers: int) -> list[tuple[tuple[int, ...], np.dtype]]:
    number, truth, real = np.dtype(np.int32), np.dtype(bool), np.dtype(np.float32)
    each = (rows, seats.count)
    views = [
        ((*each, *seats.planes), seats.plane_type),
        ((*each, seats.features), real),
        ((*each, seats.actions), truth),
        (each, truth),
        ((rows, seats.global_state), real),
    ]
    return [
        (each, number),
        ((rows,), truth),
        (each, real),
        (each, truth),
        (each, truth),
        ((rows,), truth),
        ((rows, len(seats.scores)), real),
        ((workers, 4), np.dtype(np.int64)),
        ((rows,), np.dtype(np.int64)),
        ((rows,), truth),
        *views,
        *views,
    ]


def _sizes(seats: Seats, rows: int, workers: int) -> list[int]:
    """Bytes of the arrays, each rounded up so that the next is aligned."""
    return [
        max(1, -(-int(np.prod(shape)) * kind.itemsize // ALIGNED)) * ALIGNED
        for shape, kind in _layout(seats, rows, workers)
    ]
