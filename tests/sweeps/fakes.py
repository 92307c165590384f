"""Runs of a sweep that compute nothing: a summary and a row of metrics, at once."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coplay.sweeps.sweep import SweepWatcher
from coplay.sweeps.workers import Ended, Job


def write_run(folder: Path, value: float, seeds: int = 1) -> None:
    """A finished run whose seeds reached about this team mean."""
    folder.mkdir(parents=True, exist_ok=True)
    seats = [{"player": "ppo", "reward": value, "stderr": 0.1, "steps": 5.0}] * 4
    summary: dict[str, Any] = {
        **{"game": "stag-hunt", "player": "ppo", "episodes": 2, "steps": 4096},
        **{"team_mean": value, "seats": seats, "seconds": 1.5, "compile_seconds": 0.5},
    }
    if seeds > 1:
        means = [value + 0.01 * index for index in range(seeds)]
        summary["seeds"] = [
            {"seed": index, "team_mean": mean, "seats": seats} for index, mean in enumerate(means)
        ]
        summary |= {"iqm": value, "interval": [value, value]}
    (folder / "summary.json").write_text(json.dumps(summary))
    rows = [{"step": 1024 * n, "seed": 0, "seconds": 1.0, "team_mean": value} for n in (1, 2, 3)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


class FakeWorkers:
    """Does a job as soon as it is asked about. outcome: of the configuration and how often the job
    was begun, the exit code, or the value that a run reaches."""

    slots = 2

    def __init__(self, outcome: Callable[[dict[str, Any], int], float | int]):
        self.outcome = outcome
        self.begun: dict[str, int] = {}
        self.waiting: list[Job] = []
        self.closed = False

    def start(self, job: Job) -> bool:
        self.waiting.append(job)
        return True

    def poll(self) -> list[Ended]:
        ended = []
        for job in self.waiting:
            self.begun[job.name] = self.begun.get(job.name, 0) + 1
            config = json.loads(Path(job.begin[job.begin.index("--config") + 1]).read_text())
            found = self.outcome(config, self.begun[job.name])
            if isinstance(found, float):
                write_run(job.folder, found, config["run"]["seeds"])
            code = 0 if isinstance(found, float) else found
            ended.append(Ended(job.name, code, lost=code == -99, words="coplay: it broke"))
        self.waiting = []
        return ended

    def ask_to_stop(self, name: str) -> None:
        pass

    def close(self) -> None:
        self.closed = True


class Listener(SweepWatcher):
    """Keeps what a sweep says."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


FAKE_RUN = """
import os, signal, sys, time
print(" ".join(sys.argv[2:]), flush=True)
word = sys.argv[-1]
if word == "sleep":
    signal.signal(signal.SIGTERM, lambda *given: sys.exit(130))
    print("ready", os.getpid(), flush=True)
    time.sleep(60)
print("coplay: threads", os.environ["PJRT_NPROC"], os.environ.get("XLA_FLAGS"), flush=True)
sys.exit(int(word))
"""
"""In place of `LAUNCH`: ends with the exit code that its last word says."""


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
