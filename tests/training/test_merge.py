"""Seeds that were trained by themselves and put together are the run of all seeds."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from coplay.api.training import make_config, train
from coplay.cli.main import run
from coplay.core.errors import UserError
from coplay.sweeps import parts, seeds
from coplay.sweeps.config import SweepConfig
from coplay.sweeps.workers import Ended, Job
from coplay.training.records import read_rows
from coplay.training.run import RunFolder
from tests.faults.tiny import outcome

SMALL: dict[str, Any] = {
    **{"copies": 8, "rollout": 4, "minibatches": 1, "epochs": 1, "block": 2, "steps": 192},
    **{"episodes": 4, "evaluate_every": 64, "evaluate_episodes": 2, "seed": 5},
    **{"network.hidden": (4,), "quiet": True, "pictures": False, "game": "matrix:stag-hunt"},
    "game_fields": {"rounds": 3},
}


class InProcess:
    """Does jobs one by one in this process. fails: jobs that fail once."""

    slots = 1

    def __init__(self, fails: set[str]):
        self.fails, self.ended = fails, list[Ended]()

    def start(self, job: Job) -> bool:
        if job.name in self.fails:
            self.fails.discard(job.name)
            self.ended.append(Ended(job.name, 1, words="it broke"))
        else:
            self.ended.append(Ended(job.name, run(list(job.begin))))
        return True

    def poll(self) -> list[Ended]:
        done, self.ended = self.ended, []
        return done

    def ask_to_stop(self, name: str) -> None:
        pass

    def close(self) -> None:
        pass


def result(folder: Path) -> dict[str, Any]:
    """All that must be the same; a summary without its times."""
    summary = RunFolder(folder).read_summary() or {}
    times = ("seconds", "compile_seconds", "steps_per_second")
    return outcome(folder) | {k: v for k, v in summary.items() if k not in times}


@pytest.mark.slow
def test_seeds_one_by_one_are_the_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, split = tmp_path / "whole", tmp_path / "split"
    train("ppo", out=whole, seeds=3, **SMALL)
    monkeypatch.setattr(parts, "workers_for", lambda *given: InProcess({"seed-6"}))
    monkeypatch.setattr("coplay.sweeps.workers.BREAK", 0.0)
    train("ppo", out=split, seeds=3, on="local:1", **SMALL)
    assert result(whole) == result(split)
    assert not (tmp_path / "split.parts").exists()
    rows = read_rows(split / "metrics.jsonl")
    assert [row["seed"] for row in rows[:3]] == [5, 6, 7]
    for folder in (whole, split):
        train("ppo", out=folder, resume=True, steps=256, quiet=True, pictures=False)
    assert result(whole) == result(split)
    shutil.rmtree(whole)


def test_what_cannot_be_split_is_refused(tmp_path: Path) -> None:
    where = SweepConfig(on="local:1")
    for fields, said in (({}, "at least --seeds 2"), ({"seeds": 2, "devices": 2}, "leave out one")):
        with pytest.raises(UserError, match=said):
            config = make_config("ppo", "stag-hunt", {}, fields)
            seeds.train_seeds(config, tmp_path / "run", where, print)
    assert not list(tmp_path.iterdir())
