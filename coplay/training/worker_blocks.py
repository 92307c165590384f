"""Rollouts of games that worker processes step, for the same players and the same learners.

At every step one compiled program lets all seats of all copies act, and the workers step their
environments. The trajectory that comes of it goes into the learners' own compiled update.
"""

from collections.abc import Callable
from typing import Any

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
from coplay.matches.worker_rollout import Drawn, draw, trajectory_shapes, worker_rollout
from coplay.training.block import Counts, TrainState, groups_of, learn
from coplay.training.config import RunConfig
from coplay.training.phases import Phase


class WorkerBlocks:
    """The iterations of a run whose game workers step, with a set of environments per seed."""

    def __init__(self, game: WorkerGame, run: RunConfig, seeds: list[int]):
        self.game, self.run, self.seeds = game, run, seeds
        self.pool: Pool | None = None

    def make_block(
        self, phase: Phase, state: TrainState
    ) -> Callable[..., tuple[TrainState, Counts]]:
        """A function like the one that `coplay.training.block.make_block` makes, compiled for
        states like this one."""
        steps, copies = self.run.rollout, self.run.copies

        def with_others(others: tuple[Group, ...]) -> Phase:
            return Phase(phase.start, phase.entries, phase.learners, others)

        @jax.jit
        def begin(
            key: PRNGKeyArray, number: Int[Array, ""], streams: Int[Array, " seat"]
        ) -> tuple[Drawn, PRNGKeyArray]:
            roll_key, learn_key = jax.random.split(jax.random.fold_in(key, number))
            return draw(roll_key, steps, copies, streams), learn_key

        def act(
            game: WorkerGame,
            others: tuple[Group, ...],
            learners: tuple[LearnerState, ...],
            table: Table,
            drawn: Drawn,
            step: Int[Array, ""],
        ) -> tuple[Any, Any, Any, Any]:
            groups = groups_of(with_others(others), learners)
            game.refuse_noticing(groups)
            _, action, log_policy, _, memory = act_all(
                game, groups, drawn.keys[step], drawn.uniform[step], table
            )
            recorded = {g.seats: g.record(mine) for g, mine in zip(groups, memory, strict=True)}
            return action, log_policy, memory, recorded

        def update(
            game: WorkerGame,
            learners: tuple[LearnerState, ...],
            trajectory: Trajectory,
            key: PRNGKeyArray,
            progress: Float[Array, ""],
        ) -> tuple[tuple[LearnerState, ...], Counts]:
            shown = trajectory._replace(
                observation=game.shown(trajectory.observation),
                final=game.shown(trajectory.final),
                last=game.shown(trajectory.last),
            )
            return learn(game, phase, learners, shown, key, progress)

        one: TrainState = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), state)
        drawn, key = jax.eval_shape(
            begin, jax.random.key(0), np.int32(0), np.arange(self.game.seats)
        )
        acting = (self.game, phase.others, one.learners, one.table, drawn, np.int32(0))
        lowered = jax.jit(act).lower(*acting)
        compiled_act = lowered.compile()
        seated = [learner.active for learner in phase.learners if learner.active]
        seated += [group.seats for group in phase.others]
        recorded = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct((steps, *x.shape), x.dtype), lowered.out_info[-1]
        )
        shapes = trajectory_shapes(self.game.table, steps, copies)._replace(
            memory=dict(zip(seated, one.table.memory, strict=True)), recorded=recorded
        )
        learning = (self.game, one.learners, shapes, key, np.float32(0))
        compiled_update = jax.jit(update).lower(*learning).compile()

        def one_seed(
            index: int, state: TrainState, key: PRNGKeyArray, number: int, total: int, rest: tuple
        ) -> tuple[TrainState, Counts]:
            game, others, streams = rest
            assert self.pool is not None
            drawn, learn_key = begin(key, np.int32(number), streams)

            def play(table: Table, step: int) -> tuple[Any, Any, Any, Any]:
                return compiled_act(game, others, state.learners, table, drawn, np.int32(step))

            table, trajectory = worker_rollout(play, self.pool, index, state.table, steps)
            remembered = dict(zip(seated, state.table.memory, strict=True))
            trajectory = trajectory._replace(memory=remembered)
            progress = np.float32(number / total)
            learners, counts = compiled_update(
                game, state.learners, trajectory, learn_key, progress
            )
            return TrainState(learners, table), counts

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
                done = [
                    one_seed(i, one, keys[i], number, int(total), (game, others, streams))
                    for i, one in enumerate(states)
                ]
                states = [one for one, _ in done]
                rows.append(_stack([counts for _, counts in done]))
            return _stack(states), _stack(rows)

        return block

    def _begin(self, states: list[TrainState], iteration: int) -> list[TrainState]:
        """Start the workers; every environment begins an episode, whatever the states were."""
        copies, seats = self.run.copies, self.game.seats
        self.pool = self.game.pool(copies, len(self.seeds))
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
