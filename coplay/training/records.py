"""Files of JSON rows that grow while a run goes: `metrics.jsonl`, `evaluations.jsonl`,
`history.jsonl`.

A checkpoint states the length of such a file and the checksum of that prefix. A run that is taken
up there compares, and cuts off what came later.
"""

import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coplay.core import files
from coplay.core.reading import MOST_ROWS, open_file
from coplay.core.version import VERSION

HISTORY = "history.jsonl"
END = 1 << 20
"""Bytes at the end of a record that hold its last rows."""


class Record:
    """A file of rows that is appended to by one process."""

    def __init__(self, path: Path):
        self.path = path
        self.bytes = 0
        self._hash = hashlib.sha256()

    def begin(self) -> None:
        """Start without rows."""
        self.bytes, self._hash = 0, hashlib.sha256()
        if self.path.exists():
            files.DISK.cut(self.path, 0)

    def append(self, rows: list[dict[str, Any]]) -> None:
        """Rows in one write. A disk that fails leaves at most a last row that is cut short."""
        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
        if data:
            files.DISK.append(self.path, data)
            self._count(data)

    def _count(self, data: bytes) -> None:
        self.bytes += len(data)
        self._hash.update(data)

    def state(self) -> dict[str, Any]:
        """{"bytes", "sha256"}, all of it safely on disk."""
        if self.path.exists():
            files.DISK.sync(self.path)
        return {"bytes": self.bytes, "sha256": self._hash.hexdigest()}

    def go_on(self, stated: Mapping[str, Any], step: int) -> list[str]:
        """Go back to what a checkpoint of `step` states; what was wrong, in sentences.

        stated: {"bytes"} and perhaps {"sha256"}. A file is never made longer. Rows that a damaged
        or shortened file still holds are kept.
        """
        name, size = self.path.name, stated["bytes"]
        if not self.path.exists():
            self.begin()
            return [f"{name} is missing: its rows up to step {step} are lost"] if size else []
        if self.path.stat().st_size < size:
            return self._save_rows(f"{name} is shorter than at the checkpoint", step)
        self.bytes, self._hash = 0, hashlib.sha256()
        with open(self.path, "rb") as file:
            while part := file.read(min(1 << 20, size - self.bytes)):
                self._count(part)
            file.seek(0, 2)
            length = file.tell()
            file.seek(max(length - 1, 0))
            torn = length > size and file.read(1) != b"\n"
        if stated.get("sha256") not in (None, self._hash.hexdigest()):
            return self._save_rows(f"{name} does not match its checksum", step)
        files.DISK.cut(self.path, size)
        return [f"{name} ended in half a row, which is cut off"] if torn else []

    def keep_until(self, step: int) -> list[str]:
        """Go back to a step where no checkpoint states the length; what was wrong, in sentences."""
        if not self.path.exists():
            self.begin()
            return []
        return self._save_rows(f"{self.path.name} holds lines that cannot be read", step, False)

    def _save_rows(self, wrong: str, step: int, surely: bool = True) -> list[str]:
        """Keep the rows up to a step that can still be read. surely: something is wrong even if all
        lines can be."""
        lines = self.path.read_bytes().splitlines(keepends=True)
        good = [line for line in lines if is_row(line) and row_of(line).get("step", 0) <= step]
        last = max((row_of(line).get("step", 0) for line in good), default=0)
        lost = sum(not is_row(line) for line in lines)
        kept = b"".join(good)
        with files.replacing(self.path) as temporary:
            temporary.write_bytes(kept)
        self.bytes, self._hash = 0, hashlib.sha256()
        self._count(kept)
        words = f"{wrong}: {len(good)} rows are kept, the last of step {last}"
        words += f"; {lost} lines could not be read" if lost else ""
        return [words] if surely or lost else []


def row_of(line: bytes) -> dict[str, Any]:
    """The row in a line; `ValueError` if there is none."""
    try:
        row = json.loads(line)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(row, dict):
        raise ValueError("not an object")
    return row


def is_row(line: bytes) -> bool:
    """Whether a line is a whole row."""
    try:
        row = row_of(line)
    except ValueError:
        return False
    return line.endswith(b"\n") and isinstance(row.get("step", 0), int)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a record; lines that are damaged or cut short by a crash are left out."""
    if not path.exists():
        return []
    rows = []
    with open_file(path, MOST_ROWS) as file:
        for line in file:
            try:
                rows.append(row_of(line))
            except ValueError:
                continue
    return rows


def last_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of the last step of a record, from the end of the file alone."""
    if not path.exists():
        return []
    with open_file(path, MOST_ROWS) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - END))
        lines = file.read().splitlines()
    rows: list[dict[str, Any]] = []
    for line in reversed(lines):
        try:
            row = row_of(line)
        except ValueError:
            continue
        if rows and row.get("step") != rows[-1].get("step"):
            break
        rows.append(row)
    return rows[::-1]


def note_in_history(folder: Path, event: str, step: int, **more: Any) -> None:
    """Append what happened to a run: begun, resumed, forced, damaged, finished."""
    path = folder / HISTORY
    moment = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    row = {"time": moment, "event": event, "step": step, "coplay": VERSION, **more}
    if path.exists():  # half a row that a crash left is cut off
        files.DISK.cut(path, path.read_bytes().rfind(b"\n") + 1)
    files.DISK.append(path, json.dumps(row).encode() + b"\n")
    files.DISK.sync(path)
