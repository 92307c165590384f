"""The command line: the commands of the README in small, help, and errors before work starts."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from coplay.cli.main import run

SMALL = [
    *("--copies", "8", "--rollout", "8", "--block", "2"),
    *("--network.hidden", "8", "--minibatches", "2"),
    *("--epochs", "2", "--episodes", "50", "--steps", "512"),
]


def call(*arguments: str) -> int:
    try:
        return run(list(arguments))
    except SystemExit as stop:  # the parser's own way out
        return int(stop.code or 0)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "runs" / "ppo"
    assert call("train", "ppo", *SMALL, "--out", str(folder)) == 0
    return folder


@pytest.mark.slow
def test_training_shows_progress_results_and_what_to_try_next(tmp_path: Path, capsys: Any) -> None:
    folder = tmp_path / "run"
    assert call("train", "ppo", *SMALL, "--out", str(folder)) == 0
    shown = capsys.readouterr()
    assert "steps/s" in shown.err and "left" in shown.err and "seats" in shown.err
    for text in ("team", "random", "ns", "nh", "what to try next", "coplay watch"):
        assert text in shown.out
    with Image.open(folder / "learning_curve.png") as picture:
        assert picture.size == (900, 540)
    with Image.open(folder / "episode.gif") as film:
        assert film.n_frames > 1  # type: ignore[attr-defined]


def test_play_prints_one_json_object(capsys: Any) -> None:
    arguments = ["--seating", "random,ns,nh,ns", "--episodes", "40", "--json"]
    assert call("play", "--game", "stag-hunt", *arguments) == 0
    out = capsys.readouterr().out
    record = json.loads(out)
    assert out.count("\n") == 1
    assert record.keys() == {"game", "episodes", "team_mean", "seats"}
    assert record["episodes"] == 40
    assert [seat["player"] for seat in record["seats"]] == ["random", "ns", "nh", "ns"]
    rewards = [seat["reward"] for seat in record["seats"]]
    assert record["team_mean"] == pytest.approx(sum(rewards) / 4, abs=1e-6)
    assert call("play", "--game", "stag-hunt", *arguments) == 0
    assert capsys.readouterr().out == out


@pytest.mark.slow
def test_a_run_sits_in_seats_beside_scripted_players(trained: Path, capsys: Any) -> None:
    seating = f"{trained},{trained}@seat=3,ns,switcher:ns:nh:step=8"
    assert call("play", "--seating", seating, "--episodes", "20", "--greedy", "--json") == 0
    assert json.loads(capsys.readouterr().out)["seats"][0]["player"] == str(trained)


@pytest.mark.slow
def test_adapt_by_gradient(trained: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "adapt"
    call_where = [str(trained), "--against", "nh,switcher:nh:ns:episode=2,random", "--learn"]
    small = ["--steps", "112", "--last", "80", "--seeds", "2", "--rollout", "16"]
    arguments = ["adapt", *call_where, *small, "--no-normalise", "--out", str(out), "--json"]
    assert call(*arguments) == 0
    result = json.loads(capsys.readouterr().out)
    assert {"score", "normalised", "random", "best_response", "episodes_to_90"} <= result.keys()
    assert {"steps_to_90", "interval", "curve", "against", "cumulative"} <= result.keys()
    assert result["learns"]["policy"] and result["learns"]["learner"]["minibatches"] == 1
    assert len(result["scores"]) == 8 and result["normalised"] is None
    assert json.loads((out / "adapt.json").read_text()) == result
    assert len(list(out.glob("sets/*.png"))) == len(list(out.glob("sets/*.csv"))) == 1
    assert call(*arguments) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out) == result and "kept from before" in shown.err
    assert call(*arguments, "--seed", "1") == 2
    assert "other settings" in capsys.readouterr().err
    assert call("adapt", *call_where, "--learn-opponents") == 2
    assert "no opponent models" in " ".join(capsys.readouterr().err.split())
    assert call("adapt", *call_where, "--fields", "optimiser.learning_rat=1") == 2
    assert "learning_rate" in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_watch(trained: Path, tmp_path: Path, capsys: Any) -> None:
    assert call("watch", str(trained), "--out", str(tmp_path / "e.gif")) == 0
    with Image.open(tmp_path / "e.gif") as film:
        assert film.n_frames > 1  # type: ignore[attr-defined]
    capsys.readouterr()
    assert call("watch", str(trained)) == 0
    shown = capsys.readouterr().out
    assert "t 0/35" in shown and "reward" in shown
    page, against = tmp_path / "replay.html", ("--against", "ns,nh,random")
    assert call("watch", str(trained), *against, "--out", str(page)) == 0
    assert "Content-Security-Policy" in page.read_text()
    capsys.readouterr()
    assert call("watch", str(trained), *against, "--pick", "surprising") == 2
    assert "no player of this seating predicts" in " ".join(capsys.readouterr().err.split())
    assert call("watch", str(trained), *against, "--json") == 0
    about, *steps = map(json.loads, capsys.readouterr().out.splitlines())
    assert about["kind"] == "replay" and steps[-1]["kind"] == "end"


@pytest.mark.slow
def test_list(trained: Path, capsys: Any) -> None:
    assert call("list", str(trained.parent), "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["run"] for row in rows] == [str(trained)]
    assert rows[0]["finished"] and rows[0]["team_mean"] is not None and rows[0]["step"] == 512
    assert call("list", str(trained.parent)) == 0
    assert "finished" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    [[], ["train"], ["train", "ppo"], ["play"], ["adapt"], ["watch"], ["list"], ["bench"]],
    ids=lambda command: " ".join(command) or "coplay",
)
def test_help(command: list[str], capsys: Any) -> None:
    assert call(*command, "--help") == 0
    assert "coplay" in capsys.readouterr().out


def test_help_explains_every_field(capsys: Any) -> None:
    from coplay.algorithms.ppo.config import PPOConfig
    from coplay.core.config import leaves
    from coplay.games.stag_hunt import StagHuntConfig
    from coplay.training.config import RunConfig

    call("train", "ppo", "--help-all")
    shown = capsys.readouterr().out
    for kind, prefix in ((StagHuntConfig, "game."), (PPOConfig, ""), (RunConfig, "")):
        for field in leaves(kind()):
            name = f"--{prefix}{field.path.replace('_', '-')}"
            assert name in shown, name
            after = re.split(r"\n  --|\(default", shown.split(name, 1)[1], maxsplit=1)[0]
            words = [word for word in after.split() if word.strip(".;,:").isalpha()]
            assert len(words) >= 3, f"{name} is not explained"


BAD = [
    (["trian", "ppo"], "did you mean 'train'"),
    (["train", "pppo"], "did you mean 'ppo'"),
    (["train", "ppo", "--game", "stag-hnt"], "did you mean 'stag-hunt'"),
    (["train", "ppo", "--game.heigth", "5"], "--game.height"),
    (["train", "ppo", "--optimiser.learning-rat", "1"], "--optimiser.learning-rate"),
    (["train", "ppo", "--steps", "many"], "many"),
    (["train", "ppo", "--parameters", "seperate"], "seperate"),
    (["train", "ppo", "--optimiser.learning-rate", "-1"], "learning_rate must be above 0"),
    (["train", "ppo", "--steps", "0"], "steps must be above 0"),
    (["train", "ppo", "--copies", "6"], "multiple of minibatches"),
    (["train", "ppo", "--seating", "ppo,ns"], "4 seats"),
    (["train", "ppo", "--seating", "ppo,ns,ns,nz"], "did you mean 'n"),
    (["train", "ppo", "--seating", "ns,ns,ns,ns"], "nobody learns"),
    (["train", "ppo", "--seating", "ppo:optimiser.learning_rat=1,ns,ns,ns"], "learning_rate"),
    (["train", "ppo", "--seating", "runs/none,ppo,ns,ns"], "holds no run"),
    (["train", "ppo", "--switch", "200000:7=ppo"], "seats are 0 to 3"),
    (["train", "ppo", "--switch", "soon:0=ppo"], "STEP:SEAT=PLAYER"),
    (["train", "ppo", "--switch", "9000000:0=ns"], "ends at step"),
    (["train", "ppo", "--game.height", "2", "--game.width", "2"], "board too small"),
    (["train", "ppo", "--resume", "runs/none"], "holds no run"),
    (["train", "ppo", "--config", "none.json"], "cannot read"),
    (["play", "--seating", "ns,ns,ns"], "4 seats"),
    (["play", "--seating", "ns,ns,ns,ppo"], "learns"),
    (["play", "--seating", "ns,ns,ns,switcher:ns:nh:8"], "step=N"),
    (["play", "--seating", "ns,ns,ns,ns", "--episodes", "0"], "above 0"),
    (["adapt", "ns"], "one of --against A,B,C, --suite"),
    (["adapt", "--against", "ns,ns,ns"], "comes before the options"),
    (["adapt", "ns", "--against", "ns,ns"], "3 seats beside"),
    (["adapt", "ns", "--against", "ns,ns,nz"], "did you mean 'n"),
    (["adapt", "runs/none", "--against", "ns,ns,ns"], "holds no run"),
    (["adapt", "ppo", "--against", "ns,ns,ns"], "no player yet"),
    (["adapt", "ns", "--against", "ns,ns,ns", "--learn"], "nothing that could learn"),
    (["adapt", "ns", "--against", "ns,ns,ns", "--last", "2401"], "must not be above steps"),
    (["adapt", "ns", "--against", "ns,ns,ppo:minibatches=4"], "minibatches must be 1"),
    (["adapt", "ns", "--suite", "stag-hnt"], "did you mean 'stag-hunt'"),
    (["adapt", "ns", "--suite", "snowdrift"], "is for the game snowdrift"),
    (["watch", "runs/none"], "holds no run"),
    (["list", "nowhere"], "no folder"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=lambda x: " ".join(x)[:50])
def test_errors_come_before_work_and_leave_nothing(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    if arguments[0] == "train" and "--resume" not in arguments:
        arguments = [*arguments, "--out", "runs/new"]
    assert call(*arguments) == 2
    shown = capsys.readouterr()
    assert message in " ".join(shown.err.split()), shown.err
    assert "Traceback" not in shown.err and not shown.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_errors_about_existing_runs(trained: Path, capsys: Any, tmp_path: Path) -> None:
    before = sorted(path.stat().st_mtime_ns for path in trained.rglob("*"))
    for arguments, message in [
        (["train", "ppo", *SMALL, "--out", str(trained)], "already holds a run"),
        (["train", "ppo", "--resume", str(trained), "--clip", "0.3"], "keeps its configuration"),
        (["train", "ppo", "--resume", str(trained), "--steps", "128"], "is the total"),
        (["play", "--game.height", "8", "--seating", f"{trained},ns,ns,ns"], "different game"),
        (["play", "--seating", f"{trained}@seed=4,ns,ns,ns"], "seeds"),
        (["play", "--seating", f"{trained}@seet=4,ns,ns,ns"], "seat=N"),
        (["play", "--seating", f"{trained}@seat=9,ns,ns,ns"], "nobody learned in seat 9"),
        (["watch", str(trained), "--out", str(tmp_path / "e.avi")], ".gif"),
    ]:
        assert call(*arguments) == 2, arguments
        assert message in " ".join(capsys.readouterr().err.split()), arguments
    assert sorted(path.stat().st_mtime_ns for path in trained.rglob("*")) == before


@pytest.mark.slow
def test_a_broken_configuration_names_the_field(trained: Path, tmp_path: Path, capsys: Any) -> None:
    data = json.loads((trained / "config.json").read_text())
    for section, name, value, message in [
        ("learner", "discont", 1, "discount"),
        ("run", "steps", "many", "steps must be int"),
        ("game", "heigth", 4, "height"),
        ("learner", "parameters", "seperate", "separate"),
    ]:
        broken = json.loads(json.dumps(data))
        broken[section][name] = value
        path = tmp_path / "config.json"
        path.write_text(json.dumps(broken))
        assert call("train", "ppo", "--config", str(path), "--out", str(tmp_path / "run")) == 2
        assert message in capsys.readouterr().err
        assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_output_may_be_cut_off_by_its_reader() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "coplay", "train", "ppo", "--help"],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
        )
    finally:
        os.close(writer)
    assert ended.returncode == 1 and ended.stderr == ""
