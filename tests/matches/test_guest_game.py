"""People in seats: their choices are carried out, and everybody else plays as always."""

import numpy as np
import pytest

import coplay
from coplay.core.group import group_players
from coplay.matches.episodes import play_steps
from coplay.matches.guest_game import GuestGame
from coplay.training.players import make_player

GAME = coplay.make_game("matrix:public-goods", players=3, rounds=3)


def test_without_people_the_same_games_are_played() -> None:
    entries = "random", next(iter(GAME.scripted)), "random"
    players = [make_player(entry, GAME) for entry in entries]
    expected = list(play_steps(GAME, group_players(players), episodes=2, seed=4))
    guests = GuestGame(GAME, players, seed=4)
    found = []
    for _ in range(2):
        guests.begin()
        while not guests.over:
            found.append(guests.step({}))
    assert guests.episodes == 2 and len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert (one.episode, one.time, one.over) == (other.episode, other.time, other.over)
        np.testing.assert_array_equal(one.actions, other.actions)
        np.testing.assert_array_equal(one.probabilities, other.probabilities)


def test_a_person_chooses_among_the_legal_actions() -> None:
    guests = GuestGame(GAME, [make_player("random", GAME), None, make_player("random", GAME)])
    guests.begin()
    assert guests.people == (1,)
    thoughts = guests.thoughts()
    assert "policy" in thoughts[0] and "policy" not in thoughts[1]
    assert "action" not in thoughts[0] and thoughts[1]["legal"] == guests.legal(1)
    for wrong in ({}, {1: GAME.actions}, {0: 0}):
        with pytest.raises(coplay.UserError, match="seat 1 must choose one of"):
            guests.step(wrong)
    for action in guests.legal(1)[:2]:
        if guests.over:
            break
        assert guests.step({1: action}).actions[1] == action

    guests.begin()  # what was not finished does not count
    assert guests.steps == [] and guests.episodes == 0
