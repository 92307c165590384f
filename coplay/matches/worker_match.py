"""Matches and single episodes of games that worker processes step."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from coplay.core.group import Group
from coplay.core.player import Memory
from coplay.core.trajectory import seat_keys, seat_uniforms
from coplay.games.adapters.worker_game import WorkerGame, WorkerState, state_of
from coplay.games.adapters.workers.pool import Pool
from coplay.games.adapters.workers.seats import Views
from coplay.matches.rollout import Table, act_all, nothing_done
from coplay.matches.worker_rollout import following


@jax.jit
def worker_act(
    game: WorkerGame,
    groups: tuple[Group, ...],
    key: PRNGKeyArray,
    step: Int[Array, ""],
    table: Table,
) -> tuple[Int[Array, "copy seat"], tuple[Memory, ...]]:
    """What all seats do in a step of a match, and what their players remember."""
    copies, seats = table.gained.shape
    streams = jnp.arange(seats)
    act_key, choice_key = jax.random.split(jax.random.fold_in(key, step))
    uniform = seat_uniforms(choice_key, streams, copies)
    game.refuse_noticing(groups)
    _, action, _, _, memory = act_all(game, groups, seat_keys(act_key, streams), uniform, table)
    return action, memory


def worker_table(game: WorkerGame, groups: tuple[Group, ...], views: Views) -> Table:
    """Where the copies stand before the first step of a match."""
    copies = len(views.alive)
    nothing: Any = np.zeros((copies, game.seats), np.float32)
    number: Any = np.zeros(copies, np.int32)
    memory = tuple(group.start(copies) for group in groups)
    state = state_of(views)
    counted = (number, number, nothing, nothing.astype(np.int32))
    done: Any = jax.tree.map(np.asarray, nothing_done(copies, game.seats))
    return Table(state, memory, *counted, **done)


def play_worker_episodes(
    game: WorkerGame, groups: tuple[Group, ...], seed: int, copies: int, episodes: int
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray], int]:
    """Every copy plays `episodes` whole episodes, one after the other at its own pace: rewards and
    steps in the game, [episode, copy, seat], the environment's scores, [episode, copy], and how
    often an environment was restarted."""
    names = game.table.scores
    scores = np.zeros((episodes, copies, len(names)), np.float32)
    reward = np.zeros((episodes, copies, game.seats), np.float32)
    steps = np.zeros((episodes, copies, game.seats), np.int32)
    key, every = jax.random.key(seed), np.arange(copies)
    with game.pool(copies) as pool:
        views = pool.reset(seed)
        table = worker_table(game, groups, views)
        active, time, step = np.ones(copies, bool), np.zeros(copies, np.int32), 0
        episode = np.zeros(copies, np.int32)
        while active.any():
            # Copies of the arrays: JAX may look at them in place.
            table = table._replace(
                state=state_of(Views(*(array.copy() for array in views))),
                time=time,  # type: ignore[arg-type]
                episode=episode,  # type: ignore[arg-type]
            )
            action, memory = worker_act(game, groups, key, np.int32(step), table)
            stepped = pool.step(np.asarray(action), active=active)
            row = np.minimum(episode, episodes - 1)
            reward[row, every] += stepped.reward
            counts = views.alive & active[:, None]
            steps[row, every] += counts
            scores[row, every] = np.where(stepped.over[:, None], stepped.score, scores[row, every])
            table = _with_done(table, counts, action, stepped.reward)
            over = stepped.over.copy()
            views = following(views, stepped)
            table = table._replace(memory=memory)
            time, episode, step = np.where(over, 0, time + 1), episode + over, step + 1
            active = episode < episodes
        restarts = pool.restarts
    return reward, steps, {name: scores[..., i] for i, name in enumerate(names)}, restarts


def record_worker_episode(
    game: WorkerGame, groups: tuple[Group, ...], seed: int
) -> tuple[list[WorkerState], np.ndarray, np.ndarray]:
    """One episode in one copy: T + 1 states (with pictures if the environment gives any), and the
    actions and rewards between them, [T, seat]."""
    key = jax.random.key(seed)
    actions: list[np.ndarray] = []
    rewards: list[np.ndarray] = []
    with game.pool(1, film=game.pictures) as pool:
        table = worker_table(game, groups, pool.reset(seed))
        states, over = [_scene(game, pool, table.state)], False
        while not over:
            action, memory = worker_act(game, groups, key, np.int32(len(actions)), table)
            stepped = pool.step(np.asarray(action))
            actions.append(np.asarray(action)[0])
            rewards.append(stepped.reward[0].copy())
            over = bool(stepped.over[0])
            now = state_of(Views(*(array.copy() for array in stepped.after)))
            table = _with_done(table, np.asarray(table.state.alive), action, stepped.reward)
            table = table._replace(state=now, memory=memory, time=table.time + 1)
            states.append(_scene(game, pool, now))
    return states, np.stack(actions), np.stack(rewards)


def _with_done(table: Table, counts: np.ndarray, action: Any, reward: np.ndarray) -> Table:
    """The table with what the seats did and got in a step, where it counts."""
    done: Any = (
        np.where(counts, np.asarray(action), table.last_action),
        np.where(counts, reward, table.last_reward),
    )
    return table._replace(last_action=done[0], last_reward=done[1])


def _scene(game: WorkerGame, pool: Pool, state: WorkerState) -> WorkerState:
    """The state of the only copy, with its picture."""
    picture = pool.picture() if game.pictures else None
    one = jax.tree.map(lambda x: x[0], state)
    if isinstance(picture, np.ndarray) and picture.ndim == 3:
        return one._replace(picture=picture[..., :3].astype(np.uint8))
    return one
