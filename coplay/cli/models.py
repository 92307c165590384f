"""The commands about datasets and the models of HOP+: collect, pretrain, inspect."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from coplay.cli.arguments import option, parse
from coplay.core.config import with_fields
from coplay.core.errors import UserError, unknown
from coplay.models.world_model import WorldModelConfig
from coplay.training.pretrained import FitConfig, PretrainedGoalsConfig


def collect(arguments: list[str]) -> int:
    """coplay collect …"""
    from coplay.cli.collect import CollectArguments, default_arguments, run_collect

    kind, default = default_arguments(option(arguments, "game"))
    return run_collect(parse(CollectArguments[kind], arguments, "collect", default))  # type: ignore


# --- pretrain ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PretrainGoals:
    """Train goal codes and the opponent model that is given them, on a dataset."""

    data: Path
    """Folder of the dataset, made by coplay collect."""
    out: Path
    """Folder of the new model."""
    model: Annotated[PretrainedGoalsConfig, tyro.conf.arg(name="")] = field(
        default_factory=PretrainedGoalsConfig
    )
    fit: Annotated[FitConfig, tyro.conf.arg(name="")] = field(
        default_factory=lambda: with_fields(FitConfig(epochs=8), {"optimiser.learning_rate": 4e-3})
    )
    json: bool = False
    """Print the figures as one JSON object on standard output."""


@dataclass(frozen=True)
class PretrainWorld:
    """Train a world model on a dataset."""

    data: Path
    """Folder of the dataset, made by coplay collect."""
    out: Path
    """Folder of the new model."""
    model: Annotated[WorldModelConfig, tyro.conf.arg(name="")] = field(
        default_factory=WorldModelConfig
    )
    fit: Annotated[FitConfig, tyro.conf.arg(name="")] = field(
        default_factory=lambda: FitConfig(batch=1024)
    )
    json: bool = False
    """Print the figures as one JSON object on standard output."""


PARTS: dict[str, type] = {
    "goals": PretrainGoals,
    "world-model": PretrainWorld,
}


def pretrain(arguments: list[str]) -> int:
    """coplay pretrain goals|world-model …"""
    part, rest = _part(arguments, "pretrain", PARTS)
    if part is None:
        return 0
    given = parse(PARTS[part], rest, f"pretrain {part}")

    from coplay.core.compilation import use_cache
    from coplay.matches.dataset import load_dataset, refuse_if_taken
    from coplay.reports.results import print_json

    use_cache()
    refuse_if_taken(given.out)
    dataset = load_dataset(given.data)
    run: Any
    if part == "goals":
        from coplay.training.pretrain_goals import pretrain_goals as run
    else:
        from coplay.training.pretrain_world import pretrain_world as run
    summary = run(
        given.data,
        dataset,
        given.model,
        given.fit,
        given.out,
        lambda text: print(text, file=sys.stderr),
    )
    if given.json:
        print_json(summary)
    else:
        for name, value in summary.items():
            print(f"{name:20} {value:.5g}" if isinstance(value, float) else f"{name:20} {value}")
        page = "opponent-model" if part == "goals" else part
        print(f"wrote {given.out}; look at it with: coplay inspect {page} {given.out}")
    return 0


# --- inspect -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InspectArguments:
    """Look at what a model knows: a page with pictures, tables as CSV, figures as JSON."""

    run: Annotated[Path, tyro.conf.Positional]
    """Folder of the model (coplay pretrain), or of a run of hop-plus."""
    data: Path | None = None
    """Dataset to look at it with; default: what was held out of the one it was trained on."""
    samples: int = 20_000
    """With a run and without a dataset: how many samples to play for."""
    mix: str = ""
    """With a run and without a dataset: the players to play with, e.g. ns,nh,random; default: the
    game's scripted ones."""
    seed: int = 0
    """Seed of all randomness."""
    out: Path | None = None
    """Folder to write; default: inspect-PART in the folder of the model."""
    json: bool = False
    """Print the figures as one JSON object on standard output."""


INSPECTORS = ("opponent-model", "world-model", "goals")


def inspect(arguments: list[str]) -> int:
    """coplay inspect opponent-model|world-model|goals RUN …"""
    part, rest = _part(arguments, "inspect", INSPECTORS)
    if part is None:
        return 0
    given = parse(InspectArguments, rest, f"inspect {part}")

    from coplay.core.compilation import use_cache
    from coplay.reports.results import print_json

    use_cache()
    out = given.out or given.run / f"inspect-{part}"
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file; choose another --out")
    from coplay.reports import inspect_goals, inspect_opponent, inspect_world
    from coplay.reports.inspected import find_goals, find_world

    if part == "world-model":
        figures = inspect_world.write(out, find_world(given))
    elif part == "goals":
        figures = inspect_goals.write(out, find_goals(given))
    else:
        figures = inspect_opponent.write(out, find_goals(given))
    if given.json:
        print_json(figures)
    else:
        for name, value in figures.items():
            if isinstance(value, int | float):
                print(f"{name:20} {value:.5g}")
        print(f"the page is {out / 'index.html'}")
    return 0


def _part(arguments: list[str], command: str, valid: Any) -> tuple[str | None, list[str]]:
    """The part that is named first, and the other arguments; None: only help was asked for."""
    parts = ", ".join(valid)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"usage: coplay {command} PART …\n\nparts: {parts}")
        print(f"coplay {command} PART --help explains all options")
        return None, []
    if arguments[0] not in valid:
        raise unknown(f"part to {command}", arguments[0], valid)
    return arguments[0], arguments[1:]
