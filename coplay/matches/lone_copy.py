"""Whole episodes of one game copy, as compiled blocks of many steps.

A step of one copy takes less time than starting a program for it. So a block plays up to `STEPS`
steps, and what is kept of them comes to NumPy once per block. A block ends with its episode.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from coplay.core.game import Game, State
from coplay.core.group import Group
from coplay.matches.rollout import Table, new_table

Kept = dict[str, Any]
"""What is kept of a step: a tree of arrays; of a block, they have a leading [time] axis. It has
"over" [copy], and "state": the only copy's before the step, without an axis of copies."""
OneStep = Callable[[Game, tuple[Group, ...], PRNGKeyArray, Table], tuple[Table, Kept]]

STEPS = 64
"""Steps of a block, at most."""
LIGHT = {"xla_backend_optimization_level": 1}
"""Compiler options: full optimising takes longer than it saves in some hundred steps, and without
any a step takes three times as long."""


@partial(jax.jit, static_argnames="one", compiler_options=LIGHT)
def _play_block(
    one: OneStep, game: Game, groups: tuple[Group, ...], key: PRNGKeyArray, table: Table
) -> tuple[PRNGKeyArray, Table, Int[Array, ""], Bool[Array, ""], Kept]:
    """Play until the episode is over or the block is full: the next key, the table, how many steps
    it were, whether the episode is over, and what was kept [time, ...]."""
    step = jax.jit(one)  # traced once, although its shapes are asked for first

    def unfinished(carry: tuple) -> Bool[Array, ""]:
        return (carry[2] < STEPS) & ~carry[3]

    def play(carry: tuple) -> tuple:
        key, table, time, _, kept = carry
        key, step_key = jax.random.split(key)
        table, new = step(game, groups, step_key, table)
        kept = jax.tree.map(
            lambda all_, x: jax.lax.dynamic_update_index_in_dim(all_, x, time, 0), kept, new
        )
        return key, table, time + 1, new["over"][0], kept

    new = jax.eval_shape(step, game, groups, key, table)[1]
    kept = jax.tree.map(lambda x: jnp.zeros((STEPS, *x.shape), x.dtype), new)
    return jax.lax.while_loop(unfinished, play, (key, table, jnp.array(0), jnp.array(False), kept))


@partial(jax.jit, compiler_options=LIGHT)
def _begin(game: Game, groups: tuple[Group, ...], key: PRNGKeyArray) -> Table:
    """Only types that are strong: a block would be compiled again for those that it gives."""
    return jax.tree.map(lambda x: x.astype(x.dtype), new_table(game, groups, key, copies=1))


@partial(jax.jit, compiler_options=LIGHT)
def _apart(states: State, last: State) -> list[State]:
    """States [time, ...] one by one, and after them the last one, which has an axis of copies. Each
    array would be a call of its own outside."""
    single = [jax.tree.map(lambda x, time=time: x[time], states) for time in range(STEPS)]
    return [*single, jax.tree.map(lambda x: x[0], last)]


def next_table(fresh: Table, before: Table | None) -> Table:
    """The table of an episode, with what players remember of the episode before."""
    if before is None:
        return fresh
    return fresh._replace(
        memory=before.memory,
        episode=before.episode + 1,
        last_action=before.last_action,
        last_reward=before.last_reward,
    )


class Block(NamedTuple):
    """Some steps of an episode that were played.

    steps: how many. kept: NumPy arrays [time, ...], filled up to `STEPS`, without the states.
    states: before each step, and after the last one. over: it is the episode's last block. table:
    after the block.
    """

    steps: int
    kept: Kept
    states: list[State]
    over: bool
    table: Table


def play_blocks(
    one: OneStep, game: Game, groups: tuple[Group, ...], seed: int, before: Table | None = None
) -> Iterator[Block]:
    """Play an episode, block by block. one: plays a step without a reset. before: the table at the
    end of the episode before."""
    key, reset_key = jax.random.split(jax.random.key(seed))
    table = next_table(_begin(game, groups, reset_key), before)
    over = False
    while not over:
        key, table, count, ended, kept = _play_block(one, game, groups, key, table)
        apart = _apart(kept.pop("state"), table.state)
        count, ended, kept = jax.device_get((count, ended, kept))
        steps, over = int(count), bool(ended)
        yield Block(steps, kept, [*apart[:steps], apart[-1]], over, table)
