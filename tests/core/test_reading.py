"""Files of a stranger: bounded, plain, where they say they are; and what is shown of them."""

import os
from pathlib import Path

import pytest

from coplay.core import reading
from coplay.core.reading import (
    Unreadable,
    check_folder,
    read_field,
    read_json,
    read_text,
    shown,
    shown_in_line,
)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"a": ', "is not JSON"),
        (b'{"a": "\xff"}', r"not text in UTF-8 \(byte 7\)"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' * 100_000, "nested too deeply"),
        (b"9" * 10_000, "is not JSON"),
        (b"[1, 2]", r"must be an object with fields, not \[1, 2\]"),
        (b'"' + b"x" * 1000 + b'"', "xxx…"),
        (b"", "is not JSON"),
    ],
)
def test_what_is_no_object_is_one_sentence(data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(data)
    with pytest.raises(Unreadable, match=words) as found:
        read_json(path)
    assert len(str(found.value)) < 400 + len(str(path))


def test_sizes_are_bounded_before_anything_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with open(path, "wb") as file:
        file.truncate(5 << 30)  # no block of it is on the disk
    with pytest.raises(Unreadable, match="5,368,709,120 bytes; at most"):
        read_json(path)


def test_pipes_devices_folders_and_links_out_are_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"a": 1}')
    folder = tmp_path / "run"
    (folder / "inner").mkdir(parents=True)
    (folder / "own.json").write_text('{"a": 2}')
    (folder / "link.json").symlink_to("own.json")
    check_folder(folder)
    assert read_json(folder / "link.json") == {"a": 2}
    assert read_json(folder / "inner/../own.json") == {"a": 2}

    os.mkfifo(folder / "pipe.json")
    for path in (folder / "pipe.json", Path("/dev/zero"), folder / "inner"):
        with pytest.raises(Unreadable, match="no plain file"):
            read_text(path)
    with pytest.raises(Unreadable, match=r"pipe\.json is no plain file"):
        check_folder(folder)
    (folder / "pipe.json").unlink()

    for target in (secret, Path("../secret.json"), Path("/dev/zero")):
        (folder / "out.json").symlink_to(target)
        with pytest.raises(Unreadable, match="leads out of"):
            read_text(folder / "out.json")
        with pytest.raises(Unreadable, match="leads out of"):
            check_folder(folder)
        (folder / "out.json").unlink()
    (folder / "inner" / "all").symlink_to(tmp_path)
    with pytest.raises(Unreadable, match="leads out of"):
        check_folder(folder)


def test_a_folder_that_is_reached_by_a_link_is_a_user_s_own_choice(tmp_path: Path) -> None:
    (tmp_path / "disk" / "run").mkdir(parents=True)
    (tmp_path / "disk" / "run" / "a.json").write_text("{}")
    (tmp_path / "run").symlink_to(tmp_path / "disk" / "run")
    check_folder(tmp_path / "run")
    assert read_json(tmp_path / "run" / "a.json") == {}
    with pytest.raises(Unreadable, match="cannot read"):
        read_json(tmp_path / "run" / "a\0.json")


def test_fields_have_their_types() -> None:
    data = {"n": 3, "flag": True, "text": "x", "list": []}
    assert read_field(data, "n", int, "f") == 3 and read_field(data, "n", float, "f") == 3
    for name, kind in (("flag", int), ("text", int), ("n", str), ("list", dict), ("gone", str)):
        with pytest.raises(Unreadable, match=f"f: '{name}' must be {kind.__name__}"):
            read_field(data, name, kind, "f")


def test_nothing_that_is_shown_steers_a_terminal() -> None:
    evil = "\x1b]0;title\x07\x1b[2J\r\x9b31m\u202egnp\udcff"
    assert shown(evil + " é ±\n") == (r"\x1b]0;title\x07\x1b[2J\r\x9b31m\u202egnp\udcff" + " é ±\n")
    assert shown_in_line("a\nb\tc") == r"a\nb\tc"
    assert reading.short(["x" * 100]).endswith("…")
