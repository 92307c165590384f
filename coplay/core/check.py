"""What `coplay check` finds in a folder. `CHECKS` of `coplay/api/checking.py` lists who looks."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from coplay.core.manifest import ABSENT, MANIFEST, checksum, read_manifest

State = Literal["whole", "damaged", "missing", "unlisted"]


class Finding(NamedTuple):
    """One file. name: below the folder. unlisted: it has no checksum, and nothing speaks against
    it. words: what is wrong."""

    name: str
    state: State
    words: str = ""


@dataclass
class FolderReport:
    """What was found in a folder. kind: what it holds. usable: what can still be done with it.
    notes: what a user should know though nothing is wrong."""

    folder: Path
    kind: str
    findings: list[Finding] = field(default_factory=list)
    usable: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def bad(self) -> list[Finding]:
        return [one for one in self.findings if one.state in ("damaged", "missing")]

    @property
    def whole(self) -> bool:
        return not self.bad

    def add(self, name: str, state: State, words: str = "") -> None:
        """Take up a finding; one that is worse than what was found before replaces it."""
        before = next((one for one in self.findings if one.name == name), None)
        if before is not None and before.state in ("damaged", "missing"):
            return
        if before is not None:
            self.findings.remove(before)
        self.findings.append(Finding(name, state, words))

    def state(self, name: str) -> State | None:
        """The state of a file, None if nothing is known of it."""
        return next((one.state for one in self.findings if one.name == name), None)

    def as_json(self) -> dict[str, Any]:
        return {
            "folder": str(self.folder),
            "kind": self.kind,
            "whole": self.whole,
            "files": [one._asdict() for one in self.findings],
            "usable": self.usable,
            "notes": self.notes,
        }


class FolderCheck(NamedTuple):
    """recognises: whether a folder holds this kind. check: looks at it. parts: folders in it that
    are looked at by themselves; all others belong to it."""

    recognises: Callable[[Path], bool]
    check: Callable[[Path], FolderReport]
    parts: tuple[str, ...] = ()


def check_manifest(report: FolderReport, own: Callable[[str], bool]) -> None:
    """Compare all files with the manifest. own: whether a name is of the format, so that a file
    without a checksum is worth a word; what else a user keeps in the folder is not."""
    folder = report.folder
    if not (folder / MANIFEST).exists():
        report.notes.append(
            "there is no manifest (the folder is of an older version): files are only "
            "read, not compared with checksums"
        )
        listed: dict[str, list[dict[str, Any]]] = {}
    else:
        try:
            listed = read_manifest(folder)
            report.add(MANIFEST, "whole")
        except ValueError as error:
            listed = {}
            report.add(MANIFEST, "damaged", str(error))
    for name, contents in listed.items():
        path = folder / name
        if path.is_symlink() or not path.resolve().is_relative_to(folder.resolve()):
            report.add(name, "damaged", "it is a link")
        elif not path.is_file():
            if ABSENT not in contents:
                report.add(name, "missing")
        else:
            try:
                grows = contents[0].pop("grows", False)
                found = checksum(path, contents[0]["bytes"] if grows else None)
            except OSError as error:
                report.add(name, "damaged", error.strerror or str(error))
                continue
            if found in contents:
                report.add(name, "whole")
            elif found["bytes"] != contents[0]["bytes"]:
                words = f"it has {found['bytes']} bytes, the manifest says {contents[0]['bytes']}"
                report.add(name, "damaged", words)
            else:
                report.add(name, "damaged", "it does not match its checksum")
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name not in listed and own(name) and path.is_file() and name != MANIFEST:
            report.add(name, "unlisted", "it has no checksum")
