"""The compiled heart of training: a block of iterations, each a rollout and an update."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from coplay.core.game import Game
from coplay.core.group import Group
from coplay.core.learner import LearnerState, init_learner
from coplay.core.player import Memory
from coplay.core.trajectory import Trajectory
from coplay.matches.rollout import Table, new_table, nothing_done, rollout
from coplay.training.config import TrainConfig
from coplay.training.phases import Phase

Counts = dict[str, Array]  # what one iteration counted, see `count`


class TrainState(NamedTuple):
    """Everything that changes during a run. learners: one state per learner."""

    learners: tuple[LearnerState, ...]
    table: Table


def init_state(
    phase: Phase, game: Game, key: PRNGKeyArray, copies: int, streams: Int[Array, " seat"]
) -> TrainState:
    """The state before the first iteration."""
    learner_key, table_key = jax.random.split(key)
    learners = tuple(
        init_learner(
            learner,
            jax.random.fold_in(learner_key, index),
            streams,
            phase.parts[index] if phase.parts else {},
        )
        for index, learner in enumerate(phase.learners)
    )
    order = phase.order(copies, game.seats)
    groups = groups_of(phase, learners)
    return TrainState(learners, new_table(game, groups, table_key, copies, order))


def state_shapes(config: TrainConfig, game: Game, phase: Phase) -> TrainState:
    """The shapes of a run's state in a phase, with its [seed] axis."""
    one = jax.eval_shape(
        lambda key: init_state(phase, game, key, config.run.copies, jnp.arange(game.seats)),
        jax.random.key(0),
    )
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct((config.run.seeds, *x.shape), x.dtype), one)


def groups_of(phase: Phase, learners: tuple[LearnerState, ...]) -> tuple[Group, ...]:
    """All groups of players at the table: the active learners', then the others."""
    acting = tuple(
        learner.group(state)
        for learner, state in zip(phase.learners, learners, strict=True)
        if learner.active
    )
    return acting + phase.others


def enter_phase(before: Phase, phase: Phase, state: TrainState, copies: int) -> TrainState:
    """The state at the beginning of a new phase: seats whose player stays remember, others begin
    with an empty memory."""
    table = state.table
    stays = np.array([old == new for old, new in zip(before.entries, phase.entries, strict=True)])
    kept = {
        seat: jax.tree.map(lambda x, index=index: x[index], memory)
        for group, memory in zip(groups_of(before, state.learners), table.memory, strict=True)
        for index, seat in enumerate(group.seats)
        if stays[seat]
    }

    def entered(group: Group) -> Memory:
        empty = group.start(copies)
        rows = [
            kept.get(seat, jax.tree.map(lambda x, index=index: x[index], empty))
            for index, seat in enumerate(group.seats)
        ]
        return jax.tree.map(lambda *x: jnp.stack(x), *rows)

    new = nothing_done(copies, len(stays))
    return state._replace(
        table=table._replace(
            memory=tuple(entered(group) for group in groups_of(phase, state.learners)),
            last_action=jnp.where(stays, table.last_action, new["last_action"]),
            last_reward=jnp.where(stays, table.last_reward, new["last_reward"]),
        )
    )


def one_iteration(
    phase: Phase,
    game: Game,
    state: TrainState,
    key: PRNGKeyArray,
    progress: Float[Array, ""],
    steps: int,
    streams: Int[Array, " seat"],
) -> tuple[TrainState, Counts]:
    """Play `steps` steps in every copy, then let every learner learn from its seats."""
    roll_key, learn_key = jax.random.split(key)
    groups = groups_of(phase, state.learners)
    order = phase.order(state.table.time.shape[0], game.seats)
    table, trajectory = rollout(
        game, groups, state.table, roll_key, steps, streams, order, meeting=phase.meeting
    )
    learners, counts = learn(game, phase, state.learners, trajectory, learn_key, progress)
    return TrainState(learners, table), counts


