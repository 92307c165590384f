"""coplay compare: runs beside each other."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from coplay.cli.arguments import parse


@dataclass(frozen=True)
class CompareArguments:
    """Compare finished runs: table, learning curves with intervals, marl-eval JSON."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders of at least two finished runs, of one game or of several."""
    out: Path = Path("compare")
    """Folder for the pictures and the JSON files."""
    json: bool = False
    """Print the comparison as one JSON object on standard output."""


def run(arguments: list[str]) -> int:
    """coplay compare RUN RUN …"""
    from coplay.api.evaluating import compare
    from coplay.reports.compare import print_comparison

    given = parse(CompareArguments, arguments, "compare", computes=False)
    print_comparison(compare(given.runs, given.out), given.out, given.json)
    return 0
