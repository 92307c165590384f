"""Folders with runs, made of plain files."""

import json
from pathlib import Path
from typing import Any


def make_run(folder: Path, steps: int = 1000, seeds: int = 2) -> Path:
    """The folder of a run that has not written a row yet."""
    folder.mkdir(parents=True)
    settings = {"seed": 0, "seeds": seeds, "steps": steps, "seating": ""}
    config = {"player": "ppo", "game_name": "stag-hunt", "run": settings}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def append(folder: Path, step: int, *means: float, **more: Any) -> None:
    """Rows of one step, one for each seed."""
    rows = [{"step": step, "seed": n, "team_mean": mean, **more} for n, mean in enumerate(means)]
    with open(folder / "metrics.jsonl", "a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
