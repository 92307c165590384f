"""The models of HOP+ on a dataset, with several seeds: means and 95 % bootstrap intervals.

python benchmarks/offline_models.py goals data/sh8
python benchmarks/offline_models.py world-model data/sh4
"""

import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro

from coplay.cli.pretrain import PARTS
from coplay.core.compilation import use_cache
from coplay.matches.dataset import load_dataset
from coplay.matches.statistics import bootstrap_interval
from coplay.reports.inspect_goals import figures_of
from coplay.reports.inspected import seen_goals
from coplay.training.pretrain_goals import pretrain_goals
from coplay.training.pretrain_world import pretrain_world
from coplay.training.pretrained import load_goals


@dataclass(frozen=True)
class Arguments:
    """Train a part with several seeds as `coplay pretrain` would, and measure it."""

    part: Annotated[Literal["goals", "world-model"], tyro.conf.Positional]
    """Which model."""
    data: Annotated[Path, tyro.conf.Positional]
    """Folder of the dataset."""
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    """Seeds of the training."""
    options: str = ""
    """Further options of coplay pretrain, e.g. "--inference gru"."""


def figures(given: Arguments, seed: int) -> dict[str, Any]:
    """What one seed gives."""
    dataset = load_dataset(given.data)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "model"
        words = ["--data", str(given.data), "--out", str(out), "--seed", str(seed)]
        asked: Any = tyro.cli(PARTS[given.part], args=[*words, *given.options.split()])
        train = pretrain_goals if given.part == "goals" else pretrain_world
        found = train(given.data, dataset, asked.model, asked.fit, out, lambda text: None)
        if given.part == "goals":
            held = dataset.split(asked.fit.held_out)[1]
            seen = figures_of(seen_goals("", load_goals(out)[0], held, []))
            rows = {row["step"]: row["filter"] - row["probe"] for row in seen["by_step"]}
            found |= {f"behind at step {step}": rows[step] for step in (1, 2, 3, 5, 9)}
            for name in ("probe_accuracy", "filter_accuracy", "largest_gap"):
                found[name] = seen[name]
            for name, one in seen["recognition"].items():
                for who in ("probe", "filter"):
                    found |= {f"{name}: {who} {k}": one[who][k] for k in ("steps", "share")}
    print(json.dumps({"seed": seed} | found), file=sys.stderr, flush=True)
    return found


def main() -> None:
    given = tyro.cli(Arguments)
    use_cache()
    rows = [figures(given, seed) for seed in given.seeds]
    for name in rows[0]:
        values = [row[name] for row in rows]
        if all(isinstance(value, int | float) for value in values):
            low, high = bootstrap_interval(values, np.mean)
            print(f"{name:24} {np.mean(values):10.5g}  [{low:.5g}, {high:.5g}]")


if __name__ == "__main__":
    main()
