"""Curves of records that grow."""

import json
from pathlib import Path

import numpy as np

from coplay.serve.tail import POINTS, Tail
from tests.serve.folders import append


def test_rows_are_taken_in_as_they_come(tmp_path: Path) -> None:
    tail = Tail(tmp_path / "metrics.jsonl")
    assert not tail.read() and tail.curve("team_mean")["steps"] == []
    append(tmp_path, 10, 1.0, 3.0, entropy=0.5)
    assert tail.read() and not tail.read()
    assert tail.metrics == ["team_mean", "entropy"]
    expected = {"steps": [10], "mean": [2.0], "low": [1.0], "high": [3.0]}
    assert tail.curve("team_mean") == expected
    with open(tail.path, "a") as file:
        file.write(json.dumps({"step": 20, "seed": 0, "team_mean": 5.0}))  # half a row
    tail.read()
    assert tail.curve("team_mean")["steps"] == [10]
    with open(tail.path, "a") as file:
        file.write("\nnonsense\n[1]\n" + '{"step": "x"}\n{"step": 30, "team_mean": null}\n')
    tail.read()
    found = tail.curve("team_mean")
    assert (found["steps"], found["mean"], found["high"]) == ([10, 20], [2.0, 5.0], [3.0, 5.0])


def test_a_record_that_became_shorter_is_read_anew(tmp_path: Path) -> None:
    tail = Tail(tmp_path / "metrics.jsonl")
    append(tmp_path, 10, 1.0)
    append(tmp_path, 20, 2.0)
    tail.read()
    lines = tail.path.read_text().splitlines(keepends=True)
    tail.path.write_text(lines[0])
    assert tail.read() and tail.curve("team_mean")["steps"] == [10]


def test_long_runs_have_few_points(tmp_path: Path) -> None:
    tail = Tail(tmp_path / "metrics.jsonl")
    rows = [{"step": 7 * n, "seed": 0, "team_mean": float(n % 2)} for n in range(3000)]
    tail.path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    tail.read()
    found = tail.curve("team_mean")
    assert POINTS / 4 < len(found["steps"]) <= POINTS
    assert found["steps"] == sorted(found["steps"]) and "low" not in found
    assert abs(np.mean(found["mean"]) - 0.5) < 0.02
