"""coplay pretrain: models of others or of the world, trained on a dataset."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from coplay.api.models import FIT, run_pretraining
from coplay.cli.arguments import named_part, parse
from coplay.models.world_model import WorldModelConfig
from coplay.reports.progress import ProgressLine
from coplay.reports.results import print_json
from coplay.training.pretrained import FitConfig, PretrainedGoalsConfig


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
    fit: Annotated[FitConfig, tyro.conf.arg(name="")] = field(default_factory=lambda: FIT["goals"])
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
        default_factory=lambda: FIT["world-model"]
    )
    json: bool = False
    """Print the figures as one JSON object on standard output."""


PARTS: dict[str, type] = {
    "goals": PretrainGoals,
    "world-model": PretrainWorld,
}


def run(arguments: list[str]) -> int:
    """coplay pretrain goals|world-model …"""
    part, rest = named_part(arguments, "pretrain", PARTS)
    if part is None:
        return 0
    given = parse(PARTS[part], rest, f"pretrain {part}")
    with ProgressLine() as progress:
        summary = run_pretraining(part, given.data, given.out, given.model, given.fit, progress)
    if given.json:
        print_json(summary)
    else:
        for name, value in summary.items():
            print(f"{name:20} {value:.5g}" if isinstance(value, float) else f"{name:20} {value}")
        page = "opponent-model" if part == "goals" else part
        print(f"wrote {given.out}; look at it with: coplay inspect {page} {given.out}")
    return 0
