"""Rollouts of games that worker processes step: acting is compiled, stepping is not."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from coplay.core.game import Observation
from coplay.core.trajectory import Past, Trajectory, seat_keys, seat_uniforms
from coplay.games.adapters.worker_game import WorkerState, state_of
from coplay.games.adapters.workers.pool import Pool, Stepped
from coplay.games.adapters.workers.seats import Seats, Views
from coplay.matches.rollout import Table


class ActionNoise(NamedTuple):
    """The randomness by which players choose actions in a rollout.

    uniform: [time, seat, copy] in [0, 1), for sampling. keys: [time, seat], for players.
    """

    uniform: Float[Array, "time seat copy"]
    keys: Key[Array, "time seat"]


def action_noise(
    key: PRNGKeyArray, steps: int, copies: int, streams: Int[Array, " seat"]
) -> ActionNoise:
    """What the players of a rollout draw; what the game draws is up to its environments' seeds."""
    act_key, choice_key = jax.random.split(key)
    uniform = seat_uniforms(choice_key, streams, steps * copies)
    uniform = jnp.moveaxis(uniform.reshape(-1, steps, copies), 1, 0)
    keys = jax.vmap(lambda key: seat_keys(key, streams))(jax.random.split(act_key, steps))
    return ActionNoise(uniform, keys)


def following(views: Views, stepped: Stepped) -> Views:
    """What the seats see next: after the step, or after the reset where the episode is over."""
    over = stepped.over
    for array, after, fresh in zip(views, stepped.after, stepped.fresh, strict=True):
        array[...] = after
        array[over] = fresh[over]
    return views


def worker_rollout(
    act: Callable[[Table, int], tuple[Any, Any, Any, Any]],
    pool: Pool,
    number: int,
    table: Table,
    steps: int,
) -> tuple[Table, Trajectory]:
    """Play `steps` steps in every copy of a set of environments, from where the table stands.

    act: (table, step) -> actions [copy, seat], log-probabilities, new memories, what players
        recorded.
    The trajectory's arrays are NumPy's and its ego views as the environment gave them; see
    `WorkerGame.shown`.
    """
    copies = len(table.time)
    shapes = trajectory_shapes(pool.seats, steps, copies)
    played: Any = jax.tree.map(lambda x: np.empty(x.shape, x.dtype), shapes)
    time, episode = np.array(table.time), np.array(table.episode)
    gained, stayed = np.array(table.gained), np.array(table.stayed)
    done = (np.array(table.last_action), np.array(table.last_reward))
    global_state = (
        np.zeros((copies, 0)) if table.state.global_state is None else table.state.global_state
    )
    shown = Views(*(np.array(x) for x in (*table.state.seen[:3], table.state.alive, global_state)))
    memory, records = table.memory, []
    for t in range(steps):
        for kept, now in zip((*played.observation[:3], played.alive), shown[:4], strict=True):
            kept[t] = now
        if played.state is not None:
            played.state.global_state[t] = shown.global_state
        # Of the rows in the trajectory, which stay as they are: JAX may look at arrays in place.
        here = (played.observation, played.alive, played.state and played.state.global_state)
        seen, present, global_state = jax.tree.map(lambda x, t=t: x[t], here)
        before = WorkerState(seen, present, global_state=global_state)
        for kept, now in zip(played.past, (time[:, None] == 0, *done), strict=True):
            kept[t] = now
        table = Table(before, memory, *_arrays(time, episode, gained, stayed, *done))
        played.action[t], played.log_policy[t], memory, recorded = act(table, t)
        records.append(recorded)
        stepped = pool.step(played.action[t], number)
        for kept, now in zip(played.final[:3], stepped.after[:3], strict=True):
            kept[t] = now
        if played.after is not None:
            played.after.global_state[t] = stepped.after.global_state
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
    recorded = jax.tree.map(lambda *x: np.stack(x), *records)
    return table, played._replace(last=last.seen, recorded=recorded)


def _arrays(*arrays: np.ndarray) -> Any:
    """NumPy arrays where JAX's are expected: compiled programs take either."""
    return arrays


def trajectory_shapes(seats: Seats, steps: int, copies: int) -> Trajectory:
    """The shapes of a trajectory as `worker_rollout` gives it."""

    def shape(kind: Any, *rest: int, time: tuple[int, ...] = (steps,)) -> Any:
        return jax.ShapeDtypeStruct((*time, copies, seats.count, *rest), kind)

    def views(time: tuple[int, ...]) -> Observation:
        return Observation(
            shape(seats.plane_type, *seats.planes, time=time),
            shape(np.float32, seats.features, time=time),
            shape(bool, seats.actions, time=time),
        )

    states: Any = None
    if seats.global_state:
        numbers = jax.ShapeDtypeStruct((steps, copies, seats.global_state), np.float32)
        states = WorkerState(None, None, global_state=numbers)  # type: ignore[arg-type]
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
        state=states,
        after=states,
        past=Past(shape(bool), shape(np.int32), shape(np.float32)),
    )
