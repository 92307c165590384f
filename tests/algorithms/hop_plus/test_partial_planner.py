"""Search by the own view alone: what is hidden changes nothing, and what is seen does."""

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.algorithms.hop_plus.partial_planner import PartialPlanner
from coplay.core.compilation import QUICK
from coplay.core.config import with_fields
from coplay.core.errors import UserError
from coplay.core.player import View
from coplay.games.registry import make_game
from coplay.training.play_defaults import playing
from coplay.training.run import load_player
from tests.algorithms.hop_plus.test_partial import GAME, made

SMALL = {
    "planner": "search",
    "search.simulations": 6,
    "search.draws": 4,
    "particles.number": 8,
}


def planner(goals: str = "particle", **fields: Any) -> Any:
    """A player that was not trained, of random numbers."""
    learner = made(GAME, **SMALL | {"particles.goals": goals} | fields)
    learner.check(GAME)
    player = eqx.filter_eval_shape(
        lambda key: learner.player(learner.init(key, jnp.arange(2)), 0), jax.random.key(0)
    )
    numbers = np.random.default_rng(0)
    return jax.tree.map(lambda x: jnp.asarray(numbers.normal(size=x.shape), x.dtype), player)


@partial(jax.jit, compiler_options=QUICK)
def think(player: Any, time: Any, cell: Any, last: Any, memory: Any) -> Any:
    """What it thinks where the two players, the stag and the hare are on these cells, and players
    have done this."""
    start: Any = GAME.reset(jax.random.key(0))
    state = start._replace(
        cell=cell[:2].astype(start.cell.dtype),
        prey=cell[2:].astype(start.prey.dtype),
        last=last.astype(start.last.dtype),
        time=time.astype(start.time.dtype),
        strength=jnp.where(cell[1] > 9, 2.0, 1.0) * jnp.ones(2),
    )
    seen, state = jax.tree.map(lambda x: x[None], (GAME.observe(state), state))
    view = View(
        observation=jax.tree.map(lambda x: x[:, 0], seen),
        alive=jnp.ones(1, bool),
        state=state,
        time=time[None],
        episode=jnp.zeros(1, int),
        last_action=last[:1],
        last_reward=jnp.zeros(1),
    )
    return player.explain(GAME, jax.random.key(5), view, memory)


def course(player: Any, cells: list[tuple[int, ...]]) -> Any:
    """What it thinks in the steps of an episode."""
    memory, found = player.start(1), []
    for time, (cell, last) in enumerate(zip(cells, LASTS, strict=True)):
        given = (jnp.array(time), jnp.array(cell), jnp.array(last))
        logits, memory, insight = think(player, *given, memory)
        found.append((logits, memory, insight))
    return found


ADAPTING: Any = {"steps": 8, "last": 4, "seeds": 1, "normalise": False}
LASTS = [(4, 4), (4, 2), (4, 2)]
TRUE = [(0, 14, 22, 8), (0, 13, 22, 8), (0, 12, 22, 8)]
ELSEWHERE = [(0, 24, 18, 20), (0, 23, 18, 20), (0, 22, 18, 20)]
SEEN = [(0, 14, 22, 8), (0, 13, 22, 8), (0, 6, 22, 8)]


