"""Logs of a run: `metrics.jsonl` is the record, TensorBoard shows the same numbers and explains
each metric. Other loggers (`--log`) are given the same rows.

A row is one iteration of one seed. Rows become rarer as a run goes on (`is_logged`), so the logs of
a long run stay small. On resume the record is cut back to what it held at the checkpoint.
TensorBoard is told to forget what came later, so nothing appears twice.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coplay.training.loggers.registry import OtherLogs
from coplay.training.records import Record, last_rows
from coplay.training.tensorboard import EventFile

NOT_METRICS = ("step", "seed", "seconds")
ALL_ROWS = 1024
"""Iterations that are all logged."""


def is_logged(iteration: int) -> bool:
    """Whether an iteration (1, 2, …) has rows: all up to 1024, every second one up to 2048, every
    fourth up to 4096, and so on, so 512 in each doubling.

    This depends on the iteration alone, so a run logs the same rows however often it is resumed and
    however long it becomes.
    """
    doublings = max((iteration - 1) // ALL_ROWS, 0).bit_length()
    return iteration % (1 << doublings) == 0


class Logs:
    """Writes rows {"step", "seed", "seconds", metric: value, …} to all places.

    wrong: sentences about a record that is not what the checkpoint states.
    """

    def __init__(
        self,
        folder: Path,
        seeds: list[int],
        stated: Mapping[str, Any] | None = None,
        step: int = 0,
        others: OtherLogs | None = None,
    ):
        """Start or, with what the checkpoint of `step` states about the record, go on."""
        self.others = others
        self.record = Record(folder / "metrics.jsonl")
        self.wrong: list[str] = []
        if stated is None:
            self.record.begin()
        else:
            if others is not None:
                rows = last_rows(self.record.path)
                others.sent = max((row.get("step", 0) for row in rows), default=0)
            self.wrong = self.record.go_on(stated, step)
        shown = folder / "tensorboard"
        self.events = {
            seed: EventFile(shown / f"seed-{seed}" if len(seeds) > 1 else shown, step)
            for seed in seeds
        }

    def begin_others(self) -> None:
        """Open the other loggers, which may take a while and is no part of training."""
        if self.others is not None:
            self.others.begin()

    def write(self, rows: list[dict[str, Any]]) -> None:
        """Append rows; numbers that do not exist (NaN) become null."""
        clean: list[dict[str, Any]] = [
            {
                name: None if isinstance(value, float) and not math.isfinite(value) else value
                for name, value in row.items()
            }
            for row in rows
        ]
        self.record.append(clean)
        for row in clean:
            shown = {
                name: value
                for name, value in row.items()
                if name not in NOT_METRICS and value is not None
            }
            self.events[row["seed"]].add(row["step"], shown)
        for events in self.events.values():
            events.write()
        if self.others is not None:
            self.others.write(clean)

    def close(self, summary: dict[str, Any] | None) -> None:
        """The run stops here. summary: of its final evaluation; None: it is not finished."""
        if self.others is not None:
            self.others.close(summary)
