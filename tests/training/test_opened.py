"""A run's folder open for writing: one process, no leftovers, the run that was left."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from coplay.api import training as api
from coplay.api.checking import check
from coplay.core.errors import UserError
from coplay.training.opened import OpenedRun
from coplay.training.records import read_rows
from coplay.training.run import RunFolder
from coplay.training.trainer import Trainer, Watcher
from tests.faults.disks import snapshot
from tests.faults.tiny import TinyTrainer, tiny, tiny_config, train_tiny

__all__ = ["tiny"]


def events(folder: Path) -> list[str]:
    return [row["event"] for row in read_rows(folder / "history.jsonl")]


def test_two_writers_do_not_share_a_folder(tiny: None, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train_tiny(folder, 4)
    opened = OpenedRun(folder)
    before = snapshot(folder)
    with pytest.raises(UserError, match="is being written by process"):
        train_tiny(folder, 8, resume=True)
    assert snapshot(folder) == before
    opened.close()
    with pytest.raises(UserError, match="already holds a run"):
        train_tiny(folder, 8)
    train_tiny(folder, 8, resume=True)
    assert events(folder) == ["begun", "finished", "resumed", "finished"]


def test_an_edited_configuration_is_refused_unless_forced(tiny: None, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train_tiny(folder, 4)
    config = tiny_config(8)
    edited = replace(config, run=replace(config.run, rollout=1))
    RunFolder(folder).write_config(edited)
    (report,) = check(folder)
    assert [one.name for one in report.bad] == ["config.json"]
    with pytest.raises(UserError, match=r"run\.rollout: 2 at the checkpoint, 1 in config\.json"):
        TinyTrainer(edited, folder, Watcher(), resume=True)
    edited = replace(config, run=replace(config.run, keep=5))
    TinyTrainer(edited, folder, Watcher(), resume=True, force=True).run()
    history = read_rows(folder / "history.jsonl")
    assert [row["what"] for row in history if row["event"] == "forced"] == [
        "run.keep: 2 at the checkpoint, 5 in config.json"
    ]
    TinyTrainer(edited, folder, Watcher(), resume=True).run()  # it is the run's own from then on


def test_a_shortened_log_is_said_and_noted(tiny: None, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train_tiny(folder, 4)
    log = folder / "metrics.jsonl"
    log.write_bytes(log.read_bytes()[:-700])
    (report,) = check(folder)
    assert [one.name for one in report.bad] == ["metrics.jsonl"] and "step 16" in report.usable
    said = train_tiny(folder, 8, resume=True)
    words = "note: metrics.jsonl is shorter than at the checkpoint"
    assert any(text.startswith(words) for text in said) and "damaged" in events(folder)
    assert read_rows(log)[-1]["step"] == 32 and check(folder)[0].whole


def test_leftovers_are_removed_when_a_run_is_opened(tiny: None, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train_tiny(folder, 4)
    left = folder / "checkpoints" / ".best.npz.99.tmp"
    left.write_bytes(b"half")
    train_tiny(folder, 8, resume=True)
    assert not left.exists()


def test_a_run_that_fails_to_begin_leaves_no_folder(
    tiny: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(self: Trainer) -> None:
        raise MemoryError

    monkeypatch.setattr(TinyTrainer, "_start", no_memory)
    with pytest.raises(MemoryError):
        train_tiny(tmp_path / "a" / "run", 4)
    assert list(tmp_path.iterdir()) == []


def test_a_run_killed_after_its_summary_gets_its_pictures(
    tiny: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(tmp_path / "run")
    drawn: list[Path] = []
    monkeypatch.setattr(api, "after_training", lambda run, watcher: drawn.append(run.path))
    train_tiny(folder.path, 4)
    summary = json.loads(folder.summary_file.read_text())
    api.finish_pictures(folder, summary, Watcher())
    assert drawn == []
    history = folder.path / "history.jsonl"
    history.write_text(history.read_text().splitlines()[0] + "\n")  # killed before it was finished
    for _ in range(2):
        api.finish_pictures(folder, summary, Watcher())
        assert drawn == [folder.path] and check(folder.path)[0].whole
