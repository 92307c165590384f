"""Files are whole or not there; leftovers of a process that died are removed, nothing else."""

from pathlib import Path

import pytest

from coplay.core import files


class Recording(files.Disk):
    """Notes the operations by name."""

    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []

    def sync(self, path: Path) -> None:
        super().sync(path)
        self.done.append(("sync", path.name))

    def replace(self, source: Path, target: Path) -> None:
        super().replace(source, target)
        self.done.append(("replace", target.name))


def test_content_then_name_then_folder_reach_the_disk(tmp_path: Path) -> None:
    disk = Recording()
    with files.using(disk), files.replacing(tmp_path / "a.txt") as temporary:
        temporary.write_text("new")
    assert [kind for kind, _ in disk.done] == ["sync", "replace", "sync"]
    assert disk.done[1:] == [("replace", "a.txt"), ("sync", tmp_path.name)]


def test_a_block_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), files.replacing(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_only_leftovers_are_removed(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    left = [tmp_path / ".config.json.12.tmp", tmp_path / "below" / ".step-1.npz.7.tmp"]
    mine = [tmp_path / ".lock", tmp_path / "notes.tmp", tmp_path / ".hidden.tmp"]
    for path in (*left, *mine):
        path.write_text("")
    (tmp_path / ".goals.3.tmp").mkdir()
    assert set(files.remove_leftovers(tmp_path)) == {*left, tmp_path / ".goals.3.tmp"}
    assert all(path.exists() for path in mine) and not any(path.exists() for path in left)


def test_cutting_never_lengthens(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    files.DISK.cut(path, 5)
    assert path.read_bytes() == b"abc"
    files.DISK.cut(path, 1)
    assert path.read_bytes() == b"a"
