"""Seeds shared by several devices give the same bits as on one, game copies the same up to
rounding; so do several processes."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coplay.api.training import make_config
from coplay.cli.main import run
from coplay.core.errors import UserError
from coplay.training.devices import Devices
from coplay.training.run import make_game_of

HOME = str(Path(__file__).parents[2])
DEVICES = """
import json, sys
import coplay
folder, player, runs, numbers = sys.argv[1], sys.argv[2], *map(json.loads, sys.argv[3:5])
small = dict(copies=8, rollout=4, minibatches=2, epochs=2, block=2, episodes=2, keep=9)
small |= {"network.hidden": (8,), "game.rounds": 3, "checkpoint_every": 10_000}
for name, given in runs.items():
    own = dict(out=f"{folder}/{name}", quiet=True, pictures=False)
    for index, updates in enumerate(numbers):
        if index:
            coplay.train(resume=True, steps=updates * 32, **own)
        else:
            coplay.train(player, "matrix:stag-hunt", steps=updates * 32, **own, **small, **given)
"""
"""Trains several runs to several numbers of updates, one after the other."""


def four_devices() -> dict[str, str]:
    flags = "--xla_force_host_platform_device_count=4 --xla_cpu_multi_thread_eigen=false"
    return os.environ | {"XLA_FLAGS": flags, "PYTHONPATH": HOME}


def train_all(folder: Path, player: str, runs: dict[str, Any], updates: list[int]) -> None:
    given = [str(folder), player, json.dumps(runs), json.dumps(updates)]
    subprocess.run([sys.executable, "-c", DEVICES, *given], check=True, env=four_devices())


def learned(checkpoint: Path) -> dict[str, np.ndarray]:
    """The arrays that learning changed, by their names."""
    with np.load(checkpoint) as arrays:
        return {name: arrays[name] for name in arrays.files if name.startswith(".learners")}


@pytest.mark.slow
def test_seeds_over_devices_are_bit_equal(tmp_path: Path) -> None:
    """Four seeds on four devices, and each alone on one: one seed per program in both."""
    runs: dict[str, Any] = {"four": {"seeds": 4, "devices": 4}}
    runs |= {f"seed-{seed}": {"seed": seed} for seed in range(4)}
    train_all(tmp_path, "ppo", runs, [8, 12])
    for updates in (8, 12):
        name = f"checkpoints/step-{updates * 32:015d}.npz"
        with np.load(tmp_path / "four" / name) as together:
            for seed in range(4):
                with np.load(tmp_path / f"seed-{seed}" / name) as alone:
                    assert together.files == alone.files
                    for key in set(alone.files) - {"note.json"}:
                        mine, whole = alone[key][0], together[key][seed]
                        assert mine.tobytes() == whole.tobytes(), (updates, seed, key)


ROUNDING = {1: 1e-6, 10: 1e-5, 100: 1e-4}
"""Updates -> the largest difference of a parameter, which is of the order of 1."""


def farthest(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> float:
    """The largest difference of two numbers at the same place."""
    assert one.keys() == other.keys()
    return max(float(np.abs(one[key] - other[key]).max(initial=0.0)) for key in one)


@pytest.mark.slow
@pytest.mark.parametrize("player", ["ppo", "mappo"])
def test_copies_over_devices_are_equal_up_to_rounding(tmp_path: Path, player: str) -> None:
    runs = {"one": {}, "four": {"devices": 4}}
    train_all(tmp_path, player, runs, list(ROUNDING))
    for updates, rounding in ROUNDING.items():
        name = f"checkpoints/step-{updates * 32:015d}.npz"
        one, four = (learned(tmp_path / folder / name) for folder in ("one", "four"))
        worst = farthest(one, four)
        print(player, updates, worst)
        assert 0.0 < worst < rounding or updates == 1, (updates, worst)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [1, 4])
def test_two_processes_are_one_run(tmp_path: Path, seeds: int) -> None:
    """Two processes with two devices each, over gloo: the run of one process with four, also after
    it was taken up."""
    small = [
        *("train", "ppo", "--game", "matrix:stag-hunt", "--copies", "8", "--rollout", "4"),
        *("--minibatches", "2", "--epochs", "2", "--block", "2", "--network.hidden", "8"),
        *("--episodes", "10", "--seeds", str(seeds), "--no-pictures", "--devices", "4"),
    ]

    def start(devices: int, *more: str) -> subprocess.Popen[bytes]:
        flags = f"--xla_force_host_platform_device_count={devices}"
        variables = os.environ | {"XLA_FLAGS": flags, "PYTHONPATH": HOME, "TMPDIR": str(tmp_path)}
        return subprocess.Popen([sys.executable, "-m", "coplay", *more], env=variables)

    both, alone = str(tmp_path / "both"), str(tmp_path / "alone")
    for begin, steps in ((True, 320), (False, 640)):
        place = ["--coordinator", f"127.0.0.1:{free_port()}", "--processes", "2"]
        given = [*small, "--out", both] if begin else ["train", "ppo", "--resume", both]
        more = [*given, "--steps", str(steps), *([] if begin else ["--no-pictures"])]
        pair = [start(2, *more, *place, "--process", str(index)) for index in range(2)]
        assert [one.wait(600) for one in pair] == [0, 0]
    assert start(4, *small, "--out", alone, "--steps", "640").wait(600) == 0
    one, two = (
        learned(Path(out) / "checkpoints/step-000000000000640.npz") for out in (alone, both)
    )
    worst = farthest(one, two)
    print(seeds, worst)
    assert worst == 0.0 if seeds == 4 else worst < ROUNDING[10]
    summaries = [json.loads((Path(out) / "summary.json").read_text()) for out in (alone, both)]
    assert abs(summaries[0]["team_mean"] - summaries[1]["team_mean"]) < 0.05
    assert not list(tmp_path.glob("coplay-process-*"))


LATE = """
import sys, time
import numpy as np
from jax.sharding import PartitionSpec
from coplay.api.training import make_config
from coplay.training.devices import Devices
from coplay.training.processes import join
from coplay.training.run import make_game_of
join(sys.argv[1], 2, int(sys.argv[2]))
config = make_config("ppo", "matrix:stag-hunt", {}, {"devices": 2})
devices = Devices(config.run, make_game_of(config))
shared = devices._put(np.arange(4.0), devices._on(PartitionSpec(devices.axis)))
time.sleep(100 * int(sys.argv[2]))
print(devices.here(shared).sum())
"""


@pytest.mark.slow
def test_a_process_that_is_late_is_waited_for() -> None:
    """By more than the 30 seconds that Gloo has for what processes compute together."""
    given = [sys.executable, "-c", LATE, f"127.0.0.1:{free_port()}"]
    variables = os.environ | {"PYTHONPATH": HOME}
    pair = [
        subprocess.Popen([*given, str(index)], stdout=subprocess.PIPE, env=variables)
        for index in range(2)
    ]
    words = [one.communicate(timeout=300)[0].split() for one in pair]  # Gloo prints there, too
    assert [said[-1:] for said in words] == [[b"6.0"], [b"6.0"]]
    assert [one.returncode for one in pair] == [0, 0]


def test_what_does_not_fit_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    config = make_config("ppo", "stag-hunt", {}, {"devices": 4, "seeds": 4})
    with pytest.raises(UserError, match="--devices 4: JAX has"):
        Devices(config.run, make_game_of(config))
    config = make_config("ppo", "stag-hunt", {}, {"devices": 4, "seeds": 10, "copies": 30})
    with pytest.raises(UserError, match="--copies 28 or 32, or --seeds 12"):
        Devices(config.run, make_game_of(config))
    for given, words in (
        (["--coordinator", "there", "--out", "x"], "expected HOST:PORT"),
        (["--coordinator", "127.0.0.1:1", "--out", "x"], "--processes N"),
        (["--coordinator", "127.0.0.1:1"], "the same --out"),
        (["--process", "1"], "need --coordinator"),
    ):
        assert run(["train", "ppo", *given]) == 2
        assert words in capsys.readouterr().err
