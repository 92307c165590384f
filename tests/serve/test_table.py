"""The game of people and players, as it is told to pages."""

from pathlib import Path
from typing import Any

import pytest

import coplay
from coplay.matches.dataset import load_dataset
from coplay.matches.played_dataset import GrowingDataset
from coplay.serve.references import HUMAN, candidates, measured
from coplay.serve.table import GuestTable
from coplay.training.players import make_player

GAME: Any = coplay.make_game("matrix:prisoners-dilemma", players=2, rounds=2)
ENTRIES = [HUMAN, "tit-for-tat"]


def test_a_game_is_told_and_kept(tmp_path: Path) -> None:
    out = tmp_path / "human"
    kept = GrowingDataset(out, GAME.name, GAME.config, ENTRIES, seed=0)
    table = GuestTable(GAME, [None, make_player("tit-for-tat", GAME)], ENTRIES, 0, kept)
    table.warm_up()
    assert not out.exists() and table.rewards == [], "what is tried out is not kept"
    begun = table.begin()
    assert table.about["recorded"] == str(out) and table.about["seats"][0]["person"]
    assert "policy" in begun["thoughts"][1] and "policy" not in begun["thoughts"][0]
    seen = table.told(begun, 0, thinking=False)["thoughts"]
    assert seen[1] == {"alive": True} and "legal" in seen[0]
    assert table.told(begun, 0, thinking=True) == begun

    who = {"kind": "who", "seats": [{"seat": 0, "taken": True}], "awaited": []}
    assert table.told(who, 1, thinking=False) == who

    first = table.step({0: 1})
    assert [seat["action"] for seat in first["seats"]] == [1, 0] and not first["over"]
    told = table.told(first, 0, thinking=False)
    assert told["seats"][1] == {"alive": True, "action": 0, "reward": 0.0}
    assert table.step({0: 1})["over"]
    end = table.end()
    assert end["rewards"] == [6.0, 1.0] == end["means"] and end["unrecorded"] is None
    assert "<html" in table.replays[1] and end["replay"] == "/replay/1"

    dataset = load_dataset(out)
    assert dataset.kinds == (HUMAN, "tit-for-tat")
    assert dataset.episodes.action[0].tolist() == [[1, 0], [1, 1]]


@pytest.mark.slow
def test_others_are_measured_in_the_seat_of_a_person() -> None:
    names = candidates(GAME, ENTRIES)
    assert "always-defect" in names and HUMAN not in names
    found = measured(GAME, ENTRIES, "always-defect", episodes=2)
    assert found["seats"][0]["reward"] == 6.0 and found["seats"][1]["player"] == "tit-for-tat"


def test_where_views_are_partial_the_board_is_hidden() -> None:
    game = coplay.make_game("hidden-kind")
    assert not game.full_view
    table = GuestTable.__new__(GuestTable)
    table.game = game
    news = {"kind": "begin", "board": {"drawn": {"players": []}, "icons": {}}}
    assert table.told(news, 0, thinking=True)["board"] == {"drawn": None, "icons": {}}
