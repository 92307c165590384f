"""Runs: files, resume after a kill bit for bit, damaged checkpoints, NaN, switching, seeds."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coplay.api.playing import play
from coplay.api.training import make_config, train
from coplay.cli.main import run as cli
from coplay.core.errors import UserError
from coplay.training import checkpoints
from coplay.training.metrics import describe
from coplay.training.records import read_rows
from coplay.training.run import RunFolder
from coplay.training.trainer import Report, RunStopped, Trainer, Watcher

# 8 copies x 8 steps = 64 game steps per iteration.
SMALL: dict[str, Any] = {
    "copies": 8,
    "rollout": 8,
    "block": 2,
    "network.hidden": (8,),
    "minibatches": 2,
    "epochs": 2,
    "checkpoint_every": 128,
    "episodes": 50,
    "steps": 1024,
}
QUIET: dict[str, Any] = {"quiet": True, "pictures": False}


def arrays(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as data:
        return {name: data[name] for name in data.files if name != checkpoints.NOTE}


def assert_same_arrays(one: Path, other: Path) -> None:
    mine, theirs = arrays(one), arrays(other)
    assert mine.keys() == theirs.keys()
    for name in mine:
        np.testing.assert_array_equal(mine[name], theirs[name], err_msg=name)


def last_checkpoint(folder: Path) -> Path:
    return RunFolder(folder).checkpoints().all()[-1]


def without_times(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    times = ("seconds", "steps_per_second")
    return [{name: value for name, value in row.items() if name not in times} for row in rows]


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    train(**QUIET, out=folder, **SMALL, log="csv")
    return folder


def test_a_run_leaves_everything(whole: Path) -> None:
    assert {path.name for path in whole.iterdir()} >= {
        "config.json",
        "metrics.jsonl",
        "summary.json",
        "tensorboard",
        "checkpoints",
    }
    summary = json.loads((whole / "summary.json").read_text())
    assert summary.keys() >= {
        *("game", "episodes", "team_mean", "seats", "player", "steps", "seconds"),
        *("compile_seconds", "steps_per_second", "parameters"),
    }
    assert summary["steps"] == 1024 and len(summary["seats"]) == 4
    assert summary["seats"][0].keys() == {"player", "reward", "stderr", "steps"}
    rows = read_rows(whole / "metrics.jsonl")
    assert [row["step"] for row in rows] == [64 * (index + 1) for index in range(16)]
    assert len(RunFolder(whole).checkpoints().all()) == 3
    assert (whole / "checkpoints" / "best.npz").exists()
    assert list((whole / "tensorboard").glob("events*"))
    assert len((whole / "metrics.csv").read_text().splitlines()) == 1 + len(rows)


def test_every_logged_metric_is_documented(whole: Path) -> None:
    for name in read_rows(whole / "metrics.jsonl")[0]:
        assert name in ("step", "seed", "seconds") or describe(name), name


def test_tensorboard_shows_the_same_numbers(whole: Path) -> None:
    from tensorboardX.proto import event_pb2

    data = next((whole / "tensorboard").glob("events*")).read_bytes()
    found: dict[tuple[str, int], float] = {}
    place = 0
    while place < len(data):
        length = int.from_bytes(data[place : place + 8], "little")
        event = event_pb2.Event.FromString(data[place + 12 : place + 12 + length])
        place += 16 + length
        for value in event.summary.value:
            assert (value.tag, event.step) not in found, "logged twice"
            found[value.tag, event.step] = value.simple_value
    for row in read_rows(whole / "metrics.jsonl"):
        for name, number in row.items():
            if name not in ("step", "seed", "seconds") and number is not None:
                assert found[name, row["step"]] == pytest.approx(number, rel=1e-5)


def start(folder: Path, *arguments: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "coplay", "train", "ppo", *arguments]
    return subprocess.Popen(command, cwd=folder.parent, stderr=subprocess.PIPE, text=True)


def wait_for_step(folder: Path, step: int, process: subprocess.Popen) -> None:
    deadline = time.time() + 120
    while RunFolder(folder).checkpoints().last_step() < step:
        assert process.poll() is None and time.time() < deadline, process.stderr
        time.sleep(0.01)


LONG = [
    *("--copies", "8", "--rollout", "8", "--block", "2"),
    *("--network.hidden", "8", "--minibatches", "2"),
    *("--epochs", "2", "--checkpoint-every", "128", "--episodes", "50", "--steps", "20480"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)]
)
def test_a_stopped_run_ends_where_an_uninterrupted_one_ends(tmp_path: Path, how: int) -> None:
    straight, cut = tmp_path / "straight", tmp_path / "cut"
    process = start(cut, *LONG, "--out", str(cut))
    wait_for_step(cut, 1000, process)
    os.kill(process.pid, how)
    process.wait()
    stopped_at = RunFolder(cut).checkpoints().last_step()
    assert stopped_at < 20480
    assert not (cut / "summary.json").exists()
    if how == signal.SIGTERM:
        assert process.stderr is not None
        assert process.returncode == 130 and "--resume" in process.stderr.read()
    assert cli(["train", "ppo", "--resume", str(cut), "--json"]) == 0
    assert cli(["train", "ppo", *LONG, "--out", str(straight), "--json"]) == 0
    assert_same_arrays(last_checkpoint(straight), last_checkpoint(cut))
    assert_same_arrays(straight / "checkpoints/best.npz", cut / "checkpoints/best.npz")
    rows = [without_times(read_rows(folder / "metrics.jsonl")) for folder in (straight, cut)]
    assert rows[0] == rows[1]


@pytest.mark.slow
def test_more_steps_give_what_a_longer_run_gives(whole: Path, tmp_path: Path, capsys: Any) -> None:
    short = tmp_path / "short"
    train(**QUIET, out=short, **SMALL | {"steps": 320})
    capsys.readouterr()
    assert cli(["train", "ppo", "--resume", str(short), "--steps", "1024", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 1024
    assert_same_arrays(last_checkpoint(whole), last_checkpoint(short))
    assert RunFolder(short).read_config().run.steps == 1024


def test_resuming_a_finished_run_says_so(whole: Path, capsys: Any) -> None:
    before = (whole / "metrics.jsonl").read_bytes()
    assert cli(["train", "ppo", "--resume", str(whole), "--json"]) == 0
    shown = capsys.readouterr()
    assert "finished" in shown.err and json.loads(shown.out)["steps"] == 1024
    assert (whole / "metrics.jsonl").read_bytes() == before


@pytest.mark.slow
def test_the_same_configuration_gives_the_same_run(whole: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    options = ["--config", str(whole / "config.json"), "--out", str(again), "--json"]
    assert cli(["train", "ppo", *options]) == 0
    assert_same_arrays(last_checkpoint(whole), last_checkpoint(again))
    other = tmp_path / "other"
    options[-2] = str(other)
    assert cli(["train", "ppo", *options, "--seed", "7"]) == 0
    mine, theirs = arrays(last_checkpoint(whole)), arrays(last_checkpoint(other))
    assert any((mine[name] != theirs[name]).any() for name in mine)


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    ["one bit", *(pytest.param(d, marks=pytest.mark.slow) for d in ("cut short", "empty"))],
)
def test_a_damaged_checkpoint_is_passed_over(
    whole: Path, tmp_path: Path, damage: str, capsys: Any
) -> None:
    folder = tmp_path / "run"
    train(**QUIET, out=folder, **SMALL | {"steps": 640})
    newest = last_checkpoint(folder)
    data = bytearray(newest.read_bytes())
    if damage == "one bit":
        data[len(data) // 2] ^= 1
    newest.write_bytes(
        data if damage == "one bit" else data[: len(data) // 2 * (damage != "empty")]
    )
    assert cli(["train", "ppo", "--resume", str(folder), "--steps", "1024", "--json"]) == 0
    assert "damaged checkpoint passed over" in capsys.readouterr().err
    assert_same_arrays(last_checkpoint(whole), last_checkpoint(folder))
    rows = read_rows(folder / "metrics.jsonl")
    assert [row["step"] for row in rows] == [64 * (index + 1) for index in range(16)]


def test_a_run_needs_nothing_that_it_began_with(tmp_path: Path) -> None:
    source, run = tmp_path / "goals", RunFolder(tmp_path / "run")
    source.mkdir()
    (source / "model.npz").write_text("a model")
    config = make_config("hop-plus", "stag-hunt", {}, {"goals.from": str(source)})
    # What a killed start left behind does not count.
    (run.path / "began_with" / "goals").mkdir(parents=True)
    run.write_config(config)
    (source / "model.npz").write_text("another model")
    run.write_config(run.read_config())
    (source / "model.npz").unlink()
    run.path.rename(tmp_path / "moved")
    moved = RunFolder(tmp_path / "moved")
    assert moved.read_config() == config
    own = moved.begun(moved.read_config()).learner
    assert (Path(own.goals.from_) / "model.npz").read_text() == "a model"
    assert tmp_path / "moved" in Path(own.goals.from_).parents and own.world_model.from_ == ""
    for player in ("hop", "hyper-mappo"):
        config = make_config(player, "stag-hunt", {}, {"warm_start": "runs/gone"})
        assert moved.begun(config).learner.warm_start == ""


def test_checkpoints_never_run_code(tmp_path: Path) -> None:
    path = tmp_path / "evil.npz"
    np.savez(path, **{checkpoints.NOTE: np.array([{"a": 1}], dtype=object)})
    with pytest.raises(checkpoints.DamagedCheckpoint):
        checkpoints.load(path, ())


@pytest.mark.slow
def test_nan_stops_the_run_and_names_the_metric(tmp_path: Path, capsys: Any) -> None:
    config = make_config("ppo", "stag-hunt", {}, SMALL | {"optimiser.learning_rate": 1e30})
    with pytest.raises(RunStopped) as stopped:
        Trainer(config, tmp_path / "run", Watcher()).run()
    text = str(stopped.value)
    assert "/seat_" in text and "became" in text and ".npz" in text
    last = arrays(last_checkpoint(tmp_path / "run"))
    assert all(np.isfinite(x).all() for x in last.values() if x.dtype.kind == "f")


@pytest.mark.slow
def test_seeds_are_what_they_are_alone(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    summary = train(**QUIET, out=folder, **SMALL | {"seeds": 3})
    assert [row["seed"] for row in summary["seeds"]] == [0, 1, 2]
    low, high = summary["interval"]
    assert low <= summary["iqm"] <= high
    many, alone = arrays(last_checkpoint(folder)), arrays(last_checkpoint(whole))
    for name in alone:
        np.testing.assert_array_equal(many[name][0], alone[name][0], err_msg=name)
        if "weight" in name and ".learners" in name:
            assert (many[name][1] != many[name][0]).any(), name
    assert {row["seed"] for row in read_rows(folder / "metrics.jsonl")} == {0, 1, 2}
    seats = [f"{folder}@seed=2", f"{folder}@seat=3@best", str(folder), "random"]
    assert play("stag-hunt", ",".join(seats), episodes=20)["episodes"] == 20
    with pytest.raises(UserError, match="seeds"):
        play("stag-hunt", ",".join([f"{folder}@seed=9"] * 4))


class Rewards(Watcher):
    def __init__(self) -> None:
        self.said: list[str] = []
        self.reports: list[Report] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def show(self, report: Report) -> None:
        self.reports.append(report)


@pytest.mark.slow
def test_a_switch_changes_a_seat_and_resumes(tmp_path: Path) -> None:
    fields = SMALL | {"seating": "ns,ppo,ns,nh", "switch": ("512:0=ppo", "512:1=random")}
    watcher = Rewards()
    folder, cut = tmp_path / "run", tmp_path / "cut"
    train(**QUIET, out=folder, watcher=watcher, **fields)
    assert any("ppo,random,ns,nh" in text for text in watcher.said)
    rows = read_rows(folder / "metrics.jsonl")
    assert min(row["step"] for row in rows if row["kl/seat_0"] is not None) == 512 + 64
    assert max(row["step"] for row in rows if row["kl/seat_1"] is not None) == 512
    train(**QUIET, out=cut, **fields | {"steps": 640})
    train(**QUIET, out=cut, resume=True, steps=1024)
    assert_same_arrays(last_checkpoint(folder), last_checkpoint(cut))


@pytest.mark.slow
def test_several_learners_with_their_own_settings(tmp_path: Path) -> None:
    seating = "ppo,ppo:optimiser.learning_rate=0,nh,ns".replace("=0", "=1e-9")
    train(**QUIET, out=tmp_path / "run", **SMALL | {"seating": seating})
    paths = RunFolder(tmp_path / "run").checkpoints()
    weights = {
        name: array
        for name, array in arrays(paths.all()[-1]).items()
        if name.startswith(".learners") and "actor.layers[0].weight" in name
    }
    assert len(weights) == 2
    rows = read_rows(tmp_path / "run" / "metrics.jsonl")
    assert abs(rows[-1]["kl/seat_1"]) < 1e-6 < rows[-1]["kl/seat_0"]
