"""Rows arrive in Weights & Biases, here offline in a folder."""

import json
from pathlib import Path
from typing import Any

import pytest

from coplay.training.loggers.registry import OtherLogs

pytest.importorskip("wandb", reason="wandb is not installed: pip install -e '.[wandb]'")


BLOCK, WHOLE, LAST = 1 << 15, 1, 4


def rows(*steps: int) -> list[dict[str, Any]]:
    return [
        {"step": step, "seed": seed, "seconds": 1.0, "entropy/seat_0": step + seed / 2, "kl": None}
        for step in steps
        for seed in (3, 4)
    ]


def opened(folder: Path, sent: int = 0) -> tuple[OtherLogs, list[str]]:
    said: list[str] = []
    logs = OtherLogs("wandb", folder, {"player": "ppo"}, [3, 4], said.append)
    logs.sent = sent
    return logs, said


def kept(path: Path) -> list[tuple[int, float]]:
    """(step, entropy) of all rows in a file of Weights & Biases: after 7 bytes, blocks of 32 KiB
    that hold parts, each behind its checksum (4 bytes), length (2) and kind (1)."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, place, parts, found = path.read_bytes(), 7, b"", []
    while place < len(data):
        if (left := BLOCK - place % BLOCK) < 7:  # no part fits
            place += left
            continue
        length, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
        parts += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (WHOLE, LAST):
            record, parts = Record.FromString(parts), b""
            items = {
                item.key or "/".join(item.nested_key): json.loads(item.value_json)
                for item in record.history.item
            }
            if "entropy/seat_0" in items:
                found.append((record.history.step.num, items["entropy/seat_0"]))
    return found


def test_a_run_goes_on_in_the_same_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    folder = tmp_path / "mine"
    folder.mkdir()
    logs, said = opened(folder)
    logs.write(rows(1, 2))
    logs.close(None)
    again, said_again = opened(folder, sent=2)
    again.write(rows(2, 3))
    again.close({"steps": 3, "team_mean": 2.0, "seeds": [{"seed": 4, "team_mean": 1.5}]})
    assert not said + said_again
    identity = json.loads((folder / "loggers.json").read_text())["wandb"]["4"]
    files = sorted(tmp_path.glob(f"wandb/offline-run-*/run-{identity}.wandb"))
    found = [pair for path in files for pair in kept(path)]
    assert found == [(1, 3.0), (2, 4.0), (3, 5.0)]
    assert [path.name for path in folder.iterdir()] == ["loggers.json"], "a run holds no links"
