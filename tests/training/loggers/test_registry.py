"""Loggers are chosen by name; one that fails or is missing never costs a run."""

from pathlib import Path
from typing import Any

import pytest

from coplay.core.errors import UserError
from coplay.training.config import RunConfig
from coplay.training.loggers import registry
from coplay.training.loggers.logged import LoggedRun
from coplay.training.loggers.registry import LoggerKind, OtherLogs, check_installed
from coplay.training.logs import Logs
from coplay.training.records import read_rows


def row(step: int, seed: int = 0, **metrics: float) -> dict[str, Any]:
    return {"step": step, "seed": seed, "seconds": 1.0, **metrics}


class Remembers:
    """A logger of the test. It remembers rows, and fails from the step `fails` on."""

    fails = 10**9

    def __init__(self, run: LoggedRun):
        self.known = run.known or {str(seed): f"id-{seed}" for seed in run.seeds}
        self.steps: list[int] = []
        self.closed: Any = "open"

    def write(self, rows: list[dict[str, Any]]) -> None:
        if any(one["step"] >= self.fails for one in rows):
            raise OSError("no\nnetwork")
        self.steps += [one["step"] for one in rows]

    def close(self, summary: dict[str, Any] | None) -> None:
        self.closed = summary


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Remembers]:
    """Every logger that `--log test` made."""
    found: list[Remembers] = []

    def begin(run: LoggedRun) -> Remembers:
        found.append(Remembers(run))
        return found[-1]

    monkeypatch.setitem(registry.LOGGERS, "test", LoggerKind(begin, "pytest"))
    return found


def opened(folder: Path, said: list[str], stated: Any = None, step: int = 0) -> Logs:
    return Logs(folder, [0], stated, step, OtherLogs("test", folder, {}, [0], said.append))


def test_a_run_that_goes_on_keeps_its_identity_and_sends_nothing_twice(
    tmp_path: Path, made: list[Remembers]
) -> None:
    said: list[str] = []
    logs = opened(tmp_path, said)
    logs.write([row(1)])
    state = logs.record.state()
    logs.write([row(2), row(3)])
    again = opened(tmp_path, said, state, 1)
    again.write([row(2), row(3)])
    again.write([row(4)])
    again.close({"steps": 4})
    first, second = made
    assert first.steps == [1, 2, 3] and second.steps == [4]
    assert second.known == first.known and second.closed == {"steps": 4}
    assert not said


def test_one_that_fails_is_left_out_with_one_note(
    tmp_path: Path, made: list[Remembers], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Remembers, "fails", 2)
    said: list[str] = []
    logs = opened(tmp_path, said)
    for step in (1, 2, 3):
        logs.write([row(step)])
    logs.close(None)
    assert len(said) == 1 and "test" in said[0] and "no network" in said[0]
    assert made[0].steps == [1]
    assert [one["step"] for one in read_rows(tmp_path / "metrics.jsonl")] == [1, 2, 3]


def test_wrong_names_and_missing_packages_are_said_before_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(UserError, match="did you mean 'wandb'"):
        RunConfig(log="csv,wandbb")
    monkeypatch.setitem(registry.LOGGERS, "test", LoggerKind(Remembers, "no_such_package"))
    with pytest.raises(UserError, match="pip install no_such_package"):
        check_installed("csv,test")
    check_installed("csv")
