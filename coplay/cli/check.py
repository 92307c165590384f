"""coplay check: whether runs, players, datasets, models and packs are as they were written."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from coplay.cli.arguments import parse


@dataclass(frozen=True)
class CheckArguments:
    """Compare folders with their checksums and say what is damaged and what can still be used.

    Exit code 0: all are whole; 1: something is damaged or missing."""

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders of runs, imported players, datasets, pretrained models or packs, or folders that hold
    some."""
    json: bool = False
    """Print the findings as one JSON list on standard output."""


def run(arguments: list[str]) -> int:
    """coplay check FOLDER …"""
    given = parse(CheckArguments, arguments, "check")
    from coplay.api.checking import check, print_check
    from coplay.reports.results import print_json

    reports = [report for folder in given.folders for report in check(folder)]
    if given.json:
        print_json([report.as_json() for report in reports])
    else:
        for report in reports:
            print_check(report)
    return 0 if all(report.whole for report in reports) else 1
