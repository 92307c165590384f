"""coplay report: the page of a run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from coplay.cli.arguments import parse
from coplay.core.errors import UserError


@dataclass(frozen=True)
class ReportArguments:
    """Write the page of a run: what was run, learning curves, evaluations, metrics, and how to go
    on. A run keeps such a page itself while it trains; runs of older versions have none."""

    run: Annotated[Path, tyro.conf.Positional]
    """Folder of the run."""
    out: Path | None = None
    """The file, which ends in .html; default: index.html in the run's folder."""
    json: bool = False
    """Print what the page shows as one JSON object, and write nothing."""


def run(arguments: list[str]) -> int:
    """coplay report RUN …"""
    from coplay.api.reporting import report
    from coplay.reports.results import print_json
    from coplay.reports.run_page import run_data

    given = parse(ReportArguments, arguments, "report", computes=False)
    if given.json:
        if given.out is not None:
            raise UserError("give --json, which prints, or --out FILE.html, not both")
        print_json(run_data(given.run))
        return 0
    print(f"wrote {report(given.run, given.out)}")
    return 0
