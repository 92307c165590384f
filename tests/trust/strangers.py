"""Folders of a stranger, made from plain files: a run, a dataset, a pretrained model."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RUN = Path(__file__).parents[1] / "data" / "v0.1" / "ppo-checkpoint"
MODEL = Path(__file__).parents[1] / "data" / "v0.1" / "goals"

GAME = {"game_name": "stag-hunt", "game": {"height": 3, "width": 3, "players": 2, "horizon": 8}}


def changed(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a JSON file."""
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def make_run(folder: Path, **fields: Any) -> Path:
    """A finished run of ppo with a checkpoint; fields replace those of its configuration."""
    shutil.copytree(RUN, folder)
    changed(folder / "config.json", lambda data: data.update(fields))
    return folder


def make_model(folder: Path, **fields: Any) -> Path:
    """A pretrained model without its arrays."""
    shutil.copytree(MODEL, folder)
    changed(folder / "config.json", lambda data: data.update(fields))
    return folder


def make_dataset(folder: Path, **fields: Any) -> Path:
    """A dataset of one episode without a valid array."""
    folder.mkdir(parents=True)
    about = {"form": 1, "coplay": "0.2.0", "mix": ["ns"], "seed": 0, "episodes": 1} | GAME | fields
    (folder / "about.json").write_text(json.dumps(about))
    np.savez_compressed(folder / "episodes.npz", action=np.zeros(3, np.int8))
    return folder
