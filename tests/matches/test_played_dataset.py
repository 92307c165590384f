"""Datasets of what was played step by step are those of `coplay collect`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coplay
from coplay.cli.main import run
from coplay.core.group import group_players
from coplay.matches.dataset import load_dataset, samples_of
from coplay.matches.episodes import play_steps
from coplay.matches.played_dataset import GrowingDataset, check_keepable
from coplay.training.players import make_player

GAME: Any = coplay.make_game("stag-hunt", height=3, width=3, players=3, hares=2, horizon=6)
ENTRIES = ["human", "nh", "human"]


@pytest.mark.slow
def test_commands_take_what_people_played(tmp_path: Path) -> None:
    """Models of people are trained and looked at, and a player adapts to partners made of them."""
    groups = group_players([make_player(entry, GAME) for entry in ("random", "nh", "random")])
    data = tmp_path / "human"
    kept = GrowingDataset(data, GAME.name, GAME.config, ENTRIES, seed=1)
    steps = list(play_steps(GAME, groups, episodes=10, seed=1))
    for episode in range(10):
        kept.add(GAME, [step for step in steps if step.episode == episode])
    given = ["--data", str(data), "--epochs", "1", "--out"]
    goals, world, pack = (str(tmp_path / name) for name in ("goals", "world", "pack"))
    assert run(["pretrain", "goals", *given, goals]) == 0
    assert run(["inspect", "opponent-model", goals]) == 0
    assert run(["pretrain", "world-model", *given, world]) == 0
    rules = ["--game.height=3", "--game.width=3", "--game.players=3", "--game.hares=2"]
    make = ["partners", "make", *rules, "--game.horizon=6", "--families", "people"]
    assert run([*make, "--people", str(data), "--people-epochs", "2", "--out", pack]) == 0
    adapt = ["adapt", "nh", *rules, "--game.horizon=6", "--partners", pack, "--no-normalise"]
    out = tmp_path / "adapted"
    assert run([*adapt, "--seeds", "1", "--steps", "12", "--last", "6", "--out", str(out)]) == 0
    page = (out / "index.html").read_text()
    assert "people" in page or "pack" in page
    assert "data:image/png" not in page, "pictures of scores that nobody measured are left out"


@pytest.mark.slow
def test_a_dataset_grows_by_whole_episodes(tmp_path: Path) -> None:
    groups = group_players([make_player(entry, GAME) for entry in ("random", "nh", "random")])
    steps = list(play_steps(GAME, groups, episodes=2, seed=1))
    out = tmp_path / "data" / "human"
    kept = GrowingDataset(out, GAME.name, GAME.config, ENTRIES, seed=1)
    for episode in range(2):
        kept.add(GAME, [step for step in steps if step.episode == episode])
        assert len(load_dataset(out).episodes.length) == episode + 1
    assert [path.name for path in out.parent.iterdir()] == ["human"]

    dataset = load_dataset(out)
    assert dataset.kinds == ("human", "nh")
    assert dataset.episodes.kind.tolist() == [[0, 1, 0]] * 2
    rows = samples_of(dataset)
    assert len(rows.kind) == sum(int(step.alive.sum()) for step in steps)
    order = np.lexsort((rows.time, rows.seat, rows.episode))
    assert (order == np.arange(len(order))).all()
    for index in range(len(rows.kind)):
        (step,) = (
            one
            for one in steps
            if one.episode == rows.episode[index] and one.time == rows.time[index]
        )
        seat = int(rows.seat[index])
        assert rows.action[index, 0] == step.actions[seat]
        assert rows.reward[index] == np.float32(step.rewards[seat])
        np.testing.assert_array_equal(rows.planes[index], step.views[seat].observation.planes)
    # Goals of hindsight: every step of who took a hare was after one.
    assert set(rows.goal[rows.kind == 1].tolist()) <= set(range(len(GAME.goals.names)))
    last = dataset.episodes.length - 1
    alive = np.asarray([GAME.alive(step.after) for step in steps if step.over])
    assert dataset.episodes.truncated[np.arange(2), last].tolist() == alive.any(1).tolist()


def test_games_that_cannot_be_kept_say_why() -> None:
    class Endless(type(GAME)):  # type: ignore[misc]
        horizon = None

    with pytest.raises(coplay.UserError, match="how long an episode may be"):
        check_keepable(Endless(GAME.config))
    check_keepable(GAME)
