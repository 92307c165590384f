"""Reading NumPy archives (.npz) that somebody else may have written.

Nothing is unpacked before the table of contents and the header of every array have been checked:
which arrays there are, of which types and shapes, and how many bytes they take. Nothing in an
archive is executed, and no name in it is used as a path.
"""

import contextlib
import io
import math
import os
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from coplay.core.reading import open_file

ENDING = ".npy"
MOST_ENTRIES = 100_000
MOST_RATIO = 200
"""How many times its own size a compressed archive may take when it is unpacked …"""
SMALL = 64 << 20
"""… unless it takes no more bytes than this."""
HEADER = 1 << 14  # bytes of an entry in which the header of its array must end
CHUNK = 1 << 20
ENCRYPTED_OR_PATCHED = 0x61  # flags of an entry that this reader does not support
NUMBERS = "biuf"  # kinds of types: truth values, whole numbers, other numbers


class DamagedArchive(Exception):
    """A file that is no complete archive of the arrays that belong in it; the message says why."""


class Form(NamedTuple):
    """The shape and the type of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def size(self) -> int:
        """Bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


class Archive:
    """An open archive whose contents are known and not yet read.

    path: of the file. forms: name of an array -> its form, in the order of the file.
    """

    def __init__(self, path: Path, file: zipfile.ZipFile, size: int):
        self.path, self._file = path, file
        entries = file.infolist()
        self._entries = {entry.filename.removesuffix(ENDING): entry for entry in entries}
        _check_table(entries, self._entries, size)
        self.forms: dict[str, Form] = {}
        self._begins: dict[str, int] = {}
        for name, entry in self._entries.items():
            self.forms[name], self._begins[name] = _read_header(file, entry)
            if entry.file_size != self._begins[name] + self.forms[name].size:
                raise DamagedArchive(f"the size of {name} is not that of {self.forms[name]}")

    def read(self, name: str) -> np.ndarray:
        """An array; its checksum is checked."""
        form = self.forms[name]
        array = np.empty(form.shape, form.dtype)
        place = array.reshape(-1).view(np.uint8)
        done = 0
        with self._file.open(self._entries[name]) as stream:
            _exactly(stream, self._begins[name])
            while done < form.size:
                part = _exactly(stream, min(CHUNK, form.size - done))
                place[done : done + len(part)] = np.frombuffer(part, np.uint8)
                done += len(part)
            # The checksum is compared where the entry ends.
            if stream.read(1):
                raise DamagedArchive(f"{name} is longer than it says")
        return array

    def check(self, name: str) -> None:
        """Compare an array with its checksum without keeping it."""
        with self._file.open(self._entries[name]) as stream:
            while stream.read(CHUNK):
                pass


@contextlib.contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """An archive. Whatever is wrong with it, here or when it is read, is a `DamagedArchive`."""
    try:
        with open_file(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            size = os.fstat(file.fileno()).st_size
            with zipfile.ZipFile(file) as archive:
                yield Archive(path, archive, size)
    except DamagedArchive as error:
        raise DamagedArchive(f"{path}: {error}") from error
    except Exception as error:
        # Libraries answer a damaged file with nearly every kind of exception.
        raise DamagedArchive(f"{path}: {error or type(error).__name__}") from error


def check_forms(archive: Archive, wanted: Mapping[str, Form]) -> None:
    """An error unless the archive holds exactly these arrays."""
    different = sorted(set(wanted) ^ set(archive.forms))
    if different:
        raise DamagedArchive(
            f"{len(different)} arrays differ from what is expected, first {different[0][:80]}"
        )
    for name, form in wanted.items():
        if archive.forms[name] != form:
            raise DamagedArchive(f"{name} is {archive.forms[name]}, expected {form}")


def forms_of(arrays: Mapping[str, Any]) -> dict[str, Form]:
    """The forms of arrays, or of what has their shapes and types."""
    return {name: Form(tuple(x.shape), np.dtype(x.dtype)) for name, x in arrays.items()}


def _check_table(entries: list[zipfile.ZipInfo], named: Mapping[str, Any], size: int) -> None:
    """What a table of contents may say of a file of so many bytes."""
    if len(entries) > MOST_ENTRIES:
        raise DamagedArchive(f"it has {len(entries)} entries, more than {MOST_ENTRIES}")
    if len(named) < len(entries):
        raise DamagedArchive("two entries have the same name")
    end, total, compressed = 0, 0, False
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        if entry.flag_bits & ENCRYPTED_OR_PATCHED:
            raise DamagedArchive(f"{entry.filename[:80]} is encrypted or patched")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise DamagedArchive(f"{entry.filename[:80]} is compressed in an unknown way")
        stored = entry.compress_type == zipfile.ZIP_STORED
        if stored and entry.file_size != entry.compress_size:
            raise DamagedArchive(f"{entry.filename[:80]} has two sizes")
        # Entries that share bytes unpack to more than any ratio says.
        if entry.header_offset < end:
            raise DamagedArchive(f"{entry.filename[:80]} overlaps with another entry")
        end = entry.header_offset + entry.compress_size
        total, compressed = total + entry.file_size, compressed or not stored
    if end > size:
        raise DamagedArchive("it says that it is longer than it is")
    if compressed and total > max(SMALL, MOST_RATIO * size):
        raise DamagedArchive(f"{size:,} bytes would unpack to {total:,}")
    if total > memory():
        raise DamagedArchive(f"it would take {total:,} bytes, more than this machine's memory")


def memory() -> int:
    """Bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _read_header(file: zipfile.ZipFile, entry: zipfile.ZipInfo) -> tuple[Form, int]:
    """The form of an entry's array, and where its numbers begin."""
    with file.open(entry) as stream:
        begin = io.BytesIO(stream.read(min(HEADER, entry.file_size)))
    version = npy.read_magic(begin)
    if version not in ((1, 0), (2, 0)):
        raise DamagedArchive(f"{entry.filename[:80]} is of an unknown version")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, columns_first, dtype = read(begin)
    if dtype.kind not in NUMBERS or not dtype.isnative or dtype.subdtype or columns_first:
        raise DamagedArchive(f"{entry.filename[:80]} holds no plain numbers")
    if min(shape, default=0) < 0:
        raise DamagedArchive(f"{entry.filename[:80]} has the shape {list(shape)}")
    return Form(tuple(map(int, shape)), dtype), begin.tell()


def _exactly(stream: IO[bytes], count: int) -> bytes:
    """So many bytes; an error if there are fewer."""
    data = stream.read(count)
    while len(data) < count:
        more = stream.read(count - len(data))
        if not more:
            raise DamagedArchive("an entry ends too early")
        data += more
    return data
