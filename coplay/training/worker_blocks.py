"""Rollouts of games that worker processes step, for the same players and the same learners.

At every step one compiled program lets all seats of all copies act, and the workers step their
environments. The trajectory that comes of it goes into the learners' own compiled update.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from coplay.core.group import Group
from coplay.core.learner import LearnerState
from coplay.core.trajectory import Trajectory
from coplay.games.adapters.worker_game import WorkerGame, state_of
from coplay.games.adapters.workers.pool import Pool
from coplay.matches.rollout import Table, act_all, nothing_done
from coplay.matches.worker_rollout import (
    ActionNoise,
    action_noise,
    trajectory_shapes,
    worker_rollout,
)
from coplay.training.block import Counts, TrainState, groups_of, learn
from coplay.training.config import RunConfig
from coplay.training.phases import Phase


class Iteration(NamedTuple):
    """The compiled programs of one iteration of one seed.

    begin: (key, number of the iteration, streams) -> noise of the rollout, key of the update.
    act: (game, others, learners, table, noise, step) -> actions, log-probabilities, memories,
        recorded. update: (game, learners, trajectory, key, progress) -> learners, counts.
    seated: the seats of each group at the table, learners first.
    """

    begin: Callable[..., Any]
    act: Callable[..., Any]
    update: Callable[..., Any]
    seated: list[tuple[int, ...]]


def act_in_seats(
    phase: Phase,
    game: WorkerGame,
    others: tuple[Group, ...],
    learners: tuple[LearnerState, ...],
    table: Table,
    noise: ActionNoise,
    step: Int[Array, ""],
) -> tuple[Any, Any, Any, Any]:
    """What all seats of all copies do in a step of a rollout."""
    groups = groups_of(Phase(phase.start, phase.entries, phase.learners, others), learners)
    game.refuse_noticing(groups)
    _, action, log_policy, _, memory = act_all(
        game, groups, noise.keys[step], noise.uniform[step], table
    )
    recorded = {g.seats: g.record(mine) for g, mine in zip(groups, memory, strict=True)}
    return action, log_policy, memory, recorded


def learn_from_views(
    phase: Phase,
    game: WorkerGame,
    learners: tuple[LearnerState, ...],
    trajectory: Trajectory,
    key: PRNGKeyArray,
    progress: Float[Array, ""],
) -> tuple[tuple[LearnerState, ...], Counts]:
    """The update, from views as the environments gave them."""
    shown = trajectory._replace(
        observation=game.shown(trajectory.observation),
        final=game.shown(trajectory.final),
        last=game.shown(trajectory.last),
    )
    return learn(game, phase, learners, shown, key, progress)


def compile_iteration(
    game: WorkerGame, phase: Phase, state: TrainState, steps: int, copies: int
) -> Iteration:
    """The programs for states like this one, which has a leading [seed] axis."""

    @jax.jit
    def begin(
        key: PRNGKeyArray, number: Int[Array, ""], streams: Int[Array, " seat"]
    ) -> tuple[ActionNoise, PRNGKeyArray]:
        roll_key, learn_key = jax.random.split(jax.random.fold_in(key, number))
        return action_noise(roll_key, steps, copies, streams), learn_key

    one: TrainState = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), state)
    noise, key = jax.eval_shape(begin, jax.random.key(0), np.int32(0), np.arange(game.seats))
    acting = (game, phase.others, one.learners, one.table, noise, np.int32(0))
    lowered = jax.jit(partial(act_in_seats, phase)).lower(*acting)
    act = lowered.compile()
    seated = [learner.active for learner in phase.learners if learner.active]
    seated += [group.seats for group in phase.others]
    recorded = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct((steps, *x.shape), x.dtype), lowered.out_info[-1]
    )
    shapes = trajectory_shapes(game.table, steps, copies)._replace(
        memory=dict(zip(seated, one.table.memory, strict=True)), recorded=recorded
    )
    learning = (game, one.learners, shapes, key, np.float32(0))
    update = jax.jit(partial(learn_from_views, phase)).lower(*learning).compile()
    return Iteration(begin, act, update, seated)


class WorkerBlocks:
    """The iterations of a run whose game workers step, with a set of environments per seed.

    say: is told what the user should know of the environments. restarts: how often one of them was
        started anew, also by earlier processes of the run.
    """

    def __init__(
        self, game: WorkerGame, run: RunConfig, seeds: list[int], say: Callable[[str], None]
    ):
        self.game, self.run, self.seeds, self.say = game, run, seeds, say
        self.pool: Pool | None = None
        self.restarts = 0

    def make_block(
        self, phase: Phase, state: TrainState
    ) -> Callable[..., tuple[TrainState, Counts]]:
        """A function like the one that `coplay.training.block.make_block` makes, compiled for
        states like this one."""
        programs = compile_iteration(self.game, phase, state, self.run.rollout, self.run.copies)

        def block(
            game: WorkerGame,
            others: tuple[Group, ...],
            state: TrainState,
            keys: Key[Array, " seed"],
            first: np.int32,
            iterations: np.int32,
            total: np.int32,
            streams: Int[Array, " seat"],
        ) -> tuple[TrainState, Counts]:
            states = [jax.tree.map(lambda x, i=i: x[i], state) for i in range(len(self.seeds))]
            if self.pool is None:
                states = self._begin(states, int(first))
            rows = []
            for number in range(int(first), int(first) + int(iterations)):
                done = []
                for seed, one in enumerate(states):
                    noise, key = programs.begin(keys[seed], np.int32(number), streams)
                    progress = np.float32(number / int(total))
                    given = (noise, key, progress)
                    done.append(self._iterate(programs, game, others, seed, one, given))
                states = [one for one, _ in done]
                rows.append(_stack([counts for _, counts in done]))
            return _stack(states), _stack(rows)

        return block

    def _iterate(
        self,
        programs: Iteration,
        game: WorkerGame,
        others: tuple[Group, ...],
        seed: int,
        state: TrainState,
        given: tuple[ActionNoise, PRNGKeyArray, np.float32],
    ) -> tuple[TrainState, Counts]:
        """A rollout and an update of one seed. given: noise, key of the update, progress."""
        assert self.pool is not None
        noise, key, progress = given

        def play(table: Table, step: int) -> tuple[Any, Any, Any, Any]:
            return programs.act(game, others, state.learners, table, noise, np.int32(step))

        before = self.pool.restarts
        table, trajectory = worker_rollout(play, self.pool, seed, state.table, self.run.rollout)
        self.restarts += self.pool.restarts - before
        remembered = dict(zip(programs.seated, state.table.memory, strict=True))
        trajectory = trajectory._replace(memory=remembered)
        learners, counts = programs.update(game, state.learners, trajectory, key, progress)
        return TrainState(learners, table), counts

    def _begin(self, states: list[TrainState], iteration: int) -> list[TrainState]:
        """Start the workers; every environment begins an episode, whatever the states were."""
        copies, seats = self.run.copies, self.game.seats
        self.pool = self.game.pool(copies, len(self.seeds), say=self.say)
        begun = []
        for number, (seed, state) in enumerate(zip(self.seeds, states, strict=True)):
            table = state.table._replace(
                state=state_of(self.pool.reset(seed, iteration, number)),
                time=jnp.zeros(copies, jnp.int32),
                gained=jnp.zeros((copies, seats), jnp.float32),
                stayed=jnp.zeros((copies, seats), jnp.int32),
                **nothing_done(copies, seats),  # type: ignore[arg-type]
            )
            begun.append(state._replace(table=table))
        return begun

    def close(self) -> None:
        """End the workers."""
        if self.pool is not None:
            self.pool.close()
            self.pool = None


def _stack(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *x: jnp.stack(x), *trees)
