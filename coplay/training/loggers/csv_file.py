"""The rows of a run as a table, `metrics.csv`."""

import csv
import io
from typing import Any

from coplay.core import files
from coplay.training.loggers.logged import LoggedRun, Row
from coplay.training.records import read_rows

NAME = "metrics.csv"


class CsvLog:
    """A table with a column for each metric, empty where a row does not have it.

    It is made from `metrics.jsonl` where a run begins or goes on, and again when a metric appears
    that has no column. In between rows are appended.
    """

    def __init__(self, run: LoggedRun):
        self.path, self.record = run.folder / NAME, run.folder / "metrics.jsonl"
        self.known: dict[str, str] = {}
        self.columns: list[str] = []

    def write(self, rows: list[Row]) -> None:
        """See `Logger.write`."""
        if any(name not in self.columns for row in rows for name in row):
            kept = read_rows(self.record)
            self.columns = list(dict.fromkeys(name for row in kept for name in row))
            with files.replacing(self.path) as temporary:
                temporary.write_text(self._lines(kept, head=True))
        elif rows:
            files.DISK.append(self.path, self._lines(rows).encode())

    def _lines(self, rows: list[Row], head: bool = False) -> str:
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        if head:
            writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()

    def close(self, summary: dict[str, Any] | None) -> None:
        """Nothing is left to do."""
