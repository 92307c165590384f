"""The manifest matches the files at every moment, also between its writing and theirs."""

import json
from pathlib import Path

import pytest

from coplay.core import files
from coplay.core.check import FolderReport, check_manifest
from coplay.core.manifest import (
    MANIFEST,
    Manifest,
    checksum,
    listing,
    read_manifest,
    whole_folder,
)


class Died(BaseException):
    """The process ends here."""


class DiesBeforeReplacing(files.Disk):
    def __init__(self, name: str):
        self.name = name

    def replace(self, source: Path, target: Path) -> None:
        if target.name == self.name:
            raise Died
        super().replace(source, target)


def bad(folder: Path) -> list[tuple[str, str]]:
    report = FolderReport(folder, "test")
    check_manifest(report, lambda name: True)
    return [(one.name, one.state) for one in report.bad]


def test_both_contents_match_while_a_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "below" / "a.json"
    with Manifest(tmp_path).keeping():
        files.write_json(path, 1)
        for number in (2, 3):  # two crashes in a row
            with pytest.raises(Died), files.using(DiesBeforeReplacing("a.json")):
                files.write_json(path, number)
            assert len(read_manifest(tmp_path)["below/a.json"]) == 2 and not bad(tmp_path)
    Manifest(tmp_path).settle()
    assert read_manifest(tmp_path)["below/a.json"] == [checksum(path)] and not bad(tmp_path)


def test_a_removed_file_is_not_missed(tmp_path: Path) -> None:
    with Manifest(tmp_path).keeping():
        files.write_json(tmp_path / "a.json", 1)
        files.remove(tmp_path / "a.json")
    assert read_manifest(tmp_path) == {} and not bad(tmp_path)


def test_files_that_grow_are_compared_as_far_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    manifest = Manifest(tmp_path, lambda name: name == "a.jsonl")
    with manifest.keeping():
        files.write_json(path, 1)
        assert not (tmp_path / MANIFEST).exists()
    manifest.settle()
    files.DISK.append(path, b"more")
    assert not bad(tmp_path)
    path.write_bytes(b"0" + path.read_bytes()[1:])
    assert bad(tmp_path) == [("a.jsonl", "damaged")]


def test_damage_is_found(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "out") as folder:
        for name in "abc":
            (folder / name).write_text(name)
    out = tmp_path / "out"
    assert not bad(out) and {path.name for path in tmp_path.iterdir()} == {"out"}
    (out / "a").write_text("x")
    (out / "b").unlink()
    assert bad(out) == [("a", "damaged"), ("b", "missing")]
    (out / MANIFEST).write_text("{")
    assert bad(out) == [(MANIFEST, "damaged")]


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "b/../../a"])
def test_a_manifest_does_not_lead_out_of_its_folder(tmp_path: Path, name: str) -> None:
    entry = {"bytes": 1, "sha256": "0"}
    (tmp_path / MANIFEST).write_text(json.dumps({"files": {name: entry}}))
    with pytest.raises(ValueError, match="outside of the folder"):
        read_manifest(tmp_path)


def test_a_folder_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), whole_folder(tmp_path / "out") as folder:
        (folder / "a").write_text("")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_written_again_as_it_was_has_one_content(tmp_path: Path) -> None:
    for _ in range(2):
        with listing(tmp_path):
            files.write_json(tmp_path / "a.json", 1)
        assert len(read_manifest(tmp_path)["a.json"]) == 1 and not bad(tmp_path)
