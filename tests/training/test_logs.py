"""The record of a run and what TensorBoard is given."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from coplay.training import logs
from coplay.training.logs import Logs, read_rows


def row(step: int, seed: int = 0, **metrics: float) -> dict[str, Any]:
    return {"step": step, "seed": seed, "seconds": 1.0, **metrics}


def test_rows_are_kept_and_numbers_that_do_not_exist_are_null(tmp_path: Path) -> None:
    log = Logs(tmp_path, [0])
    log.write([row(1, team_mean=2.0), row(2, team_mean=math.nan)])
    log.close()
    rows = read_rows(tmp_path / "metrics.jsonl")
    assert [one["team_mean"] for one in rows] == [2.0, None]


def test_a_resumed_record_goes_on_where_the_checkpoint_was(tmp_path: Path) -> None:
    log = Logs(tmp_path, [0])
    log.write([row(1)])
    kept = log.size()
    log.write([row(2)])
    log.close()
    log = Logs(tmp_path, [0], keep_bytes=kept)
    log.write([row(3)])
    log.close()
    assert [one["step"] for one in read_rows(tmp_path / "metrics.jsonl")] == [1, 3]


def test_a_line_cut_short_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(json.dumps(row(1)) + "\n" + json.dumps(row(2))[:9])
    assert [one["step"] for one in read_rows(path)] == [1]
    assert read_rows(tmp_path / "nothing.jsonl") == []


def test_tensorboard_explains_each_metric_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, str]] = []

    class Writer:
        def __init__(self, *given: Any, **rest: Any) -> None: ...

        def add_scalar(self, name: str, value: float, step: int, summary_description: str) -> None:
            told.append((name, summary_description))

        def close(self) -> None: ...

    monkeypatch.setattr(logs, "SummaryWriter", Writer)
    log = Logs(tmp_path, [0])
    log.write([row(1, **{"entropy/seat_0": 1.0}), row(2, **{"entropy/seat_0": 0.5})])
    log.close()
    assert told[0] == ("entropy/seat_0", "entropy of the policy in nats, over legal actions")
    assert told[1] == ("entropy/seat_0", "")
