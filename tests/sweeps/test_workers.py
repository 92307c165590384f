"""Processes of runs: their exit codes, their logs, their threads, and how they are stopped."""

import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from coplay.core.lock import Lock
from coplay.sweeps import workers
from coplay.sweeps.workers import Ended, Job, LocalWorkers, local_workers
from tests.sweeps.fakes import FAKE_RUN, alive


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "LAUNCH", FAKE_RUN)


def job(folder: Path, name: str, word: str) -> Job:
    run = folder / name
    return Job(
        name, run, ("begin", word), ("go-on", word), folder / "logs" / name, folder / "order"
    )


def wait_for(some: LocalWorkers) -> Ended:
    for _ in range(600):
        if ended := some.poll():
            return ended[0]
        time.sleep(0.05)
    raise TimeoutError


def test_exit_codes_and_logs(tmp_path: Path) -> None:
    some = LocalWorkers(1, 1)
    assert some.start(job(tmp_path, "a", "0")) and wait_for(some) == Ended("a", 0)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "config.json").write_text("{}")
    assert some.start(job(tmp_path, "a", "3"))
    ended = wait_for(some)
    assert ended.code == 3 and "go-on 3" in ended.words and "begin 0" in ended.words
    assert "threads 1" in ended.words and "--xla_cpu_multi_thread_eigen=false" in ended.words


def test_a_folder_that_is_written_waits(tmp_path: Path) -> None:
    some = LocalWorkers(1, 1)
    lock = Lock(tmp_path / "a")
    assert not some.start(job(tmp_path, "a", "0"))
    lock.release()
    assert some.start(job(tmp_path, "a", "0")) and wait_for(some).code == 0


def ready(log: Path) -> int:
    """The process of a run that sleeps, once it does."""
    for _ in range(600):
        words = log.read_text().split() if log.exists() else []
        if "ready" in words and words[-1] != "ready":
            return int(words[-1])
        time.sleep(0.05)
    raise TimeoutError


def test_closing_asks_the_runs_to_save(tmp_path: Path) -> None:
    some = LocalWorkers(2, 1)
    some.start(job(tmp_path, "a", "sleep"))
    process = ready(tmp_path / "logs" / "a")
    some.close()
    assert not alive(process)


def test_workers_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "cores", lambda: 8)
    shares = {
        given: (some.slots, some.threads)
        for given in [(0, 1, 99), (0, 4, 99), (2, 1, 99), (0, 1, 3), (16, 1, 99)]
        for some in [local_workers(*given)]
    }
    assert shares == {
        (0, 1, 99): (8, 1),
        (0, 4, 99): (2, 4),
        (2, 1, 99): (2, 4),
        (0, 1, 3): (3, 1),
        (16, 1, 99): (16, 1),
    }


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of a parent's death")
def test_a_run_ends_with_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    head = workers.LAUNCH.partition("from coplay")[0]
    child = head + "import time\nprint(os.getpid(), flush=True)\ntime.sleep(60)"
    parent = (
        "import os, subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', {child!r}, str(os.getpid())])\n"
        "time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        orphan = int(process.stdout.readline())
        process.kill()
        process.wait()
    for _ in range(200):
        if not alive(orphan):
            return
        time.sleep(0.05)
    raise AssertionError("the run goes on without its parent")


def test_a_job_that_ends_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    slept = list[float]()
    monkeypatch.setattr(workers.time, "sleep", slept.append)
    answers: list[list[Ended]] = [[], [Ended("one", 0)], []]
    asked = SimpleNamespace(poll=lambda: answers.pop(0))
    assert workers.awaited(asked) == [Ended("one", 0)]
    assert len(slept) == 1, "after the answer it does not wait any longer"
    answers[:] = [[]] * 4
    assert workers.awaited(asked) == []
    assert sum(slept[1:]) == pytest.approx(workers.BREAK)
