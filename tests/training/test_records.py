"""Files that grow: cut back to the checkpoint, never lengthened; damage is said, rows are kept."""

import json
from pathlib import Path

import pytest

from coplay.training.records import Record, note_in_history, read_rows


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Two rows that a checkpoint of step 2 states (`state`), and a third."""
    found = Record(tmp_path / "metrics.jsonl")
    found.append([{"step": 1}, {"step": 2}])
    return found


def steps(record: Record) -> list[int]:
    return [row["step"] for row in read_rows(record.path)]


def test_later_rows_are_cut(record: Record) -> None:
    state = record.state()
    record.append([{"step": 3}])
    again = Record(record.path)
    assert again.go_on(state, 2) == [] and again.state() == state
    again.append([{"step": 4}])
    assert steps(record) == [1, 2, 4]


def test_a_torn_tail_is_cut_and_said(record: Record) -> None:
    state = record.state()
    record.path.write_bytes(record.path.read_bytes() + b'{"step": 3')
    assert Record(record.path).go_on(state, 2) == [
        "metrics.jsonl ended in half a row, which is cut off"
    ]
    assert steps(record) == [1, 2]


def test_a_short_file_is_not_made_longer(record: Record) -> None:
    state = record.state()
    record.path.write_bytes(record.path.read_bytes()[:-4])
    again = Record(record.path)
    wrong = again.go_on(state, 2)
    assert wrong[0].startswith("metrics.jsonl is shorter than at the checkpoint: 1 rows are kept")
    again.append([{"step": 3}])
    assert steps(record) == [1, 3] and b"\0" not in record.path.read_bytes()
    assert Record(record.path).go_on(again.state(), 3) == []


def test_a_missing_file_is_said(record: Record) -> None:
    state = record.state()
    record.path.unlink()
    again = Record(record.path)
    assert again.go_on(state, 2) == ["metrics.jsonl is missing: its rows up to step 2 are lost"]
    assert again.state()["bytes"] == 0


def test_damage_in_the_middle_is_said_and_later_rows_stay(record: Record) -> None:
    state = record.state()
    data = bytearray(record.path.read_bytes())
    data[2] ^= 128
    record.path.write_bytes(data)
    wrong = Record(record.path).go_on(state, 2)
    assert "does not match its checksum: 1 rows are kept" in wrong[0] and steps(record) == [2]


def test_a_changed_number_is_said(record: Record) -> None:
    state = record.state()
    record.path.write_bytes(record.path.read_bytes().replace(b"1", b"0"))
    assert "does not match its checksum: 2 rows" in Record(record.path).go_on(state, 2)[0]


def test_history_goes_on_after_half_a_row(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text('{"event": "begun"}\n{"event": "fin')
    note_in_history(tmp_path, "resumed", 5, what="more")
    first, row = (json.loads(line) for line in path.read_text().splitlines())
    assert (row["event"], row["step"], row["what"]) == ("resumed", 5, "more")
    assert first == {"event": "begun"}
