"""Episodes with what the players thought."""

import jax
import numpy as np
import pytest

import coplay
from coplay.core.group import group_players
from coplay.matches.episodes import play_steps
from coplay.matches.match import record_episode
from coplay.matches.recording import EpisodeRecord, describe, flat_map, record_episodes
from coplay.training.players import make_player
from tests.reports.thinker import Thinker, thought

GAME = coplay.make_game("stag-hunt", height=3, width=3, players=3, hares=2, horizon=8)
PLAYERS = [Thinker(), make_player("ns", GAME), make_player("nh", GAME)]


@pytest.fixture(scope="module")
def episodes() -> list[EpisodeRecord]:
    return record_episodes(GAME, PLAYERS, 2, 5)


def test_records_hold_what_was_played_and_thought(episodes: list[EpisodeRecord]) -> None:
    assert [episode.number for episode in episodes] == [0, 1]
    steps = list(play_steps(GAME, group_players(PLAYERS), 2, 5))
    records = [record for episode in episodes for record in episode.steps]
    surprises = []
    for step, record in zip(steps, records, strict=True):
        assert (record["episode"], record["time"]) == (step.episode, step.time)
        for seat, told in enumerate(record["seats"]):
            assert told["alive"] == step.alive[seat]
            if not told["alive"]:
                assert told == {"alive": False}
                continue
            assert told["action"] == step.actions[seat]
            np.testing.assert_allclose(told["policy"], step.probabilities[seat], atol=1e-4)
            assert told["legal"] == np.flatnonzero(step.views[seat].observation.legal).tolist()
        mine = record["seats"][0]
        if not mine["alive"]:
            continue
        view = jax.tree.map(lambda x: np.asarray(x)[None], step.views[0])
        asked = thought(GAME, view)
        assert asked.belief is not None and asked.action is not None
        assert asked.value is not None and asked.plan is not None
        np.testing.assert_allclose(mine["belief"], asked.belief[0], atol=1e-4)
        np.testing.assert_allclose(mine["predicted"], asked.action[0], atol=1e-4)
        np.testing.assert_allclose(mine["value"], asked.value[0], atol=1e-4)
        for other, surprise in enumerate(mine["surprise"]):
            who = 1 + other
            if step.alive[who]:
                p = asked.action[0][other][step.actions[who]]
                np.testing.assert_allclose(surprise, -np.log(p), atol=1e-3)
                surprises.append((step.episode, surprise))
            else:
                assert surprise is None
        for part in ("visits", "q"):
            asked_for = [getattr(asked.plan, part)[0, action] for action in mine["legal"]]
            assert [mine[part][action] for action in mine["legal"]] == asked_for
        assert mine["variation"] == [1, 0]
        assert list(mine["figures"]) == ["<i>drift"]
    for episode in episodes:
        mean = np.mean([value for number, value in surprises if number == episode.number])
        np.testing.assert_allclose(episode.surprise, mean, rtol=1e-6)


def test_what_a_player_lacks_is_left_out(episodes: list[EpisodeRecord]) -> None:
    scripted = episodes[0].steps[0]["seats"][1]
    parts = ("belief", "predicted", "surprise", "value", "q", "visits", "tree", "figures")
    assert not [part for part in parts if part in scripted]
    about = describe(GAME, PLAYERS, ["a", "b", "c"], 5)
    assert "candidates" not in about["seats"][1] and len(about["seats"][0]["map"]) == 3


def test_goals_are_those_of_hindsight(episodes: list[EpisodeRecord]) -> None:
    shown = 0
    for episode in episodes:
        for seat in range(GAME.seats):
            told = [step["seats"][seat] for step in episode.steps if step["seats"][seat]["alive"]]
            realised = [one["realised"] for one in told if "realised" in one]
            # In the stag hunt a player leaves with its first catch: it was after this all the time.
            assert [one.get("goal", -1) for one in told] == [*realised, -1][:1] * len(told)
            shown += len(realised)
    assert shown


def test_the_same_game_is_played_without_recording(episodes: list[EpisodeRecord]) -> None:
    plain = record_episode(GAME, group_players(PLAYERS), 5)
    np.testing.assert_array_equal(episodes[0].actions, plain.actions)
    np.testing.assert_array_equal(episodes[0].rewards, plain.rewards)
    for mine, theirs in zip(episodes[0].states, plain.states, strict=True):
        jax.tree.map(np.testing.assert_array_equal, mine, theirs)


def test_a_map_keeps_distances_of_codes_on_a_plane() -> None:
    codes = np.array([[0.0, 3.0, 0.0], [4.0, 0.0, 0.0], [0.0, 0.0, 0.0], [2.0, 1.0, 0.0]])
    flat = flat_map(codes)
    apart = np.linalg.norm(codes[:, None] - codes[None], axis=-1)
    np.testing.assert_allclose(np.linalg.norm(flat[:, None] - flat[None], axis=-1), apart)
    assert flat_map(np.ones((1, 4))).shape == (1, 2)
