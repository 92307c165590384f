"""coplay compare: runs beside each other."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class CompareArguments:
    """Compare finished runs: table, learning curves with intervals, marl-eval JSON."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders of at least two finished runs, of one game or of several."""
    out: Path = Path("compare")
    """Folder for the pictures and the JSON files."""
    json: bool = False
    """Print the comparison as one JSON object on standard output."""


def run_compare(given: CompareArguments) -> int:
    """Load, compare, write, show."""
    from coplay.evaluation.compare import load_runs
    from coplay.reports.compare import print_comparison, write_comparison

    runs = load_runs(given.runs)
    print_comparison(write_comparison(given.out, runs), given.out, given.json)
    return 0
