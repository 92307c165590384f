"""Whole episodes of one game copy, in blocks."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from coplay.core.group import group_players
from coplay.games.registry import make_game
from coplay.matches.episodes import play_steps
from coplay.matches.lone_copy import STEPS
from coplay.matches.match import one_step, record_episode
from coplay.matches.rollout import new_table
from coplay.training.players import make_player

GAME = make_game("matrix:stag-hunt", rounds=2 * STEPS + 5)
GROUPS = group_players([make_player(entry, GAME) for entry in ("random", "tit-for-tat")])


def test_blocks_follow_each_other_as_steps_do() -> None:
    """An episode of three blocks, beside the same one played step by step."""
    recorded = record_episode(GAME, GROUPS, seed=7)
    assert len(recorded.actions) == 2 * STEPS + 5 == len(recorded.states) - 1
    key, reset_key = jax.random.split(jax.random.key(7))
    table = new_table(GAME, GROUPS, reset_key, copies=1)
    step = jax.jit(one_step)
    for time, (before, after) in enumerate(
        zip(recorded.states[:-1], recorded.states[1:], strict=True)
    ):
        jax.tree.map(
            np.testing.assert_array_equal, before, jax.tree.map(lambda x: x[0], table.state)
        )
        key, step_key = jax.random.split(key)
        table, action, reward, over = step(GAME, GROUPS, step_key, table, jnp.zeros(1, bool))
        np.testing.assert_array_equal(recorded.actions[time], action[0])
        np.testing.assert_array_equal(recorded.rewards[time], reward[0])
        jax.tree.map(
            np.testing.assert_array_equal, after, jax.tree.map(lambda x: x[0], table.state)
        )
    assert bool(over[0])


def test_steps_run_on_over_blocks() -> None:
    steps = list(play_steps(GAME, GROUPS, episodes=2, seed=7))
    count = 2 * STEPS + 5
    assert [step.time for step in steps] == [*range(count), *range(count)]
    assert [step.over for step in steps] == ([False] * (count - 1) + [True]) * 2
    for step, following in itertools.pairwise(steps[:count]):
        jax.tree.map(np.testing.assert_array_equal, step.after, following.state)
