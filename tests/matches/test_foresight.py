"""What HOP+ and HyperMAPPO tell of a step beside beliefs: boards of their models, contexts."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.algorithms.hop_plus.config import HopPlusConfig
from coplay.algorithms.hop_plus.learner import HopPlus
from coplay.algorithms.hop_plus.player import HopPlusPlayer
from coplay.algorithms.mappo.hyper import HyperMAPPO
from coplay.core.config import with_fields
from coplay.core.game import require_horizon
from coplay.core.group import group_players
from coplay.games.registry import make_game
from coplay.matches.episodes import Step, play_steps
from coplay.matches.match import record_episode
from coplay.matches.recording import record_episodes
from coplay.models.world_model_game import ImaginedGame, imagined_state
from coplay.nn.networks import view_shape
from coplay.training.players import make_player
from tests.algorithms.mappo.teams import GAME as TEAM_GAME
from tests.algorithms.mappo.teams import team, wide

GAME = make_game("stag-hunt", height=3, width=3, players=3, hares=2, horizon=6)
SMALL: dict[str, Any] = {
    "network.hidden": (8,),
    "goals.dim": 2,
    "goals.prototypes": 3,
    "goals.opponent_hidden": (6,),
    "world_model.channels": 6,
    "planner": "search",
    "plan_over": "model",
    "search.simulations": 12,
    "search.draws": 2,
}


@pytest.fixture(scope="module")
def planner() -> HopPlusPlayer:
    """An untrained HOP+ whose world model moves players about."""
    config = with_fields(HopPlusConfig(), SMALL)
    learner = HopPlus(config=config, shape=view_shape(GAME), game_seats=3, seats=(0,), active=(0,))
    state = jax.jit(lambda: learner.init(jax.random.key(3), jnp.arange(3)))()
    rng = np.random.default_rng(0)
    world = jax.tree.map(
        lambda x: jnp.asarray(x + 0.3 * rng.normal(size=x.shape), x.dtype), state.world
    )
    return learner.player(state._replace(world=world), 0)


def as_planes(cells: list, shape: tuple[int, ...]) -> np.ndarray:
    """Cells [row, column] or [row, column, number] of each plane as an array."""
    board = np.zeros(shape)
    for index, plane in enumerate(cells):
        for row, column, *value in plane:
            board[row, column, index] = value[0] if value else 1.0
    return board


@pytest.mark.slow
def test_boards_are_those_of_the_world_model(planner: HopPlusPlayer) -> None:
    players = [planner, make_player("ns", GAME), make_player("nh", GAME)]
    (record,) = record_episodes(GAME, players, 1, 3)
    steps = list(play_steps(GAME, group_players(players), 1, 3))
    assert planner.world is not None
    plain = record_episode(GAME, group_players(players), 3)
    np.testing.assert_array_equal(record.actions, plain.actions)
    looked_at = 0
    for step, told in zip(steps, record.steps, strict=True):
        mine = told["seats"][0]
        if not mine["alive"]:
            continue
        now = np.asarray(step.views[0].observation.planes, np.float32)
        came = np.asarray(GAME.observe(step.after).planes[0])
        world = mine["world"]
        np.testing.assert_array_equal(as_planes(world["true"], now.shape), came)
        predicted = planner.world(jnp.asarray(now), jnp.asarray(step.actions))
        moves = np.asarray(jax.nn.softmax(predicted.move))
        board = as_planes(world["board"], now.shape)
        # Where a player can be it is as probable as the move that leads there; the last: gone.
        for seat in range(3):
            left = moves[seat, -1] if now[..., seat].any() else 1.0
            assert board[..., seat].sum() <= 1 - left + 0.01
        there = np.asarray(jax.nn.sigmoid(predicted.there))
        np.testing.assert_allclose(board[..., 3:], np.where(there < 0.005, 0, there), atol=1e-4)
        assert world["error"] == pytest.approx(np.mean((board - came) ** 2), abs=2e-3)
        assert world["leaves"] == pytest.approx(float(jax.nn.sigmoid(predicted.leaves)), abs=1e-4)
        assert "world" not in told["seats"][1]
        check_imagined(planner, step, mine)
        looked_at += len(mine["imagined"])
    assert looked_at >= 4


def check_imagined(planner: HopPlusPlayer, step: Step, mine: dict[str, Any]) -> None:
    """Its plan, played by hand in the world model."""
    assert planner.world is not None and len(mine["imagined"]) == min(4, len(mine["variation"]))
    playing = ImaginedGame(planner.world, require_horizon(GAME))
    state = imagined_state(GAME, step.state)
    expected = np.argmax(np.asarray(mine["predicted"]), axis=1)
    for ahead, (action, cells) in enumerate(zip(mine["variation"], mine["imagined"], strict=False)):
        if ahead == 0:  # the others' first actions are among what it tells
            state, _ = playing.step(
                jax.random.key(0), state, jnp.asarray([action, *expected], jnp.int32)
            )
            np.testing.assert_array_equal(as_planes(cells, state.planes.shape), state.planes)


@pytest.mark.slow
def test_contexts_are_those_that_make_the_weights() -> None:
    learner = team(TEAM_GAME, HyperMAPPO)
    state = wide(jax.jit(learner.init)(jax.random.key(0), jnp.arange(TEAM_GAME.seats)))
    players = [learner.player(state, seat) for seat in range(TEAM_GAME.seats)]
    (record,) = record_episodes(TEAM_GAME, players, 1, 4)
    plain = record_episode(TEAM_GAME, group_players(players), 4)
    np.testing.assert_array_equal(record.actions, plain.actions)
    before: np.ndarray | None = None
    for told in record.steps:
        mine = told["seats"][0]
        if not mine["alive"]:
            break
        context = np.array(mine["context"])
        assert context.shape == (3,) and np.abs(context).max() > 1e-3
        figures = mine["figures"]
        assert figures["length of the context"] == pytest.approx(np.linalg.norm(context), abs=1e-3)
        moved = 0.0 if before is None else np.linalg.norm(context - before)
        assert figures["drift of the context"] == pytest.approx(moved, abs=1e-3)
        heads = players[0].hyper.heads  # type: ignore[attr-defined]
        added = [np.tensordot(context, np.asarray(x), 1).ravel() for x in jax.tree.leaves(heads)]
        length = np.linalg.norm(np.concatenate(added))
        assert figures["‖Δθ‖ of the actor"] == pytest.approx(length, rel=1e-2)
        before = context
    assert before is not None
