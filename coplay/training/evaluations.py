"""Evaluations during a run, at fixed intervals: `evaluations.jsonl`, a row per seed and time."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coplay.matches.match import Match
from coplay.training.records import Record, read_rows


class Evaluations:
    """The evaluations of one run. every: game steps between two of them; 0: there are none."""

    def __init__(self, path: Path, every: int):
        self.record, self.every = Record(path), every
        self.done = -1
        """The step of the last one; -1 before the first, which is before any learning."""

    def begin(self) -> None:
        """Start without rows."""
        self.record.begin()

    def go_on(self, stated: Mapping[str, Mapping[str, Any]], step: int) -> list[str]:
        """Forget what came after the step that a run is taken up at; what was wrong, in sentences.

        stated: what the checkpoint says of the files that grow; version 0.1 says nothing of this
        one.
        """
        path = self.record.path
        if path.name in stated:
            wrong = self.record.go_on(stated[path.name], step)
        else:
            wrong = self.record.keep_until(step)
        rows = read_rows(path)
        self.done = max((row["step"] for row in rows), default=-1)
        return wrong

    def due(self, step: int) -> bool:
        """Whether an interval has ended at this step."""
        return self.every > 0 and (self.done < 0 or step // self.every > self.done // self.every)

    def write(self, step: int, seconds: float, seeds: list[int], matches: list[Match]) -> None:
        """Append a row for every seed."""
        rows = []
        for seed, match in zip(seeds, matches, strict=True):
            row: dict[str, Any] = {"step": step, "seed": seed, "seconds": round(seconds, 3)}
            row |= {"episodes": len(match.reward), "team_mean": float(match.reward.mean())}
            row["length"] = float(match.steps.max(axis=1).mean())
            row |= {name: float(score.mean()) for name, score in match.scores.items()}
            rows.append(row)
        self.record.append(rows)
        self.done = step
