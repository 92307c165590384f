"""The rows of a run as curves of bounded length, read once from the file."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from coplay.core.reading import MOST_ROWS, open_file
from coplay.training.logs import NOT_METRICS
from coplay.training.records import row_of

MOST_SEEDS = 100
"""Seeds that are read; a page with more shows nothing more."""
MOST_NUMBERS = 40_000_000
"""Numbers that are kept while reading; rows of other names beyond are left out."""
TAIL = 1 << 20
"""Bytes at the end of a file that hold its last row."""


class Curves(NamedTuple):
    """steps: [point] the mean step of the rows of each point. values: metric -> [seed, point] the
    mean of these rows; NaN where there is no number. rows: how many were read."""

    steps: np.ndarray
    values: dict[str, np.ndarray]
    rows: int


def read_curves(path: Path, seeds: list[int], points: int) -> Curves:
    """The rows of a record, with steps of equal width put together in at most so many points.

    Rows of other seeds, and rows and numbers that are damaged, are left out.
    """
    place = {float(seed): index for index, seed in enumerate(seeds[:MOST_SEEDS])}
    last = last_step(path)
    bins = np.zeros((2, points))  # sums and counts of steps
    tables: dict[tuple[str, ...], np.ndarray] = {}  # names -> [sum or count, seed, point, name]
    count, left = 0, MOST_NUMBERS
    if last is not None:
        with open_file(path, MOST_ROWS) as file:
            for line in file:
                row = _row(line)
                seed, step = _number(row.get("seed")), _number(row.get("step"))
                if seed not in place or not 0 <= step <= last:
                    continue
                count += 1
                point = min(int(max(step - 1, 0) * points / max(last, 1)), points - 1)
                bins[:, point] += step, 1
                names = tuple(row)
                if names not in tables:
                    left -= 2 * len(place) * points * len(names)
                    if left < 0:
                        break
                    tables[names] = np.zeros((2, len(place), points, len(names)))
                values = _numbers(row)
                known = np.isfinite(values)
                tables[names][:, place[seed], point] += np.where(known, values, 0.0), known
    return _joined(bins, tables, count)


def _row(line: bytes) -> dict[str, Any]:
    try:
        return row_of(line)
    except ValueError:
        return {}


def _numbers(row: dict[str, Any]) -> np.ndarray:
    """The values of a row; NaN for what is no number."""
    try:
        return np.array(list(row.values()), float)
    except (ValueError, TypeError, OverflowError):
        return np.array([_number(value) for value in row.values()])


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return np.nan
    try:
        return float(value)
    except OverflowError:
        return np.nan


def _joined(bins: np.ndarray, tables: dict[tuple[str, ...], np.ndarray], count: int) -> Curves:
    """Points that have rows, and the metrics of all rows by name."""
    kept = bins[1] > 0
    steps = bins[0, kept] / bins[1, kept]
    sums: dict[str, np.ndarray] = {}
    for names, table in tables.items():
        for index, name in enumerate(names):
            if name in NOT_METRICS:
                continue
            found = table[:, :, kept, index]
            sums[name] = sums[name] + found if name in sums else found
    with np.errstate(invalid="ignore"):
        values = {name: found[0] / found[1] for name, found in sums.items()}
    return Curves(steps, values, count)


def last_step(path: Path) -> float | None:
    """The step of the last whole row of a record; None: it has no rows."""
    if not path.exists():
        return None
    with open_file(path, MOST_ROWS) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
        for line in reversed(file.read().splitlines()):
            step = _number(_row(line).get("step"))
            if step >= 0:
                return step
    return None
