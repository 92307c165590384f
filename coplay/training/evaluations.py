"""Evaluations during a run, at fixed intervals: `evaluations.jsonl`, a row per seed and time."""

import json
from pathlib import Path
from typing import Any

from coplay.matches.match import Match
from coplay.training.logs import read_rows


class Evaluations:
    """The evaluations of one run. every: game steps between two of them; 0: there are none."""

    def __init__(self, path: Path, every: int):
        self.path, self.every = path, every
        self.done = -1
        """The step of the last one; -1 before the first, which is before any learning."""

    def go_on(self, step: int) -> None:
        """Forget what came after the step that a run is taken up at."""
        rows = [row for row in read_rows(self.path) if row["step"] <= step]
        self.path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        self.done = max((row["step"] for row in rows), default=-1)

    def due(self, step: int) -> bool:
        """Whether an interval has ended at this step."""
        return self.every > 0 and (self.done < 0 or step // self.every > self.done // self.every)

    def write(self, step: int, seconds: float, seeds: list[int], matches: list[Match]) -> None:
        """Append a row for every seed."""
        with open(self.path, "a") as file:
            for seed, match in zip(seeds, matches, strict=True):
                row: dict[str, Any] = {"step": step, "seed": seed, "seconds": round(seconds, 3)}
                row |= {"episodes": len(match.reward), "team_mean": float(match.reward.mean())}
                row["length"] = float(match.steps.max(axis=1).mean())
                row |= {name: float(score.mean()) for name, score in match.scores.items()}
                file.write(json.dumps(row) + "\n")
        self.done = step
