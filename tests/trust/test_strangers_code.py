"""Nothing that a stranger's file says is executed, imported, or read or written elsewhere."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import coplay
from coplay.cli.main import run as command
from coplay.core import loading
from coplay.core.errors import UserError
from tests.trust.strangers import changed, make_dataset, make_model, make_run

EVIL = {
    "os.system": {
        "game_name": "pettingzoo:os:system",
        "game": {"options": ["command=touch executed"]},
    },
    "a file of the current folder": {"game_name": "pettingzoo:helpful_env", "game": {}},
    "a battle's module": {
        "game_name": "smac:3m",
        "game": {"options": ["module=helpful_env:parallel_env"]},
    },
    "a library of the current folder": {"game_name": "pettingzoo:mpe2.simple_v3", "game": {}},
}

WAYS: dict[str, Callable[[dict], list[str]]] = {
    "watch": lambda evil: ["watch", str(make_run(Path("run"), **evil))],
    "play": lambda evil: ["play", "--seating", f"{make_run(Path('run'), **evil)},random"],
    "play in another game": lambda evil: [
        *("play", "--game", "stag-hunt", "--game.players", "2"),
        *("--seating", f"{make_run(Path('run'), **evil)},random"),
    ],
    "adapt": lambda evil: ["adapt", str(make_run(Path("run"), **evil)), "--against", "random"],
    "train --resume": lambda evil: [
        *("train", "ppo", "--steps", "128"),
        *("--resume", str(make_run(Path("run"), **evil))),
    ],
    "train --config": lambda evil: [
        *("train", "ppo", "--out", "new"),
        *("--config", str(make_run(Path("run"), **evil) / "config.json")),
    ],
    "a seating that names it": lambda evil: [
        "watch",
        str(seated_with(make_run(Path("run"), **evil))),
    ],
    "pretrain": lambda evil: [
        *("pretrain", "goals", "--out", "new"),
        *("--data", str(make_dataset(Path("data"), **evil))),
    ],
    "inspect": lambda evil: ["inspect", "goals", str(make_model(Path("model"), **evil))],
}


def seated_with(run: Path) -> Path:
    """A good run in which a bad one sits."""
    good = make_run(Path("good"))
    changed(good / "config.json", lambda data: data["run"].update(seating=f"ppo,{run}"))
    return good


@pytest.fixture(autouse=True)
def strange_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A current folder with Python files of the stranger, and a user who named nothing yet."""
    for name in ("_LOADED", "_FOLDERS"):
        monkeypatch.setattr(loading, name, [])
    monkeypatch.setattr(loading, "_NAMED", set())
    monkeypatch.chdir(tmp_path)
    for name in ("helpful_env.py", "mpe2.py", "json.py"):
        Path(name).write_text("open('executed', 'w')\nparallel_env = print\n")
    # As `python -m coplay` has it.
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    for name in [name for name in sys.modules if name.partition(".")[0] == "mpe2"]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.parametrize(
    ("attack", "way"),
    [*(("os.system", way) for way in WAYS), *((attack, "watch") for attack in list(EVIL)[1:])],
)
def test_no_file_decides_what_is_imported(
    attack: str, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = WAYS[way](EVIL[attack])
    assert command(arguments) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "file" in said, said
    assert not Path("executed").exists() and not Path("new").exists()
    assert "helpful_env" not in sys.modules


def test_the_refusal_says_what_to_write(capsys: pytest.CaptureFixture[str]) -> None:
    Path("own_env_here.py").write_text(
        "open('imported', 'w')\nclass parallel_env:\n    def close(self):\n        pass\n"
    )
    run = str(make_run(Path("run"), game_name="pettingzoo:own_env_here", game={}))
    assert command(["watch", run]) == 2
    assert "add --load own_env_here" in capsys.readouterr().err
    assert not Path("imported").exists()
    assert command(["watch", run, "--load", "own_env_here"]) == 2
    assert "has no `possible_agents`" in capsys.readouterr().err, "it is made, and is no game"
    assert Path("imported").exists()


def test_what_a_run_was_loaded_with_is_not_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    loads = [str(Path("helpful_env.py").resolve()), "helpful_env"]
    run = make_run(Path("run"), loads=loads, game_name="strange-game", game={})
    assert command(["watch", str(run)]) == 2
    assert "--load helpful_env if you trust them" in capsys.readouterr().err
    changed(run / "config.json", lambda data: data.update(loads=5))
    assert command(["watch", str(run)]) == 2
    assert "'loads' must be list, not 5" in capsys.readouterr().err
    assert not Path("executed").exists()


def test_a_user_names_a_game_in_python() -> None:
    with pytest.raises(UserError, match=r"coplay\.load\('helpful_env'\)"):
        coplay.load_run(make_run(Path("run"), game_name="pettingzoo:helpful_env", game={}))
    assert not Path("executed").exists()
    with pytest.raises(UserError, match="cannot be made"):
        coplay.make_game("pettingzoo:helpful_env", options=("x=1",))
    assert Path("executed").exists()


# --- elsewhere ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda data, there: data["run"].update(seating=f"ppo,{there}"),
        lambda data, there: data["run"].update(seating=f"ppo,mix:ns:{there}@best"),
        lambda data, there: data["run"].update(switch=[f"8:1={there}"]),
        lambda data, there: data["run"].update(seating=f"ppo,{os.path.relpath(there)}"),
    ],
)
def test_paths_in_a_configuration_stay_near(
    change: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = make_run(tmp_path / "private" / "run")
    (tmp_path / "downloads").mkdir()
    monkeypatch.chdir(tmp_path / "downloads")
    run = make_run(Path("run"))
    changed(run / "config.json", lambda data: change(data, there))
    with pytest.raises(UserError, match=r"neither below the current folder nor beside .* --load"):
        coplay.load_run(run)
    coplay.load(f"{tmp_path / 'private'}/")
    assert coplay.load_run(run).config.player == "ppo"


def test_runs_beside_each_other_may_name_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = make_run(tmp_path / "pool" / "one"), make_run(tmp_path / "pool" / "other")
    changed(one / "config.json", lambda data: data["run"].update(seating=f"ppo,{other}"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert coplay.load_run(one).config.run.seating == f"ppo,{other}"


@pytest.mark.parametrize(
    "name", ["metrics.jsonl", "summary.json", "config.json", "checkpoints", "tensorboard", "x"]
)
def test_links_out_of_a_run_are_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, outside = make_run(tmp_path / "run"), tmp_path / "outside"
    outside.write_text("do not touch")
    if (run / name).is_dir():
        (run / name).rename(tmp_path / "there")
    else:
        (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(outside if (name != "checkpoints") else tmp_path / "there")
    for arguments in (["watch", str(run)], ["train", "ppo", "--resume", str(run)]):
        assert command(arguments) == 2
        assert "is a link that leads out of" in capsys.readouterr().err
    assert outside.read_text() == "do not touch"
    assert command(["list", str(tmp_path)]) == 0


def test_a_new_run_writes_through_no_link(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("new").mkdir()
    (tmp_path / "outside").write_text("do not touch")
    Path("new/metrics.jsonl").symlink_to(tmp_path / "outside")
    assert command(["train", "ppo", "--out", "new", "--steps", "8"]) == 2
    assert "is a link that leads out of" in capsys.readouterr().err
    assert (tmp_path / "outside").read_text() == "do not touch"
