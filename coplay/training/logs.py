"""Logs of a run: `metrics.jsonl` is the record, TensorBoard shows the same numbers and explains
each metric.

A row is one iteration of one seed. On resume the record is cut back to what it held at the
checkpoint and TensorBoard's files are made anew from it, so nothing appears twice.
"""

import json
import math
import os
import shutil
from pathlib import Path
from typing import Any

from tensorboardX import SummaryWriter

from coplay.core.reading import MOST_ROWS, open_file
from coplay.training.metrics import describe

NOT_METRICS = ("step", "seed", "seconds")


class Logs:
    """Writes rows {"step", "seed", "seconds", metric: value, …} to both places."""

    def __init__(self, folder: Path, seeds: list[int], keep_bytes: int = 0):
        """Start or, with the size of the record at the checkpoint, go on."""
        self.path = folder / "metrics.jsonl"
        self.folder = folder / "tensorboard"
        if self.path.exists():
            os.truncate(self.path, keep_bytes)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.writers = {
            seed: SummaryWriter(
                str(self.folder / f"seed-{seed}" if len(seeds) > 1 else self.folder),
                max_queue=1000,
                flush_secs=10,
            )
            for seed in seeds
        }
        self.described: set[tuple[int, str]] = set()  # (seed, metric)
        for row in read_rows(self.path):
            self._show(row)
        self.file = open(self.path, "a", buffering=1 << 16)  # noqa: SIM115 (lives as long as the run)

    def write(self, rows: list[dict[str, Any]]) -> None:
        """Append rows; numbers that do not exist (NaN) become null."""
        for row in rows:
            clean = {
                name: None if isinstance(value, float) and not math.isfinite(value) else value
                for name, value in row.items()
            }
            self.file.write(json.dumps(clean) + "\n")
            self._show(clean)

    def _show(self, row: dict[str, Any]) -> None:
        seed, step = row["seed"], row["step"]
        for name, value in row.items():
            if name not in NOT_METRICS and value is not None:
                # TensorBoard reads a description where a metric first appears.
                new = (seed, name) not in self.described
                words = describe(name) or "" if new else ""
                self.described.add((seed, name))
                self.writers[seed].add_scalar(name, value, step, summary_description=words)

    def size(self) -> int:
        """Bytes of the record, all of them safely on disk."""
        self.file.flush()
        os.fsync(self.file.fileno())
        return self.path.stat().st_size

    def close(self) -> None:
        self.file.close()
        for writer in self.writers.values():
            writer.close()


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a record; a last line cut short by a crash is left out."""
    if not path.exists():
        return []
    rows = []
    with open_file(path, MOST_ROWS) as file:
        for line in file:
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                break
            if not isinstance(row, dict):
                break
            rows.append(row)
    return rows
