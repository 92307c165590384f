"""metrics.csv holds what metrics.jsonl holds."""

import csv
from pathlib import Path
from typing import Any

from coplay.training.loggers.registry import OtherLogs
from coplay.training.logs import Logs
from coplay.training.records import read_rows


def table(folder: Path) -> list[dict[str, str]]:
    with open(folder / "metrics.csv") as file:
        return list(csv.DictReader(file))


def as_text(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    columns = dict.fromkeys(name for row in rows for name in row)
    return [
        {name: "" if row.get(name) is None else str(row[name]) for name in columns} for row in rows
    ]


def opened(folder: Path, stated: Any = None, step: int = 0) -> Logs:
    return Logs(folder, [0], stated, step, OtherLogs("csv", folder, {}, [0], print))


def test_columns_that_appear_later_and_rows_that_are_cut_back(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.write([{"step": 1, "seed": 0, "a": 0.1}])
    log.write([{"step": 2, "seed": 0, "a": float("nan")}])
    state = log.record.state()
    log.write([{"step": 3, "seed": 0, "a": 0.3, "b, c": 1e-9}])
    assert table(tmp_path) == as_text(read_rows(tmp_path / "metrics.jsonl"))
    again = opened(tmp_path, state, 2)
    for step in (3, 4):
        again.write([{"step": step, "seed": 0, "a": 0.5}])
    rows = table(tmp_path)
    assert [row["step"] for row in rows] == ["1", "2", "3", "4"] and rows[1]["a"] == ""
    assert rows == as_text(read_rows(tmp_path / "metrics.jsonl"))
