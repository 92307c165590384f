"""coplay list: what a folder holds."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from coplay.cli.arguments import parse


@dataclass(frozen=True)
class ListArguments:
    """What runs there are, how far, how good; and imported players, datasets, models, packs of
    partners, audits, adaptations and comparisons beside them."""

    folder: Annotated[Path, tyro.conf.Positional] = Path("runs")
    """Where to look, also in folders below it."""
    json: bool = False
    """Print a JSON list on standard output."""


def run(arguments: list[str]) -> int:
    """coplay list [FOLDER]"""
    from coplay.reports.listing import print_overviews

    given = parse(ListArguments, arguments, "list", computes=False)
    print_overviews(given.folder, given.json)
    return 0