@pytest.mark.parametrize("goals", ["particle", "history"])
def test_what_is_hidden_changes_no_decision(goals: str) -> None:
    """Nor anything that it believes, bit for bit; what is seen changes both."""
    player = planner(goals)
    assert isinstance(player, PartialPlanner)
    true, elsewhere, seen = (course(player, cells) for cells in (TRUE, ELSEWHERE, SEEN))
    for mine, theirs in zip(jax.tree.leaves(true), jax.tree.leaves(elsewhere), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    before, now = ([leg[2].plan.q for leg in found] for found in (true, seen))
    np.testing.assert_array_equal(before[1], now[1])
    assert (before[2] != now[2]).any()


def test_its_particles_are_the_searched_states() -> None:
    """The planner believes what its particles say: the other player where it is seen."""
    _, memory, insight = course(planner(), SEEN)[-1]
    state = GAME.hidden.begin(jax.random.key(0), own(SEEN[-1])).state
    leaves, kind = jax.tree.flatten(state)
    held: Any = jax.tree.unflatten(kind, memory.imagined[: len(leaves)])
    assert (np.asarray(held.cell)[0] == [0, 6]).all()
    assert insight.belief.shape == (1, 1, 3) and np.isclose(insight.belief.sum(), 1)
    np.testing.assert_allclose(insight.action.sum(axis=-1), 1, rtol=1e-5)
    assert set(insight.figures) == {"particles agreeing", "particles worth"}
    assert (np.asarray(insight.plan.visits).sum() == 4 * 6).all()


def own(cells: tuple[int, ...]) -> Any:
    state: Any = GAME.reset(jax.random.key(0))
    cell = jnp.array(cells, state.cell.dtype)
    state = state._replace(cell=cell[:2], prey=cell[2:])
    return jax.tree.map(lambda x: x[0], GAME.observe(state))


@pytest.mark.slow
@pytest.mark.parametrize("keep", [False, True])
def test_beliefs_about_others_last_if_memory_is_kept(keep: bool) -> None:
    player = planner(keep_memory=keep)
    found = course(player, SEEN)
    beginning = (jnp.array(0), jnp.array(SEEN[0]), jnp.array(LASTS[0]))
    again = think(player, *beginning, found[-1][1])
    first, later = found[0][2].belief, again[2].belief
    assert np.allclose(first, later) is not keep
    _, number, _, _ = found[0][1].goals.shape
    assert np.isclose(again[2].figures["particles worth"], number), "states are drawn anew"


def test_what_it_cannot_plan_is_said_before_the_run() -> None:
    for fields, words in (
        ({"plan_while_learning": True}, "not while it learns"),
        ({"plan_over": "model"}, "not while it learns"),
    ):
        with pytest.raises(UserError, match=words):
            made(GAME, planner="search", **fields).check(GAME)
    walled = make_game("stag-hunt", height=6, width=6, walls=2, view=1)
    with pytest.raises(UserError, match=r"game\.walls 0"):
        made(walled, planner="search").check(walled)
    unsaid = make_game("foraging", view=2)
    learner = made(unsaid, planner="search")
    with pytest.raises(UserError, match=r"Game\.hidden"):
        learner.check(unsaid)
    with pytest.raises(UserError, match=r"Game\.hidden"):  # of a run that learned without
        eqx.filter_eval_shape(
            lambda key: learner.player(learner.init(key, jnp.arange(4)), 0), jax.random.key(0)
        )
    assert playing(made(unsaid).config, made(unsaid).play_defaults).planner == "none"
    made(unsaid).check(unsaid)


def test_a_player_takes_the_planner_of_its_configuration() -> None:
    learner = made(GAME)

    def kind(**fields: Any) -> Any:
        config = with_fields(learner.config, fields)
        other = dataclasses.replace(learner, config=config)
        found = eqx.filter_eval_shape(
            lambda key: other.player(other.init(key, jnp.arange(2)), 1), jax.random.key(0)
        )
        return type(found)

    assert kind(planner="search") is kind(planner="one-step") is PartialPlanner
    assert kind(planner="none") is not PartialPlanner


@pytest.mark.slow
def test_a_run_plays_with_search(tmp_path: Path) -> None:
    """By its path: in matches, on other boards of the same views, and in adaptation."""
    small = {"copies": 8, "rollout": 8, "steps": 64, "episodes": 4, "minibatches": 1}
    networks = {
        "network.hidden": (4,),
        "goals.width": 4,
        "goals.opponent_hidden": (8,),
        "recordings.samples": 200,
        "recordings.partners": 1,
        "recordings.habits": 1,
        "recordings.epochs": 1,
        "models.chunk_length": 8,
        "models.batch_chunks": 4,
    }
    folder = tmp_path / "run"
    given: Any = {"view": 1, "horizon": 4}
    coplay.train("hop-plus", "stag-hunt", folder, game_fields=given, **small, **networks)
    fields = "@planner=search@search.simulations=4@search.draws=2@particles.number=8"
    seating = [f"{folder}{fields}", "nh", "nh", "nh"]
    game = make_game("stag-hunt", **given, hares=6)  # another number of hares than in training
    assert isinstance(load_player(seating[0], game, 0), PartialPlanner)
    match = coplay.play(game, seating, episodes=3)
    assert all(np.isfinite(seat["reward"]) for seat in match["seats"])
    step = next(iter(coplay.episodes(game, seating)))
    thought = step.insights[0]
    assert thought is not None and thought.plan is not None
    adapted = coplay.adapt(
        seating[0], seating[1:], game="stag-hunt", game_fields=given, quiet=True, **ADAPTING
    )
    assert np.isfinite(adapted["score"])
