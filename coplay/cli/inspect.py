"""coplay inspect: what a model knows."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from coplay.cli.arguments import named_part, parse
from coplay.core.config import PositiveInt, Seed


@dataclass(frozen=True)
class InspectArguments:
    """Look at what a model knows: a page with pictures, tables as CSV, figures as JSON."""

    run: Annotated[Path, tyro.conf.Positional]
    """Folder of the model (coplay pretrain), or of a run of hop-plus."""
    data: Path | None = None
    """Dataset to look at it with; default: what was held out of the one it was trained on."""
    samples: PositiveInt = 20_000
    """With a run and without a dataset: how many samples to play for."""
    mix: str = ""
    """With a run and without a dataset: the players to play with, e.g. ns,nh,random; default: the
    game's scripted ones."""
    seed: Seed = 0
    """Seed of all randomness."""
    out: Path | None = None
    """Folder to write; default: inspect-PART in the folder of the model."""
    json: bool = False
    """Print the figures as one JSON object on standard output."""


def run(arguments: list[str]) -> int:
    """coplay inspect opponent-model|world-model|goals RUN …"""
    from coplay.api.models import INSPECTED, inspect
    from coplay.reports.results import print_json
    from coplay.reports.run_page import write_run_page
    from coplay.training.run import RunFolder

    part, rest = named_part(arguments, "inspect", INSPECTED)
    if part is None:
        return 0
    given = parse(InspectArguments, rest, f"inspect {part}")
    out = given.out or given.run / f"inspect-{part}"
    figures = inspect(
        part,  # type: ignore[arg-type]
        given.run,
        data=given.data,
        samples=given.samples,
        mix=given.mix,
        seed=given.seed,
        out=out,
    )
    if RunFolder(given.run).page_file.is_file():
        write_run_page(given.run)  # it leads to the new page
    if given.json:
        print_json(figures)
    else:
        for name, value in figures.items():
            if isinstance(value, int | float):
                print(f"{name:20} {value:.5g}")
        print(f"the page is {out / 'index.html'}")
    return 0
