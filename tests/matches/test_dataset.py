"""Collecting, keeping and packing datasets."""

import json
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.cli.main import run
from coplay.core.errors import UserError
from coplay.games.snowdrift import SnowdriftConfig
from coplay.matches import dataset as module
from coplay.matches.dataset import Dataset, load_dataset, packed, samples_of, save_dataset
from coplay.training.collect import collect

SMALL = {"height": 3, "width": 3, "players": 2, "drifts": 3, "horizon": 6}


@cache
def collected() -> Dataset:
    return collect("snowdrift", SnowdriftConfig(**SMALL), "nd,exploiter", 200, 1)


@pytest.mark.slow
def test_a_dataset_comes_back_as_it_was_kept(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "sd"
    save_dataset(folder, collected())
    again = load_dataset(folder)
    assert (again.kinds, again.game_config) == (("nd", "exploiter"), collected().game_config)
    jax.tree.map(np.testing.assert_array_equal, again.episodes, collected().episodes)
    about = json.loads((folder / "about.json").read_text())
    assert about["samples"] == 200 and about["mix"] == ["nd", "exploiter"]
    assert sum(kind["samples"] for kind in about["kinds"].values()) == 200
    assert about["kinds"]["exploiter"]["actions"]["remove"] == 0
    with pytest.raises(UserError, match="exists already"):
        save_dataset(folder, collected())


def test_nothing_half_written_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(module, "write_json", fail)
    with pytest.raises(OSError, match="disk full"):
        save_dataset(tmp_path / "data", collected())
    assert list(tmp_path.iterdir()) == []


def test_damaged_and_missing_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no dataset"):
        load_dataset(tmp_path / "nothing")
    save_dataset(tmp_path / "data", collected())
    arrays = tmp_path / "data" / "episodes.npz"
    arrays.write_bytes(arrays.read_bytes()[:-200])
    with pytest.raises(UserError, match="collect anew"):
        load_dataset(tmp_path / "data")


def test_seats_are_drawn_from_the_mix_each_on_its_own() -> None:
    kind = collected().episodes.kind
    both = np.bincount(kind[:, 0] * 2 + kind[:, 1], minlength=4)
    assert kind.shape[1] == 2 and both.min() >= 0.1 * both.sum()


@pytest.mark.slow
def test_samples_are_steps_in_the_game_with_their_views() -> None:
    found, rows = collected().episodes, samples_of(collected())
    game = collected().game
    pick = np.random.default_rng(0).integers(len(rows.time), size=12)
    for row in pick:
        episode, seat, time = (int(x[row]) for x in (rows.episode, rows.seat, rows.time))
        assert time < found.length[episode]
        now, after = (
            jax.tree.map(lambda x, at=(episode, t): jnp.asarray(x[at]), found.state)
            for t in (time, time + 1)
        )
        np.testing.assert_array_equal(rows.planes[row], game.observe(now).planes[seat])
        np.testing.assert_array_equal(rows.next_planes[row], game.observe(after).planes[seat])
        ego = np.roll(found.action[episode, time], -seat)
        np.testing.assert_array_equal(rows.action[row], ego)
        assert rows.kind[row] == found.kind[episode, seat]
    # Rows of one life follow each other from its first step on.
    first = np.diff(rows.segment, prepend=-1) != 0
    assert (rows.time[first] == 0).all() and (np.diff(rows.time)[~first[1:]] == 1).all()


def test_packing_cuts_no_life_and_leaves_little_empty() -> None:
    sizes = np.random.default_rng(0).integers(1, 12, size=300)
    segment = np.repeat(np.arange(300), sizes)
    slots = packed(segment, 12)
    filled = slots[slots >= 0]
    assert sorted(filled) == list(range(len(segment)))
    for line in slots:
        rows = line[line >= 0]
        assert (line[: len(rows)] == rows).all()
        for number in np.unique(segment[rows]):
            own = rows[segment[rows] == number]
            assert len(own) == sizes[number] and (np.diff(own) == 1).all()
    assert (slots >= 0).mean() > 0.95


@pytest.mark.slow
def test_collect_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    fields = [f"--game.{name}={value}" for name, value in SMALL.items()]
    command = [
        "collect",
        "--game",
        "snowdrift",
        *fields,
        "--mix",
        "nd,exploiter",
        "--samples",
        "200",
    ]
    assert run([*command, "--seed", "1", "--out", str(tmp_path / "d"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["samples"] == 200
    jax.tree.map(
        np.testing.assert_array_equal, load_dataset(tmp_path / "d").episodes, collected().episodes
    )
    assert run([*command, "--out", str(tmp_path / "d")]) == 2
    assert run([*command, "--mix", "nd,nobody", "--out", str(tmp_path / "e")]) == 2
    assert "nobody" in capsys.readouterr().err and not (tmp_path / "e").exists()
