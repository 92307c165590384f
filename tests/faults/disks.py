"""Disks that record every state of a folder, and disks that fail."""

import errno
import os
import random
from pathlib import Path

from coplay.core.files import Disk

Snapshot = dict[str, bytes]
"""Name below a folder -> content: all that a crash leaves of it."""


def snapshot(folder: Path) -> Snapshot:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def put_back(state: Snapshot, folder: Path) -> None:
    folder.mkdir(parents=True)
    for name, data in state.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


class RecordingDisk(Disk):
    """Keeps the folder as it is after every operation. What is being written is also kept cut at a
    random place, as a crash in the middle leaves it."""

    def __init__(self, folder: Path, seed: int = 0):
        self.folder = folder
        self.states: list[Snapshot] = []
        self.random = random.Random(seed)

    def _keep(self, cut: Path | None = None, least: int = 0) -> None:
        state = snapshot(self.folder) if self.folder.exists() else {}
        if cut is not None and cut.is_relative_to(self.folder):  # models are made elsewhere first
            name = cut.relative_to(self.folder).as_posix()
            size = self.random.randint(least, len(state[name]))
            self.states.append(state | {name: state[name][:size]})
        self.states.append(state)

    def make_folder(self, path: Path) -> None:
        super().make_folder(path)
        self._keep()

    def written(self, path: Path) -> None:
        super().written(path)
        self._keep(cut=path)

    def replace(self, source: Path, target: Path) -> None:
        super().replace(source, target)
        self._keep()

    def remove(self, path: Path) -> None:
        super().remove(path)
        self._keep()

    def append(self, path: Path, data: bytes) -> None:
        before = path.stat().st_size if path.exists() else 0
        super().append(path, data)
        self._keep(cut=path, least=before)

    def cut(self, path: Path, size: int) -> None:
        super().cut(path, size)
        self._keep()


class FailingDisk(Disk):
    """Fails at the operation with a number, with an error of the system. What was to be written is
    there in part then. number -1: never; `count` says how many operations there were."""

    def __init__(self, number: int = -1, code: int = errno.ENOSPC):
        self.number, self.code = number, code
        self.count = 0
        self.kinds: list[str] = []

    def _fails(self, kind: str) -> bool:
        self.kinds.append(kind)
        self.count += 1
        return self.count - 1 == self.number

    def _error(self, path: Path) -> OSError:
        return OSError(self.code, os.strerror(self.code), str(path))

    def make_folder(self, path: Path) -> None:
        if self._fails("make_folder"):
            raise self._error(path)
        super().make_folder(path)

    def written(self, path: Path) -> None:
        if self._fails("written"):
            os.truncate(path, path.stat().st_size // 2)
            raise self._error(path)

    def sync(self, path: Path) -> None:
        if self._fails("sync"):
            raise self._error(path)

    def replace(self, source: Path, target: Path) -> None:
        if self._fails("replace"):
            raise self._error(target)
        super().replace(source, target)

    def remove(self, path: Path) -> None:
        if self._fails("remove"):
            raise self._error(path)
        super().remove(path)

    def append(self, path: Path, data: bytes) -> None:
        if self._fails("append"):
            super().append(path, data[: len(data) // 2])
            raise self._error(path)
        super().append(path, data)

    def cut(self, path: Path, size: int) -> None:
        if self._fails("cut"):
            raise self._error(path)
        super().cut(path, size)
