"""Episodes with what the players thought."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.algorithms.hop.config import HOPConfig
from coplay.algorithms.hop.learner import HOP
from coplay.algorithms.hop.player import HOPPlayer
from coplay.core.config import with_fields
from coplay.core.group import Group, group_players
from coplay.core.trajectory import seat_keys
from coplay.matches.episodes import play_steps
from coplay.matches.match import one_step, record_episode
from coplay.matches.recording import EpisodeRecord, describe, flat_map, record_episodes
from coplay.matches.rollout import new_table, seat_views
from coplay.nn.networks import view_shape
from coplay.training.players import make_player
from tests.reports.thinker import Thinker, thought

GAME = coplay.make_game("stag-hunt", height=3, width=3, players=3, hares=2, horizon=8)
PLAYERS = [Thinker(), make_player("ns", GAME), make_player("nh", GAME)]


@pytest.fixture(scope="module")
def episodes() -> list[EpisodeRecord]:
    return record_episodes(GAME, PLAYERS, 2, 5)


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("fields", [{}, {"search.resample": True}])
def test_figures_are_those_of_the_planner_asked_with_the_same_key(fields: dict[str, bool]) -> None:
    """The game is played on without recording, and HOP is asked before every step."""
    planner = hop_player(fields)
    players = [planner, make_player("ns", GAME), make_player("nh", GAME)]
    groups = group_players(players)
    (episode,) = record_episodes(GAME, players, 1, 3)
    key, reset_key = jax.random.split(jax.random.key(3))
    table = new_table(GAME, groups, reset_key, copies=1)
    explain, step = jax.jit(Group.explain), jax.jit(one_step)
    for record in episode.steps:
        key, step_key = jax.random.split(key)
        keys = seat_keys(jax.random.split(step_key, 3)[1], jnp.arange(GAME.seats))
        seen = jax.vmap(GAME.observe)(table.state)
        views = jax.tree.map(lambda x: x[:1], seat_views(GAME, table.state, seen, table))
        _, _, asked = explain(groups[0], GAME, keys[:1], views, table.memory[0])
        mine = record["seats"][0]
        if mine["alive"]:
            close = partial(np.testing.assert_allclose, atol=2e-4)
            close(mine["belief"], asked.belief[0, 0])
            close(mine["predicted"], asked.action[0, 0])
            close(mine["value"], asked.value[0, 0])
            for action in mine["legal"]:
                close(mine["q"][action], asked.plan.q[0, 0, action])
                assert mine["visits"][action] == asked.plan.visits[0, 0, action]
            config = planner.config.search
            assert sum(mine["visits"]) == config.draws * config.simulations
            assert sum(node[1] for node in mine["tree"]) <= sum(mine["visits"])
        table, action, _, _ = step(GAME, groups, step_key, table, jnp.zeros(1, bool))
        for told, did in zip(record["seats"], action[0], strict=True):
            assert not told["alive"] or told["action"] == did


def hop_player(fields: dict[str, bool]) -> HOPPlayer:
    tiny = {"network.hidden": (8,), "search.simulations": 6, "search.draws": 2, "search.depth": 3}
    config = with_fields(HOPConfig(), tiny | fields)
    hop = HOP(config=config, shape=view_shape(GAME), game_seats=3, seats=(0,), active=(0,))
    return hop.player(jax.jit(lambda: hop.init(jax.random.key(3), jnp.arange(3)))(), 0)
