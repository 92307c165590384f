"""The record of a run and what TensorBoard is given."""

import math
from pathlib import Path
from typing import Any

from tensorboardX.proto.event_pb2 import Event

from coplay.training.logs import Logs, is_logged
from coplay.training.records import read_rows


def row(step: int, seed: int = 0, **metrics: float) -> dict[str, Any]:
    return {"step": step, "seed": seed, "seconds": 1.0, **metrics}


def events(folder: Path) -> list[Event]:
    """All events in the order in which TensorBoard reads them."""
    found = []
    for path in sorted(folder.iterdir()):
        data, place = path.read_bytes(), 0
        while place < len(data):
            length = int.from_bytes(data[place : place + 8], "little")
            found.append(Event.FromString(data[place + 12 : place + 12 + length]))
            place += 16 + length
    return found


def test_rows_are_kept_and_numbers_that_do_not_exist_are_null(tmp_path: Path) -> None:
    Logs(tmp_path, [0]).write([row(1, team_mean=2.0), row(2, team_mean=math.nan)])
    rows = read_rows(tmp_path / "metrics.jsonl")
    assert [one["team_mean"] for one in rows] == [2.0, None]


def test_a_resumed_record_goes_on_where_the_checkpoint_was(tmp_path: Path) -> None:
    log = Logs(tmp_path, [0])
    log.write([row(1, entropy=1.0)])
    state = log.record.state()
    log.write([row(2, entropy=1.0)])
    again = Logs(tmp_path, [0], state, step=1)
    assert again.wrong == []
    again.write([row(3, entropy=1.0)])
    assert [one["step"] for one in read_rows(tmp_path / "metrics.jsonl")] == [1, 3]
    told = [event for event in events(tmp_path / "tensorboard")]
    voids = [event.step for event in told if event.HasField("session_log")]
    assert voids == [1, 2]  # the second file says that step 2 of the first one is void
    assert [event.step for event in told if event.HasField("summary")] == [1, 2, 3]


def test_a_line_cut_short_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1}\n\xff\n[2]\n{"step": 3}\n{"st')
    assert [one["step"] for one in read_rows(path)] == [1, 3]
    assert read_rows(tmp_path / "nothing.jsonl") == []


def test_tensorboard_explains_each_metric_once(tmp_path: Path) -> None:
    log = Logs(tmp_path, [0])
    log.write([row(1, **{"entropy/seat_0": 1.0}), row(2, **{"entropy/seat_0": 0.5})])
    values = [v for event in events(tmp_path / "tensorboard") for v in event.summary.value]
    assert [(value.tag, value.simple_value) for value in values] == [
        ("entropy/seat_0", 1.0),
        ("entropy/seat_0", 0.5),
    ]
    words = [value.metadata.summary_description for value in values]
    assert words == ["entropy of the policy in nats, over legal actions", ""]


def test_rows_become_rarer_by_a_rule_of_the_iteration_alone() -> None:
    kept = [number for number in range(1, 16_385) if is_logged(number)]
    assert kept[:1024] == list(range(1, 1025)) and kept[1024:1026] == [1026, 1028]
    assert len(kept) == 1024 + 4 * 512
    assert all(is_logged(1 << power) for power in range(30))
