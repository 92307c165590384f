"""Cross-play: cells against single matches, one program for players alike, the command."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import coplay
from coplay.cli.main import run as cli
from coplay.core.errors import UserError
from coplay.evaluation.cross_play import _cell, cross_play, expand_seeds
from coplay.matches.match import Match, _play_episodes
from coplay.training.run import RunFolder, load_players, make_game_of

pytestmark = pytest.mark.slow

SMALL: dict[str, Any] = {
    "copies": 8,
    "rollout": 8,
    "block": 2,
    "network.hidden": (8,),
    "minibatches": 2,
    "epochs": 1,
    "episodes": 10,
    "steps": 128,
    "optimiser.learning_rate": 0.05,
}
FIELDS = {"height": 3, "width": 3, "players": 3, "horizon": 6}
EPISODES = 40


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Self-play of two seeds; and one seat that learns among a mix."""
    folder = tmp_path_factory.mktemp("cross")
    one, other = str(folder / "one"), str(folder / "other")
    mix = "mix:ns:nh:random"
    coplay.train("ppo", out=one, game_fields=FIELDS, **SMALL, seeds=2, pictures=False)
    coplay.train(
        "ppo", out=other, game_fields=FIELDS, **SMALL, seating=f"{mix},ppo,{mix}", pictures=False
    )
    return one, other


def test_every_cell_is_what_matches_give(runs: tuple[str, str]) -> None:
    one, other = runs
    game = make_game_of(RunFolder(Path(one)).read_config())
    play: Any = _play_episodes
    programs = play._cache_size()
    result = cross_play(game, runs, EPISODES, seed=3)
    assert play._cache_size() == programs + 1, "players alike need one program"
    names = [f"{one}@seed=0", f"{one}@seed=1", other]
    assert result.players == names and result.episodes == 42
    for row, column in ((0, 1), (2, 0)):
        mine, theirs = [], []
        for seat in range(3):
            entries = [names[column]] * 3
            # In the second run somebody learned in seat 1 only.
            entries[seat] = names[row] + "@seat=1" * (row == 2)
            record = coplay.play(game, ",".join(entries), 14, seed=3 + seat)
            rewards = [s["reward"] for s in record["seats"]]
            mine.append(rewards.pop(seat))
            theirs.append(np.mean(rewards))
        np.testing.assert_allclose(result.reward[row, column], np.mean(mine), atol=1e-6)
        np.testing.assert_allclose(result.others[row, column], np.mean(theirs), atol=1e-6)
    assert np.ptp(result.reward) > 0


def test_means_and_errors_of_a_cell() -> None:
    rng = np.random.default_rng(0)
    rewards = rng.normal(size=(3, 5, 3))
    mean, error, others, others_error = _cell([Match(x, x) for x in rewards])
    focal = np.array([[rewards[seat, e, seat] for e in range(5)] for seat in range(3)])
    rest = (rewards.sum(2) - focal) / 2
    for values, found, wrong in ((focal, mean, error), (rest, others, others_error)):
        assert found == pytest.approx(values.mean())
        each = [np.std(row, ddof=1) ** 2 / 5 for row in values]
        assert wrong == pytest.approx(np.sqrt(sum(each) / 9))


def test_players_of_a_run_for_all_seats(runs: tuple[str, str]) -> None:
    config = RunFolder(Path(runs[0])).read_config()
    players = load_players(runs[0], make_game_of(config))
    weights = [np.asarray(player.actor.head.weight) for player in players]  # type: ignore
    assert (weights[0] != weights[1]).any() and (weights[1] != weights[2]).any()


def test_the_command(runs: tuple[str, str], tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "cross.png"
    arguments = ["play", "--cross", f"{runs[0]}@seed=1", runs[1], "--episodes", "42"]
    assert cli([*arguments, "--json", "--out", str(out)]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["players"] == [f"{runs[0]}@seed=1", runs[1]]
    for name in ("reward", "stderr", "others", "others_stderr"):
        assert np.shape(record[name]) == (2, 2)
    with Image.open(out) as picture:
        assert picture.size[0] > 600
    assert cli(arguments) == 0
    table = capsys.readouterr().out
    assert "42 episodes" in table and f"{record['reward'][0][1]:.2f}" in table


def test_a_run_in_a_mix(runs: tuple[str, str], capsys: Any) -> None:
    seating = f"mix:{runs[0]}@seed=1:{runs[1]}@seat=1,ns,nh"
    assert cli(["play", "--seating", seating, "--episodes", "20", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["seats"][0]["player"] == seating.split(",")[0]


def test_errors(runs: tuple[str, str], capsys: Any) -> None:
    with pytest.raises(UserError, match="twice"):
        expand_seeds([runs[0], f"{runs[0]}@seed=1"])
    assert cli(["play"]) == 2
    assert "--seating" in capsys.readouterr().err
    assert cli(["play", "--cross", runs[1], "ns", "--episodes", "5"]) == 2
    assert "at least 2" in capsys.readouterr().err
    assert cli(["play", "--cross", runs[1], "ns", "--out", "picture.txt"]) == 2
    assert ".png" in capsys.readouterr().err
