"""Whether runs, players, datasets, pretrained models and packs are as they were written."""

import os
from pathlib import Path

from coplay.core.check import FolderCheck, FolderReport
from coplay.core.errors import UserError
from coplay.core.reading import shown_in_line
from coplay.sweeps.folder import PARTS, check_sweep, holds_sweep
from coplay.training.check import (
    PACK_PARTS,
    check_dataset,
    check_pack,
    check_player,
    check_pretrained,
    check_run,
    holds_dataset,
    holds_pack,
    holds_player,
    holds_pretrained,
    holds_run,
)

CHECKS = {
    "player": FolderCheck(holds_player, check_player),
    "sweep": FolderCheck(holds_sweep, check_sweep, PARTS),
    "pack of partners": FolderCheck(holds_pack, check_pack, PACK_PARTS),
    "dataset": FolderCheck(holds_dataset, check_dataset),
    "pretrained model": FolderCheck(holds_pretrained, check_pretrained),
    "run": FolderCheck(holds_run, check_run),
}
"""Kind -> how such a folder is known and looked at. A new kind of folder is named here; the tests
of damage go through this table."""


def check(folder: str | Path) -> list[FolderReport]:
    """Compare a folder, or all that it holds, with their checksums.

    A report says which files are whole, damaged, missing or without a checksum, and what can still
    be used.

        for report in coplay.check("runs"):
            print(report.folder, report.whole, report.usable)
    """
    path = Path(folder)
    if not path.is_dir():
        raise UserError(f"there is no folder {path}")
    reports = []
    for place, folders, _ in os.walk(path):
        folders.sort()
        found = next((one for one in CHECKS.values() if one.recognises(Path(place))), None)
        if found is not None:
            reports.append(found.check(Path(place)))
            folders[:] = [name for name in folders if name in found.parts]
    if not reports:
        raise UserError(f"{path} holds no {', '.join(CHECKS)}")
    return reports


def print_check(report: FolderReport) -> None:
    """A line for the folder, one for every file that is not whole, and what can be used."""
    count = len(report.findings)
    state = "whole" if report.whole else f"{len(report.bad)} of {count} files are not whole"
    lines = [f"{report.folder}: {report.kind}, {count} files, {state}"]
    lines += [f"  {one.state}: {one.name}: {one.words}" for one in report.bad]
    alone = [one.name for one in report.findings if one.state == "unlisted"]
    lines += [f"  without a checksum: {', '.join(alone)}"] if alone else []
    lines += [f"  note: {note}" for note in report.notes]
    if not report.whole:
        lines.append(f"  can be used: {report.usable}")
    for line in lines:
        print(shown_in_line(line))