def learn(
    game: Game,
    phase: Phase,
    states: tuple[LearnerState, ...],
    trajectory: Trajectory,
    key: PRNGKeyArray,
    progress: Float[Array, ""],
) -> tuple[tuple[LearnerState, ...], Counts]:
    """Every learner learns from its seats; the new states, and what was counted."""
    counts = count(trajectory)
    learners = []
    for index, (learner, mine) in enumerate(zip(phase.learners, states, strict=True)):
        if learner.active:
            part = learner.training_data(game, trajectory)
            update_key = jax.random.fold_in(key, index)
            mine, metrics = learner.update(update_key, mine, part, progress)
            seats = np.array(learner.active)
            for name, values in metrics.items():
                empty = counts.get(name, jnp.full((game.seats, *values.shape[1:]), jnp.nan))
                counts[name] = empty.at[seats].set(values)
        learners.append(mine)
    return tuple(learners), counts


def count(trajectory: Trajectory) -> Counts:
    """What happened in a rollout, as sums: episodes that ended, and actions while alive.

    episodes: []. reward, length: [seat] sums over those episodes. actions: [seat, action].
    """
    over = trajectory.over[..., None]
    kinds = jnp.arange(trajectory.log_policy.shape[-1])
    taken = (trajectory.action[..., None] == kinds) & trajectory.alive[..., None]
    return {
        "episodes": jnp.sum(trajectory.over),
        "reward": jnp.sum(jnp.where(over, trajectory.episode_reward, 0.0), axis=(0, 1)),
        "length": jnp.sum(jnp.where(over, trajectory.episode_steps, 0), axis=(0, 1)),
        "actions": jnp.sum(taken, axis=(0, 1)),
    }


def make_block(
    phase: Phase, rollout_steps: int, most: int
) -> Callable[..., tuple[TrainState, Counts]]:
    """A function that runs up to `most` iterations; every state has a leading [seed] axis.

    block(game, others, state, keys [seed], first, iterations, total, streams): `first` and
    `iterations` are numbers the program does not depend on, so one program serves a whole phase and
    a run continues bit for bit wherever it was cut. Counts come back as [most, seed, ...].
    """

    def one_seed(
        game: Game,
        others: tuple[Group, ...],
        state: TrainState,
        key: PRNGKeyArray,
        first: Int[Array, ""],
        iterations: Int[Array, ""],
        total: Int[Array, ""],
        streams: Int[Array, " seat"],
    ) -> tuple[TrainState, Counts]:
        here = dataclasses.replace(phase, others=others)

        def iterate(state: TrainState, number: Int[Array, ""]) -> tuple[TrainState, Counts]:
            progress = number / total
            return one_iteration(
                here,
                game,
                state,
                jax.random.fold_in(key, number),
                progress.astype(jnp.float32),
                rollout_steps,
                streams,
            )

        shapes = jax.eval_shape(iterate, state, first)[1]
        kept = jax.tree.map(lambda x: jnp.zeros((most, *x.shape), x.dtype), shapes)

        def body(index: Int[Array, ""], carry: tuple[TrainState, Counts]) -> tuple:
            state, kept = carry
            state, counts = iterate(state, first + index)
            kept = jax.tree.map(lambda all_, one: all_.at[index].set(one), kept, counts)
            return state, kept

        return jax.lax.fori_loop(0, iterations, body, (state, kept))

    def block(
        game: Game,
        others: tuple[Group, ...],
        state: TrainState,
        keys: Key[Array, " seed"],
        first: Int[Array, ""],
        iterations: Int[Array, ""],
        total: Int[Array, ""],
        streams: Int[Array, " seat"],
    ) -> tuple[TrainState, Counts]:
        def run(pair: tuple[TrainState, PRNGKeyArray]) -> tuple[TrainState, Counts]:
            return one_seed(game, others, *pair, first, iterations, total, streams)

        state, counts = over_seeds(run, (state, keys))
        return state, jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), counts)

    return block


def over_seeds(function: Callable[[Any], Any], inputs: Any) -> Any:
    """The function of every seed, one after the other within one program.

    On CPU a `vmap` over seeds is slower (`benchmarks/seeds.py`), needs the memory of all seeds at
    once, and makes a seed's numbers depend on its company; here a seed gives the same bits alone
    or among others.
    """
    return jax.lax.map(function, inputs)
