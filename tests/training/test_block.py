"""What an iteration counts, and blocks that are cut anywhere."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.algorithms.scripted import Random
from coplay.api.training import make_config
from coplay.core.group import group_players
from coplay.games.stag_hunt import StagHunt, StagHuntConfig
from coplay.matches.rollout import new_table, rollout
from coplay.training.block import TrainState, count, make_block, one_iteration, state_shapes
from coplay.training.phases import Phase, plan_phases
from coplay.training.run import make_game_of

GAME = StagHunt(StagHuntConfig(height=2, width=3, players=2, stags=1, hares=2, horizon=4))
COPIES, STEPS = 4, 8
GROUPS = group_players([Random(), Random()])
STREAMS = jnp.arange(2)


@pytest.mark.slow
def test_episodes_rewards_and_actions_are_counted() -> None:
    @jax.jit
    def play() -> tuple:
        table = new_table(GAME, GROUPS, jax.random.key(0), COPIES)
        played = rollout(GAME, GROUPS, table, jax.random.key(1), STEPS, STREAMS)[1]
        return played, count(played)

    played, found = play()
    over = np.asarray(played.over)
    assert found["episodes"] == over.sum() > 0
    np.testing.assert_allclose(found["reward"], np.asarray(played.episode_reward)[over].sum(0))
    np.testing.assert_array_equal(found["length"], np.asarray(played.episode_steps)[over].sum(0))
    assert found["actions"].shape == (2, GAME.actions)
    np.testing.assert_array_equal(found["actions"].sum(1), np.asarray(played.alive).sum((0, 1)))


def test_a_block_cut_in_two_gives_the_same_state() -> None:
    block = jax.jit(make_block(Phase(0, ("random",) * 2, (), GROUPS), STEPS, 3))
    table = jax.vmap(lambda key: new_table(GAME, GROUPS, key, COPIES))
    start = TrainState((), table(jax.random.split(jax.random.key(0), 2)))  # two seeds
    keys = jax.random.split(jax.random.key(1), 2)

    def run(state: TrainState, first: int, iterations: int) -> tuple:
        return block(GAME, GROUPS, state, keys, first, iterations, 3, STREAMS)

    whole, counts = run(start, 0, 3)
    state, before = run(start, 0, 1)
    state, after = run(state, 1, 2)
    for one, other in zip(jax.tree.leaves(whole), jax.tree.leaves(state), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(counts["reward"][0], before["reward"][0])
    np.testing.assert_array_equal(counts["reward"][1:], after["reward"][:2])


@pytest.mark.parametrize("player", ["hop", "hop-plus"])
def test_what_planners_play_fits_into_what_they_keep(player: str) -> None:
    """An iteration is traced, and not compiled: its parts must fit together."""
    own = {"copies": 8, "rollout": 4, "steps": 64, "search.simulations": 2}
    if player == "hop-plus":
        own |= {"recordings.samples": 0, "models.learn_opponents": True, "models.chunk_length": 4}
    config = make_config(player, "stag-hunt", {"height": 3, "width": 3}, own)
    game = make_game_of(config)
    phase = plan_phases(config, game)[0]
    shapes = state_shapes(config, game, phase)
    one = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), shapes)

    def iterate(state: Any, key: Any) -> Any:
        return one_iteration(phase, game, state, key, jnp.float32(0), 4, jnp.arange(game.seats))[0]

    after = jax.eval_shape(iterate, one, jax.random.key(0))
    assert jax.tree.map(lambda x: (x.shape, x.dtype), after) == jax.tree.map(
        lambda x: (x.shape, x.dtype), one
    )
