"""coplay reproduce: run the experiment behind a result again."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from coplay.cli.arguments import parse
from coplay.core.errors import UserError, unknown


@dataclass(frozen=True)
class ReproduceArguments:
    """Run the experiment behind a result again. Commands that are finished are not run twice."""

    name: Annotated[str, tyro.conf.Positional] = ""
    """The experiment; without one, all are listed."""
    out: Path = Path("results")
    """Folder for the result, NAME.json."""
    work: Path = Path("runs/reproduce")
    """Folder in which the commands run. Each version of the program has a folder of its own there,
    with its runs in runs/ below it."""
    json: bool = False
    """Print the result as one JSON object on standard output."""


def run(arguments: list[str]) -> int:
    """coplay reproduce [NAME] …"""
    given: ReproduceArguments = parse(ReproduceArguments, arguments, "reproduce")

    from coplay.reproduce.registry import EXPERIMENTS

    if not given.name:
        print("coplay reproduce NAME runs one of these; minutes on two cores without other work\n")
        for experiment in EXPERIMENTS.values():
            print(f"{experiment.name:24}{experiment.minutes:4.0f} min  {experiment.question}")
        return 0
    if given.name not in EXPERIMENTS:
        raise unknown("experiment", given.name, EXPERIMENTS)
    experiment = EXPERIMENTS[given.name]
    for option, folder in {"out": given.out, "work": given.work}.items():
        check_folder(f"--{option}", folder)

    from coplay.reports.results import print_json
    from coplay.reproduce.runner import reproduce
    from coplay.reproduce.tables import as_text

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    say(
        f"{experiment.question}\n{len(experiment.steps)} commands in {given.work}, about "
        f"{experiment.minutes:.0f} minutes on two cores without other work"
    )
    result = reproduce(experiment, given.work, given.out, say)
    if given.json:
        print_json(result)
    else:
        print(as_text(result))
        print(f"\nwrote {given.out / experiment.name}.json")
    return 0


def check_folder(option: str, folder: Path) -> None:
    """An error if a folder cannot be made because a file is in its place."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir():
        raise UserError(f"{option} {folder}: {there} is a file; give a folder")
