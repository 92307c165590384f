"""Writing files so that a reader never sees half of one, and so that they outlive a power cut.

Every file of a run, a dataset or a model is changed through `DISK`. A test puts another one in its
place (`using`), which records what happened or fails.
"""

import contextlib
import errno
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TEMPORARY = re.compile(r"\..+\.\d+\.tmp")
"""The names of files and folders that were not finished: .NAME.PROCESS.tmp"""


class Disk:
    """The operations that change a folder."""

    def make_folder(self, path: Path) -> None:
        path.mkdir(exist_ok=True)

    def written(self, path: Path) -> None:
        """A temporary file has got its content, by whoever wrote it."""

    def sync(self, path: Path) -> None:
        """Wait until a file's content, or a folder's list of names, is on the disk."""
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        except OSError as error:
            # Some network file systems cannot do this for folders.
            if not (path.is_dir() and error.errno in (errno.EINVAL, errno.ENOTSUP)):
                raise
        finally:
            os.close(number)

    def replace(self, source: Path, target: Path) -> None:
        os.replace(source, target)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def append(self, path: Path, data: bytes) -> None:
        with open(path, "ab", buffering=0) as file:
            left = memoryview(data)
            while left:
                left = left[file.write(left) :]

    def cut(self, path: Path, size: int) -> None:
        """Shorten a file; it never becomes longer."""
        if path.stat().st_size > size:
            os.truncate(path, size)


DISK = Disk()


@contextlib.contextmanager
def using(disk: Disk) -> Iterator[None]:
    """Another disk for a while."""
    global DISK
    before, DISK = DISK, disk
    try:
        yield
    finally:
        DISK = before


def make_folder(path: Path) -> None:
    """A folder and those above it, on the disk when this returns."""
    missing = [path, *path.parents]
    missing = missing[: next(i for i, one in enumerate(missing) if one.exists())]
    for one in reversed(missing):
        DISK.make_folder(one)
        DISK.sync(one.parent)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place, on disk, when the block succeeds."""
    path = Path(path)
    make_folder(path.parent)
    temporary = unfinished_name(path)
    try:
        yield temporary
        DISK.written(temporary)
        DISK.sync(temporary)
        for tell in _told(path):
            tell(path, temporary)
        DISK.replace(temporary, path)
        DISK.sync(path.parent)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def unfinished_name(path: Path) -> Path:
    """The name of a file or folder until it is finished."""
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


Tell = Callable[[Path, Path | None], None]
_TOLD: dict[Path, Tell] = {}


@contextlib.contextmanager
def telling(folder: Path, tell: Tell) -> Iterator[None]:
    """Call `tell(path, temporary)` before a finished file takes its place in a folder, and
    `tell(path, None)` before one is removed."""
    key = folder.resolve()
    _TOLD[key] = tell
    try:
        yield
    finally:
        _TOLD.pop(key, None)


def _told(path: Path) -> list[Tell]:
    if not _TOLD:
        return []
    full = path.parent.resolve() / path.name
    return [tell for folder, tell in _TOLD.items() if folder in full.parents]


def remove(path: Path) -> None:
    """Remove a finished file."""
    for tell in _told(path):
        tell(path, None)
    DISK.remove(path)


def remove_leftovers(folder: Path) -> list[Path]:
    """Remove what a process that died in a folder left unfinished; nobody else may write there."""
    found = []
    for place, folders, names in os.walk(folder):
        for name in [name for name in (*folders, *names) if TEMPORARY.fullmatch(name)]:
            path = Path(place) / name
            found.append(path)
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        folders[:] = [name for name in folders if not TEMPORARY.fullmatch(name)]
    return found


def copy_file(source: Path, target: Path) -> None:
    """A copy, whole or not at all."""
    with replacing(target) as temporary:
        shutil.copyfile(source, temporary)


def write_json(path: Path, data: Any) -> None:
    """JSON with one field per line, written whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(data, indent=2) + "\n")


def new_folder(*words: str) -> Path:
    """A folder below runs/ that does not exist yet, named by these words and a number."""
    name = re.sub(r"[^A-Za-z0-9._]+", "-", "-".join(words)).strip("-")
    number = 1
    while (path := Path("runs") / f"{name}-{number}").exists():
        number += 1
    return path
