"""Archives of a stranger: every trick is one error, before anything is unpacked."""

import contextlib
import io
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from coplay.core import archive
from coplay.core.archive import DamagedArchive, Form, check_forms, forms_of, open_archive

ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.array([True, False]),
    "one": np.array(7, np.int32),
    "none": np.zeros((0, 4), np.int8),
}


def header(shape: str, descr: str = "'<f4'", version: int = 1) -> bytes:
    """The header of an array, as a stranger may write it."""
    words = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    size = struct.pack("<H" if version == 1 else "<I", len(words))
    return b"\x93NUMPY" + bytes([version, 0]) + size + words


def written(path: Path, *entries: tuple[str, bytes], method: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", method) as file:
        for name, data in entries:
            file.writestr(name, data)


def encrypted(path: Path) -> None:
    """The flag of an encrypted entry is set in both of its headers."""
    written(path, ("a.npy", header("(0,)")))
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x03\x04") + 6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)


def method_12345(path: Path) -> None:
    written(path, ("a.npy", header("(0,)")))
    data = bytearray(path.read_bytes())
    place = data.index(b"PK\x01\x02") + 10
    data[place : place + 2] = struct.pack("<H", 12345)
    path.write_bytes(data)


def lzma(path: Path) -> None:
    written(path, ("a.npy", header("(0,)")), method=zipfile.ZIP_LZMA)


def no_zip(path: Path) -> None:
    path.write_bytes(b"PK\x05\x06")


def bomb(path: Path) -> None:
    """80 KB that unpack to 80 MB."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file,
        file.open("a.npy", "w") as entry,
    ):
        entry.write(header("(20000000,)"))
        for _ in range(80):
            entry.write(bytes(1_000_000))


def long_header(path: Path) -> None:
    """A header of version 2 that says it is 20 MB long, compressed."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file,
        file.open("a.npy", "w") as entry,
    ):
        entry.write(b"\x93NUMPY\x02\x00" + struct.pack("<I", 20_000_000))
        for _ in range(20):
            entry.write(b" " * 1_000_000)


def overlapping(path: Path) -> None:
    """Two entries of the table of contents that share their bytes."""
    written(path, ("a.npy", header("(1,)") + bytes(4)), ("b.npy", header("(1,)") + bytes(4)))
    data = bytearray(path.read_bytes())
    first = data.index(b"PK\x01\x02")
    second = data.index(b"PK\x01\x02", first + 4)
    data[second + 42 : second + 46] = data[first + 42 : first + 46]
    path.write_bytes(data)


def pickled(path: Path) -> None:
    np.savez(path, a=np.array([{"a": 1}], dtype=object))


def nested(path: Path) -> None:
    inner = io.BytesIO()
    np.savez(inner, **ARRAYS)
    written(path, ("a.npz", inner.getvalue()))


def one(name: str, data: bytes) -> Callable[[Path], None]:
    return lambda path: written(path, (name, data))


ATTACKS: dict[str, tuple[Callable[[Path], None], str]] = {
    "10 TB": (one("a.npy", header("(2500000000000,)")), "the size of a is not that of"),
    "overflowing": (one("a.npy", header(f"({2**62}, {2**62})")), "the size of a"),
    "negative": (one("a.npy", header("(-1, -4)") + bytes(16)), "has the shape"),
    "no shape": (one("a.npy", header("'x'")), "shape"),
    "code in the header": (one("a.npy", header("__import__('os').getpid()")), ""),
    "objects": (pickled, "holds no plain numbers"),
    "records": (one("a.npy", header("(1,)", "[('x', '<f4')]") + bytes(4)), "no plain numbers"),
    "texts": (one("a.npy", header("(1,)", "'<U1'") + bytes(4)), "no plain numbers"),
    "no array": (one("a.npy", b"hello"), ""),
    "nested": (nested, ""),
    "cut array": (one("a.npy", header("(9,)") + bytes(4)), "the size of a"),
    "bomb": (bomb, "would unpack to"),
    "long header": (long_header, ""),
    "overlapping": (overlapping, "overlaps"),
    "encrypted": (encrypted, "encrypted"),
    "method": (method_12345, "unknown way"),
    "lzma": (lzma, "unknown way"),
    "not a zip": (no_zip, ""),
    "empty": (lambda path: path.touch(), ""),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_stranger_s_archive_is_refused_before_it_is_unpacked(name: str, tmp_path: Path) -> None:
    make, words = ATTACKS[name]
    path = tmp_path / "a.npz"
    make(path)
    tracemalloc.start()
    try:
        with (
            pytest.raises(DamagedArchive, match=words or None) as found,
            open_archive(path) as opened,
        ):
            opened.read("a")
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert str(found.value).startswith(str(path)) and "\n" not in str(found.value)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_are_compared_and_never_paths(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    array = header("(1,)") + bytes(4)
    written(path, ("a.npy", array), ("a.npy", array))
    with pytest.raises(DamagedArchive, match="same name"), open_archive(path):
        pass
    wanted = {"a": Form((1,), np.dtype(np.float32))}
    for name in ("../../a.npy", "/etc/passwd.npy", "b.npy"):
        written(path, (name, array))
        with pytest.raises(DamagedArchive, match="arrays differ"), open_archive(path) as opened:
            check_forms(opened, wanted)
    written(path, ("a.npy", header("(1,)", "'<i4'") + bytes(4)))
    with (
        pytest.raises(DamagedArchive, match=r"a is int32\[1\], expected float32\[1\]"),
        open_archive(path) as opened,
    ):
        check_forms(opened, wanted)


@pytest.mark.parametrize("compressed", [False, True])
def test_arrays_come_back_and_no_flipped_bit_is_silent(compressed: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    (np.savez_compressed if compressed else np.savez)(path, **ARRAYS)
    whole = path.read_bytes()

    def read() -> dict[str, np.ndarray]:
        with open_archive(path) as opened:
            check_forms(opened, forms_of(ARRAYS))
            return {name: opened.read(name) for name in opened.forms}

    def same() -> bool:
        found = read()
        return all(np.array_equal(found[name], array) for name, array in ARRAYS.items())

    assert same()
    for place in range(0, len(whole), 3):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        with contextlib.suppress(DamagedArchive):
            assert same(), place


def test_limits_of_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, a=np.zeros(1_000_000, bool))
    with open_archive(path) as opened:
        assert opened.read("a").sum() == 0
    monkeypatch.setattr(archive, "SMALL", 1000)
    with pytest.raises(DamagedArchive, match="would unpack to"), open_archive(path):
        pass
    np.savez(path, a=np.zeros(1_000_000, bool))
    with open_archive(path):
        pass
    monkeypatch.setattr(archive, "memory", lambda: 1000)
    with pytest.raises(DamagedArchive, match="more than this machine's memory"), open_archive(path):
        pass
