"""Damaged, bent and oversized files of a stranger: one sentence each; what is whole is used."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import coplay
from coplay.cli.main import run as command
from coplay.core.errors import UserError
from coplay.matches.dataset import load_dataset
from coplay.training import checkpoints
from coplay.training.run import RunFolder
from coplay.training.trainer import Trainer, Watcher
from tests.trust.strangers import changed, make_dataset, make_model, make_run

BAD = {
    "half": b'{"player": "pp',
    "no text": b"\xff\xfe\x00",
    "a list": b"[]",
    "deep": b'{"a":' * 50_000,
    "nothing": b"",
    "null": b"null",
}


def oversized(path: Path) -> None:
    path.unlink(missing_ok=True)
    with open(path, "wb") as file:
        file.truncate(5 << 30)  # no block of it is on the disk


# --- coplay list -------------------------------------------------------------------------------


def test_one_bad_folder_does_not_break_the_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path / "good")
    make_model(tmp_path / "model")
    for name, data in BAD.items():
        make_run(tmp_path / f"bad {name}")
        (tmp_path / f"bad {name}" / "config.json").write_bytes(data)
        make_run(tmp_path / f"summary {name}")
        (tmp_path / f"summary {name}" / "summary.json").write_bytes(data)
    oversized(make_run(tmp_path / "bad size") / "config.json")
    for field, value in {"player": 5, "run": [], "game_name": None}.items():
        make_run(tmp_path / f"bad {field}", **{field: value})
    evil = "[/] [red]x :smile: \x1b]0;owned\x07\x1b[2J\n\x9b"
    make_run(tmp_path / "run [/] [bold]", player=evil, game_name=evil)
    (tmp_path / "good" / "metrics.jsonl").write_bytes(b'{"step": "x"}\n')
    assert command(["list", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert shown.count("damaged: ") == 2 * len(BAD) + 1 + 3 + 1
    assert "\x1b" not in shown and "\x07" not in shown and "\x9b" not in shown
    assert "[red]x" in shown and ":smile:" in shown and "[bold]" in shown
    assert command(["list", str(tmp_path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    runs = [row for row in rows if row["kind"] == "run"]
    assert [row["kind"] for row in rows if row not in runs] == ["model"]
    assert {row["run"] for row in runs if row["damaged"] is None} == {
        str(tmp_path / "run [/] [bold]")
    }


# --- checkpoints -------------------------------------------------------------------------------

Change = Callable[[dict[str, Any]], Any]

NOTES: dict[str, Change] = {
    "negative": lambda note: note.update(iteration=-1, step=-32),
    "another step": lambda note: note.update(iteration=1),
    "no phase": lambda note: note.pop("phase"),
    "phase 7": lambda note: note.update(phase=7),
    "no score": lambda note: note.update(best_score=[]),
    "words": lambda note: note.update(seconds="soon"),
    "nan": lambda note: note.update(seconds=float("nan")),
    "versions": lambda note: note.update(versions=[]),
    "files": lambda note: note.update(files={"metrics.jsonl": {"bytes": "all"}}),
}


def rewritten(path: Path, change: Change) -> None:
    """A checkpoint with another note."""
    with np.load(path) as data:
        arrays = {name: data[name] for name in data.files}
    note = json.loads(arrays[checkpoints.NOTE].tobytes())
    change(note)
    arrays[checkpoints.NOTE] = np.frombuffer(json.dumps(note).encode(), np.uint8)
    np.savez(path, **arrays)


class Heard(Watcher):
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def say(self, text: str) -> None:
        self.words.append(text)


def taken_up(folder: Path) -> tuple[Trainer, str]:
    """A run that is resumed, and what was said."""
    heard = Heard()
    trainer = Trainer(RunFolder(folder).read_config(), folder, heard, resume=True)
    trainer.opened.close()
    return trainer, "\n".join(heard.words)


def test_a_resume_passes_over_what_is_damaged(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    folder = run / "checkpoints"
    good = next(folder.glob("step-*.npz"))
    for number, change in enumerate(NOTES.values(), 70):
        newer = folder / f"step-{number:015d}.npz"
        shutil.copy(good, newer)
        rewritten(newer, change)
    (folder / "step-000000000000099.npz").write_bytes(good.read_bytes()[:500])
    np.savez(folder / "step-000000000000098.npz", a=np.zeros(3))
    (folder / "step-999999999999999999999999.npz").write_bytes(b"")
    (folder / "step-x.npz").write_bytes(b"")
    (folder / "best.npz").write_bytes(b"nothing")
    trainer, said = taken_up(run)
    assert trainer.step == 64 and trainer.best.learners is None and trainer.best.scores == [-np.inf]
    assert said.count("damaged checkpoint passed over") == len(NOTES) + 2
    assert "the best learners so far are lost" in said
    player = coplay.load_run(run).learner(0)
    assert jax.tree.leaves(player)
    with pytest.raises(UserError, match=r"damaged checkpoint: .*leave out @best"):
        coplay.load_run(run, best=True).learner(0)
    good.unlink()
    with pytest.raises(UserError, match=r"no usable checkpoint in .*step-0+99\.npz"):
        taken_up(run)


def test_a_configuration_that_claims_terabytes_takes_no_memory(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    changed(run / "config.json", lambda data: data["learner"].update(hidden=[10**6, 10**6]))
    with pytest.raises(UserError, match="does not fit this program"):
        coplay.load_run(run).learner(0)


# --- datasets and models -----------------------------------------------------------------------

ABOUTS: dict[str, tuple[dict[str, Any], str]] = {
    "form": ({"form": {"a": 1}}, "is of form"),
    "game": ({"game_name": 5}, "'game_name' must be str"),
    "no game": ({"game": None}, "must be an object"),
    "mix": ({"mix": "ns"}, "'mix' must be list"),
    "episodes": ({"episodes": "1"}, "'episodes' must be int"),
    "negative": ({"episodes": -1}, "says -1 episodes"),
    "terabytes": ({"episodes": 10**12}, "arrays differ"),
    "traversal": ({"game_name": "../../stag-hunt"}, "unknown game"),
    "seed": ({"seed": []}, "'seed' must be int"),
}


@pytest.mark.parametrize("name", ABOUTS)
def test_a_dataset_s_description_is_checked(name: str, tmp_path: Path) -> None:
    fields, words = ABOUTS[name]
    with pytest.raises(UserError, match=words):
        load_dataset(make_dataset(tmp_path / "data", **fields))


@pytest.mark.parametrize("name", [*BAD, "size"])
def test_descriptions_that_are_no_json(name: str, tmp_path: Path) -> None:
    data, model = make_dataset(tmp_path / "data"), make_model(tmp_path / "model")
    for path in (data / "about.json", model / "config.json"):
        if name == "size":
            oversized(path)
        else:
            path.write_bytes(BAD[name])
    for arguments in (
        ["pretrain", "goals", "--data", str(data), "--out", str(tmp_path / "new")],
        ["inspect", "goals", str(model)],
    ):
        assert command(arguments) == 2
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "fields", [{"model": 5}, {"fit": None}, {"kinds": 1}, {"data": 3}, {"part": ["x"]}, {"game": 1}]
)
def test_a_model_s_description_is_checked(fields: dict[str, Any], tmp_path: Path) -> None:
    assert command(["inspect", "goals", str(make_model(tmp_path / "model", **fields))]) == 2


def test_a_model_s_dataset_is_not_looked_for_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    model = make_model(Path("model"), data="../private")
    from coplay.reports.inspected import Inspection, _held_out
    from coplay.training.pretrained import PretrainedGoalsConfig, read_pretrained

    about = read_pretrained(model, "goals", PretrainedGoalsConfig)
    with pytest.raises(UserError, match=r"names '\.\./private', which is neither"):
        _held_out(Inspection(model), about)
