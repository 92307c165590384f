"""The curves of a run that trains: its rows are read once, as they are appended."""

import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from coplay.core.errors import UserError
from coplay.core.reading import MOST_ROWS, open_file
from coplay.training.logs import NOT_METRICS
from coplay.training.records import row_of

POINTS = 400
"""The most points of a curve."""
MOST_METRICS, MOST_SEEDS = 500, 32
"""What is kept of a run; a stranger's run may name any number."""
PART = 1 << 20
"""Bytes that are read at once."""
DIGITS = 5


class Tail:
    """Reads what is new in a record of rows, and keeps every metric as means over steps of equal
    width. The width doubles when there would be too many points.

    metrics: the names, in the order of the rows.
    """

    def __init__(self, path: Path):
        self.path = path
        self._begin()

    def _begin(self) -> None:
        self._at, self._file = 0, -1  # bytes read, and of which file
        self._half = b""
        self._width = 1
        self._seeds: dict[int, int] = {}
        self._steps = np.zeros((2, POINTS))  # sums and counts
        self._sums: dict[str, np.ndarray] = {}  # metric -> [sum or count, seed, point]

    @property
    def metrics(self) -> list[str]:
        return list(self._sums)

    def read(self) -> bool:
        """Take in what was appended; whether there was anything. A record that became shorter, as
        when a run is resumed, is read anew."""
        try:
            about = os.stat(self.path)
        except OSError:
            about = None
        same = about is not None and about.st_ino == self._file and about.st_size >= self._at
        fresh = self._at > 0 and not same
        if fresh:
            self._begin()
        if about is None or about.st_size == self._at:
            return fresh
        self._file = about.st_ino
        try:
            with open_file(self.path, MOST_ROWS) as file:
                file.seek(self._at)
                while part := file.read(PART):
                    self._at += len(part)
                    *lines, self._half = (self._half + part).split(b"\n")
                    for line in lines:
                        self._take(line)
                    if len(self._half) > PART:  # no row is so long
                        self._half = b""
        except UserError:
            return fresh
        return True

    def _take(self, line: bytes) -> None:
        try:
            row = row_of(line)
        except ValueError:
            return
        step, seed = row.get("step"), row.get("seed", 0)
        if not isinstance(step, int) or not isinstance(seed, int) or not 0 <= step < 1 << 60:
            return
        if seed not in self._seeds and len(self._seeds) == MOST_SEEDS:
            return
        index = self._seeds.setdefault(seed, len(self._seeds))
        while step // self._width >= POINTS:
            self._widen()
        point = step // self._width
        self._steps[:, point] += step, 1
        for name, value in row.items():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if name in NOT_METRICS or not number or not math.isfinite(value):
                continue
            if name not in self._sums and len(self._sums) < MOST_METRICS:
                self._sums[name] = np.zeros((2, 0, POINTS))
            if name in self._sums:
                self._of(name)[:, index, point] += value, 1

    def _of(self, name: str) -> np.ndarray:
        """The sums of a metric, with room for all seeds."""
        sums = self._sums[name]
        if sums.shape[1] < len(self._seeds):
            sums = np.pad(sums, ((0, 0), (0, len(self._seeds) - sums.shape[1]), (0, 0)))
            self._sums[name] = sums
        return sums

    def _widen(self) -> None:
        """Points of twice the width: half as many."""
        self._width *= 2
        self._steps = _halved(self._steps)
        self._sums = {name: _halved(sums) for name, sums in self._sums.items()}

    def curve(self, metric: str) -> dict[str, Any]:
        """A metric over training: steps, the mean over seeds, and with several seeds the lowest
        and the highest of them."""
        sums = self._sums.get(metric, np.zeros((2, 1, POINTS)))
        has = sums[1].sum(0) > 0
        with np.errstate(invalid="ignore", divide="ignore"):
            values = sums[0][:, has] / sums[1][:, has]  # [seed, point]; NaN: no row
            steps = self._steps[0, has] / self._steps[1, has]
        found = {"steps": np.round(steps).astype(int).tolist()}
        mean = np.nanmean(values, axis=0) if has.any() else np.zeros(0)
        found["mean"] = _numbers(mean)
        if len(values) > 1 and has.any():
            found |= {"low": _numbers(np.nanmin(values, axis=0))}
            found |= {"high": _numbers(np.nanmax(values, axis=0))}
        return found


def _halved(values: np.ndarray) -> np.ndarray:
    pairs = values.reshape(*values.shape[:-1], POINTS // 2, 2).sum(-1)
    return np.concatenate([pairs, np.zeros_like(pairs)], axis=-1)


def _numbers(values: np.ndarray) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values]
