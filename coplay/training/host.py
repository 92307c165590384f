"""Rollouts of games that worker processes step, for the same players and the same learners.

At every step one compiled program lets all seats of all copies act, and the workers step their
environments. The trajectory that comes of it goes into the learners' own compiled update.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from coplay.games.game import Observation
from coplay.games.host_game import HostGame, HostState, state_of
from coplay.host.pool import Pool, Stepped
from coplay.host.seats import Seats, Views
from coplay.players.learner import LearnerState
from coplay.players.player import Group
from coplay.training.block import Counts, TrainState, groups_of, learn
from coplay.training.config import RunConfig
from coplay.training.phases import Phase
from coplay.training.rollout import (
    Past,
    Table,
    Trajectory,
    act_all,
    nothing_done,
    seat_keys,
    seat_uniforms,
)


class Drawn(NamedTuple):
    """The randomness of a rollout. uniform: [time, seat, copy]. keys: [time, seat]."""

    uniform: Float[Array, "time seat copy"]
    keys: Key[Array, "time seat"]


def draw(key: PRNGKeyArray, steps: int, copies: int, streams: Int[Array, " seat"]) -> Drawn:
    """What the players of a rollout draw; what the game draws is up to its environments' seeds."""
    act_key, choice_key = jax.random.split(key)
    uniform = seat_uniforms(choice_key, streams, steps * copies)
    uniform = jnp.moveaxis(uniform.reshape(-1, steps, copies), 1, 0)
    keys = jax.vmap(lambda key: seat_keys(key, streams))(jax.random.split(act_key, steps))
    return Drawn(uniform, keys)


def following(views: Views, stepped: Stepped) -> Views:
    """What the seats see next: after the step, or after the reset where the episode is over."""
    over = stepped.over
    for array, after, fresh in zip(views, stepped.after, stepped.fresh, strict=True):
        array[...] = after
        array[over] = fresh[over]
    return views


def host_rollout(
    act: Callable[[Table, int], tuple[Any, Any, Any, Any]],
    pool: Pool,
    number: int,
    table: Table,
    steps: int,
) -> tuple[Table, Trajectory]:
    """Play `steps` steps in every copy of a set of environments, from where the table stands.

    act: (table, step) -> actions [copy, seat], log-probabilities, new memories, what players noted.
    The trajectory's arrays are NumPy's and its ego views as the environment gave them; see
    `HostGame.shown`.
    """
    copies = len(table.time)
    shapes = trajectory_shapes(pool.seats, steps, copies)
    played: Any = jax.tree.map(lambda x: np.empty(x.shape, x.dtype), shapes)
    time, episode = np.array(table.time), np.array(table.episode)
    gained, stayed = np.array(table.gained), np.array(table.stayed)
    done = (np.array(table.last_action), np.array(table.last_reward))
    world = np.zeros((copies, 0)) if table.state.world is None else table.state.world
    shown = Views(*(np.array(x) for x in (*table.state.seen, table.state.alive, world)))
    memory, notes = table.memory, []
    for t in range(steps):
        for kept, now in zip((*played.observation, played.alive), shown[:4], strict=True):
            kept[t] = now
        if played.state is not None:
            played.state.world[t] = shown.world
        # Of the rows in the trajectory, which stay as they are: JAX may look at arrays in place.
        here = (played.observation, played.alive, played.state and played.state.world)
        seen, present, world = jax.tree.map(lambda x, t=t: x[t], here)
        before = HostState(seen, present, world=world)
        for kept, now in zip(played.past, (time[:, None] == 0, *done), strict=True):
            kept[t] = now
        table = Table(before, memory, *_arrays(time, episode, gained, stayed, *done))
        played.action[t], played.log_policy[t], memory, noted = act(table, t)
        notes.append(noted)
        stepped = pool.step(played.action[t], number)
        for kept, now in zip(played.final, stepped.after[:3], strict=True):
            kept[t] = now
        if played.after is not None:
            played.after.world[t] = stepped.after.world
        for name in ("reward", "terminated", "truncated", "over"):
            getattr(played, name)[t] = getattr(stepped, name)
        gained, stayed = gained + played.reward[t], stayed + played.alive[t]
        did = (played.action[t], played.reward[t])
        done = tuple(  # type: ignore[assignment]
            np.where(played.alive[t], now, old) for now, old in zip(did, done, strict=True)
        )
        played.episode_reward[t], played.episode_steps[t] = gained, stayed
        over = played.over[t]
        time, episode = np.where(over, 0, time + 1), episode + over
        gained, stayed = (np.where(over[:, None], 0, x) for x in (gained, stayed))
        shown = following(shown, stepped)
    last = state_of(shown)
    table = Table(last, memory, *_arrays(time, episode, gained, stayed, *done))
    noted = jax.tree.map(lambda *x: np.stack(x), *notes)
    return table, played._replace(last=last.seen, noted=noted)


def _arrays(*arrays: np.ndarray) -> Any:
    """NumPy arrays where JAX's are expected: compiled programs take either."""
    return arrays


def trajectory_shapes(seats: Seats, steps: int, copies: int) -> Trajectory:
    """The shapes of a trajectory as `host_rollout` gives it."""

    def shape(kind: Any, *rest: int, time: tuple[int, ...] = (steps,)) -> Any:
        return jax.ShapeDtypeStruct((*time, copies, seats.count, *rest), kind)

    def views(time: tuple[int, ...]) -> Observation:
        return Observation(
            shape(seats.plane_type, *seats.planes, time=time),
            shape(np.float32, seats.features, time=time),
            shape(bool, seats.actions, time=time),
        )

    worlds: Any = None
    if seats.world:
        numbers = jax.ShapeDtypeStruct((steps, copies, seats.world), np.float32)
        worlds = HostState(None, None, world=numbers)  # type: ignore[arg-type]
    return Trajectory(
        observation=views((steps,)),
        alive=shape(bool),
        action=shape(np.int32),
        log_policy=shape(np.float32, seats.actions),
        reward=shape(np.float32),
        terminated=shape(bool),
        truncated=shape(bool),
        over=jax.ShapeDtypeStruct((steps, copies), bool),  # type: ignore[arg-type]
        final=views((steps,)),
        last=views(()),
        episode_reward=shape(np.float32),
        episode_steps=shape(np.int32),
        state=worlds,
        after=worlds,
        past=Past(shape(bool), shape(np.int32), shape(np.float32)),
    )


class HostBlocks:
    """The iterations of a run whose game workers step, with a set of environments per seed."""

    def __init__(self, game: HostGame, run: RunConfig, seeds: list[int]):
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
            game: HostGame,
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
            noted = {g.seats: g.note(mine) for g, mine in zip(groups, memory, strict=True)}
            return action, log_policy, memory, noted

        def update(
            game: HostGame,
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
        noted = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct((steps, *x.shape), x.dtype), lowered.out_info[-1]
        )
        shapes = trajectory_shapes(self.game.table, steps, copies)._replace(
            memory=dict(zip(seated, one.table.memory, strict=True)), noted=noted
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

            table, trajectory = host_rollout(play, self.pool, index, state.table, steps)
            remembered = dict(zip(seated, state.table.memory, strict=True))
            trajectory = trajectory._replace(memory=remembered)
            progress = np.float32(number / total)
            learners, counts = compiled_update(
                game, state.learners, trajectory, learn_key, progress
            )
            return TrainState(learners, table), counts

        def block(
            game: HostGame,
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
