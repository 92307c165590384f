"""`manifest.json`: the size and the checksum (SHA-256) of every finished file of a folder.

A file that is replaced has both contents in the manifest while it is replaced: the manifest is
written first, and a crash between the two writes leaves a file that still matches.
"""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from coplay.core import files
from coplay.core.reading import read_json
from coplay.core.version import VERSION

MANIFEST = "manifest.json"
ABSENT: dict[str, Any] = {"bytes": -1, "sha256": ""}
"""The content of a file that is not there yet."""


def checksum(path: Path, size: int | None = None) -> dict[str, Any]:
    """{"bytes", "sha256"} of a file, or of its first `size` bytes."""
    found, left = hashlib.sha256(), size
    count = 0
    with open(path, "rb") as file:
        while part := file.read(1 << 20 if left is None else min(1 << 20, left)):
            found.update(part)
            count += len(part)
            left = None if left is None else left - len(part)
    return {"bytes": count, "sha256": found.hexdigest()}


class Manifest:
    """The manifest of a folder that is open for writing.

    entries: name -> contents that the file may have; the first is what is meant to be there.
    growing: whether a file below the folder is appended to. Its checksum is taken when nobody
        writes (`settle`), marked by "grows", and holds for that many bytes at its beginning.
    """

    def __init__(self, folder: Path, growing: Callable[[str], bool] = lambda name: False):
        self.folder, self.growing = folder, growing
        self.entries: dict[str, list[dict[str, Any]]] = {}
        with contextlib.suppress(ValueError):  # `coplay check` speaks of a damaged one
            self.entries = read_manifest(folder)

    @contextlib.contextmanager
    def keeping(self) -> Iterator["Manifest"]:
        """List whatever is finished in the folder."""
        settled = {name for name, contents in self.entries.items() if "grows" in contents[0]}
        if settled:  # these may be cut back now
            self.entries = {n: found for n, found in self.entries.items() if n not in settled}
            self.write()
        with files.telling(self.folder, self._list):
            yield self

    def _list(self, path: Path, temporary: Path | None) -> None:
        place = path.parent.resolve().relative_to(self.folder.resolve()) / path.name
        name = place.as_posix()
        if name == MANIFEST or self.growing(name):
            return
        before = self._there(name) or [ABSENT]
        self.entries.pop(name, None)
        if temporary is not None:
            new = checksum(temporary)
            self.entries[name] = [new, *(one for one in before if one != new)]
        self.write()

    def _there(self, name: str) -> list[dict[str, Any]]:
        """The content that a file has now, out of those that it may have."""
        contents = self.entries.get(name, [])
        if len(contents) < 2:
            return contents
        return [one for one in contents if _is(self.folder / name, one)] or contents

    def settle(self) -> None:
        """Write the manifest with the contents that the files have."""
        there = {name: self._there(name) for name in self.entries}
        self.entries = {name: found for name, found in there.items() if found != [ABSENT]}
        for path in sorted(self.folder.rglob("*")):
            name = path.relative_to(self.folder).as_posix()
            if self.growing(name) and path.is_file():
                self.entries[name] = [checksum(path) | {"grows": True}]
        self.write()

    def write(self) -> None:
        """Write the manifest as it stands."""
        listed = {
            name: contents[0] | ({"or": contents[1:]} if contents[1:] else {})
            for name, contents in sorted(self.entries.items())
            if contents
        }
        about = {"coplay": VERSION, "files": listed}
        files.write_json(self.folder / MANIFEST, about | {"sha256": _own_checksum(about)})


def _is(path: Path, content: dict[str, Any]) -> bool:
    try:
        return path.stat().st_size == content["bytes"] and checksum(path) == content
    except FileNotFoundError:
        return content == ABSENT
    except OSError:
        return False


def _own_checksum(about: dict[str, Any]) -> str:
    """Of what a manifest says, apart from this checksum."""
    said = {name: value for name, value in about.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _content(entry: dict[str, Any]) -> dict[str, Any]:
    content = {"bytes": int(entry["bytes"]), "sha256": str(entry["sha256"])}
    return content | ({"grows": True} if "grows" in entry else {})


def read_manifest(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Name -> contents that the file may have. `ValueError`: it is no manifest.

    A name that leads out of the folder is an error: a manifest may come from anybody.
    """
    try:
        data = read_json(folder / MANIFEST)
        found = {
            name: [_content(one) for one in contents]
            for name, entry in data["files"].items()
            for contents in [[entry, *entry.get("or", [])]]
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{folder / MANIFEST} is no manifest: {error!r}") from error
    for name in found:
        parts = PurePosixPath(name).parts
        if not parts or ".." in parts or PurePosixPath(name).is_absolute() or "\\" in name:
            raise ValueError(f"{folder / MANIFEST} names a file outside of the folder: {name!r}")
    if data.get("sha256") != _own_checksum(data):
        raise ValueError(f"{folder / MANIFEST} does not match its own checksum")
    return found


@contextlib.contextmanager
def listing(folder: Path) -> Iterator[None]:
    """Files that are written in the block are listed in the manifest of their folder, which may
    have none yet."""
    files.make_folder(folder)
    manifest = Manifest(folder)
    with manifest.keeping():
        yield
    manifest.settle()


@contextlib.contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """A folder to write files into that appears as `out`, with a manifest, when the block succeeds,
    or not at all."""
    files.make_folder(out.parent)
    unfinished = files.unfinished_name(out)
    try:
        files.DISK.make_folder(unfinished)
        yield unfinished
        manifest = Manifest(unfinished)
        for place, _, names in os.walk(unfinished):
            for name in names:
                path = Path(place) / name
                files.DISK.sync(path)
                manifest.entries[path.relative_to(unfinished).as_posix()] = [checksum(path)]
            files.DISK.sync(Path(place))
        manifest.write()
        files.DISK.replace(unfinished, out)
        files.DISK.sync(out.parent)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
