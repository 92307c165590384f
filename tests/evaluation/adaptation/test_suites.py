"""Suites of co-players."""

import pytest

from coplay.core.errors import UserError
from coplay.evaluation.adaptation.places import find_places
from coplay.evaluation.adaptation.suites import LEARNER, SUITES, suite_sets
from coplay.games.registry import make_game


@pytest.mark.parametrize("name", SUITES)
def test_every_set_fills_the_other_seats_with_players_of_the_game(name: str) -> None:
    game = make_game(SUITES[name].game)
    for text in suite_sets(name, game, "ppo"):
        entries = text.split(",")
        find_places(game, SUITES[name].side, len(entries))
        assert LEARNER not in text
        plain = {entry for entry in entries if ":" not in entry and entry != "ppo"}
        assert plain <= {"random", *game.scripted}


def test_wrong_suites_are_named() -> None:
    with pytest.raises(UserError, match="suite 'stag-hunt' is for the game stag-hunt"):
        suite_sets("stag-hunt", make_game("snowdrift"), "ppo")
    with pytest.raises(UserError, match="is for four seats"):
        suite_sets("stag-hunt", make_game("stag-hunt", players=3), "ppo")
    with pytest.raises(UserError, match="stag-hunt"):
        suite_sets("stag-hunts", make_game("stag-hunt"), "ppo")
