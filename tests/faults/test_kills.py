"""Real kills (SIGKILL) of real processes at random moments: starting, compiling, training,
evaluating, drawing. A run that is taken up until it is done ends as one that was never killed.

`COPLAY_KILLS=SEED,COUNT` kills at other moments.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from coplay.api.checking import check
from coplay.training.run import RunFolder
from tests.faults.tiny import outcome

FIELDS = [
    *("--copies", "8", "--rollout", "8", "--block", "2", "--network.hidden", "8"),
    *("--minibatches", "2", "--epochs", "2", "--checkpoint-every", "256", "--episodes", "200"),
    *("--evaluate-every", "1024", "--evaluate-episodes", "8", "--steps", "20480", "--seeds", "2"),
]
HOME = Path(__file__).parents[2]


def start(folder: Path) -> subprocess.Popen[bytes]:
    """Begin a run, or go on with it."""
    begun = RunFolder(folder).exists()
    how = ["--resume", str(folder)] if begun else [*FIELDS, "--out", str(folder)]
    command = [sys.executable, "-m", "coplay", "train", "ppo", *how, "--json"]
    silent = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=HOME, stdout=silent, stderr=subprocess.PIPE)


def finish(folder: Path) -> float:
    """Let a run end; how long it took."""
    begun = time.monotonic()
    process = start(folder)
    words = process.communicate()[1].decode()
    assert process.returncode == 0, words
    return time.monotonic() - begun


@pytest.mark.faults
def test_kills_at_random_moments(tmp_path: Path) -> None:
    seed, count = map(int, os.environ.get("COPLAY_KILLS", "0,100").split(","))
    chance = random.Random(seed)
    finish(tmp_path / "first")  # fills the cache of compiled programs
    takes = finish(tmp_path / "straight")
    wanted = outcome(tmp_path / "straight")
    kills, runs = 0, 0
    while kills < count:
        folder = tmp_path / f"run-{runs}"
        runs += 1
        for _ in range(chance.randint(3, 8)):
            process = start(folder)
            try:
                process.communicate(timeout=chance.uniform(0, takes))
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
                process.communicate()
                kills += 1
            if RunFolder(folder).checkpoints().all():
                (report,) = check(folder)
                assert report.whole, report.bad
        finish(folder)
        assert outcome(folder) == wanted, folder
        for name in ("summary.json", "index.html", "learning_curve.png", "episode.gif"):
            assert (folder / name).exists(), name
    print(f"seed {seed}: {kills} kills of {runs} runs")
