"""Matches: play whole episodes with given players and count what every seat got.

Each game copy plays the same number of whole episodes, one after the other. Counting the episodes
that happen to finish first in a running rollout would favour short ones.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.core.errors import UserError
from coplay.core.game import Game, State
from coplay.core.group import Group, notice_all
from coplay.core.trajectory import seat_keys, seat_uniforms
from coplay.games.adapters.worker_game import WorkerGame
from coplay.matches.lone_copy import Kept, play_blocks
from coplay.matches.rollout import Table, act_all, new_table, nothing_done
from coplay.matches.worker_match import play_worker_episodes, record_worker_episode

MOST_COPIES, MOST_WORKER_COPIES = 1024, 64


class Match(NamedTuple):
    """Episodes of one seating. reward, steps: [episode, seat] NumPy arrays. scores: [episode]
    each, from the episodes' last states (`Game.scores`). restarts: how often an environment failed
    and was started anew."""

    reward: np.ndarray
    steps: np.ndarray
    scores: Mapping[str, np.ndarray] = {}
    restarts: int = 0

    def record(self, game: str, players: list[str]) -> dict[str, Any]:
        """The match as a JSON object: means and standard errors of every seat, and the means of
        the game's scores if it has some."""
        count = len(self.reward)
        error = self.reward.std(0, ddof=1) / np.sqrt(count) if count > 1 else [float("nan")] * 99
        scores = {name: float(score.mean()) for name, score in self.scores.items()}
        return {
            "game": game,
            "episodes": count,
            "team_mean": float(self.reward.mean()),
            "seats": [
                {
                    "player": player,
                    "reward": float(self.reward[:, seat].mean()),
                    "stderr": float(error[seat]),
                    "steps": float(self.steps[:, seat].mean()),
                }
                for seat, player in enumerate(players)
            ],
            **({"scores": scores} if scores else {}),
            **({"restarts": self.restarts} if self.restarts else {}),
        }


def one_step(
    game: Game,
    groups: tuple[Group, ...],
    key: PRNGKeyArray,
    table: Table,
    over: Bool[Array, " copy"],
) -> tuple[Table, Int[Array, "copy seat"], Float[Array, "copy seat"], Bool[Array, " copy"]]:
    """One step of all copies without reset: the new table, actions, rewards, which are over now.

    Copies that were over before count no more and their players remember no more; what becomes of
    their states is of no account.
    """
    copies, seats = table.gained.shape
    streams = jnp.arange(seats)
    step_key, act_key, choice_key = jax.random.split(key, 3)
    uniform = seat_uniforms(choice_key, streams, copies)
    keys = seat_keys(act_key, streams)
    _, action, _, views, memory = act_all(game, groups, keys, uniform, table)
    counts = jax.vmap(game.alive)(table.state) & ~over[:, None]
    state, outcome = jax.vmap(game.step)(jax.random.split(step_key, copies), table.state, action)
    ended = outcome.truncated | ~jnp.any(jax.vmap(game.alive)(state), axis=1)
    memory = notice_all(game, groups, views, state, ended, memory)
    reward = jnp.where(over[:, None], 0.0, outcome.reward)

    def remember(new: Array, old: Array) -> Array:
        return jnp.where(over.reshape(1, -1, *(1,) * (new.ndim - 2)), old, new)

    table = table._replace(
        state=state,
        memory=jax.tree.map(remember, memory, table.memory),
        time=table.time + 1,
        gained=table.gained + reward,
        stayed=table.stayed + counts,
        last_action=jnp.where(counts, action, table.last_action),
        last_reward=jnp.where(counts, reward, table.last_reward),
    )
    return table, action, reward, over | ended


def play_episodes(
    game: Game, groups: tuple[Group, ...], key: PRNGKeyArray, copies: int, episodes: int
) -> tuple[
    Float[Array, "episode copy seat"],
    Int[Array, "episode copy seat"],
    dict[str, Float[Array, "episode copy"]],
]:
    """Every copy plays `episodes` whole episodes: rewards and steps in the game of every seat, and
    the game's scores."""

    def one_episode(kept: dict[str, Any], given: tuple) -> tuple[dict[str, Any], tuple]:
        key, number = given
        reset_key, play_key = jax.random.split(key)
        table = new_table(game, (), reset_key, copies)
        table = table._replace(episode=table.episode + number, **kept)

        def unfinished(carry: tuple) -> Bool[Array, ""]:
            return ~jnp.all(carry[1])

        def step(carry: tuple) -> tuple:
            table, before, time, scores = carry
            key = jax.random.fold_in(play_key, time)
            table, _, _, over = one_step(game, groups, key, table, before)
            scores = jax.tree.map(
                lambda kept, now: jnp.where(before, kept, now), scores, scores_of(table)
            )
            return table, over, time + 1, scores

        def scores_of(table: Table) -> dict[str, Float[Array, " copy"]]:
            return dict(jax.vmap(game.scores)(table.state))

        start = (table, jnp.zeros(copies, bool), 0, scores_of(table))
        table, _, _, scores = jax.lax.while_loop(unfinished, step, start)
        following = {name: getattr(table, name) for name in kept}
        return following, (table.gained, table.stayed, scores)

    memory = tuple(group.start(copies) for group in groups)
    kept = {"memory": memory, **nothing_done(copies, game.seats)}
    given = (jax.random.split(key, episodes), jnp.arange(episodes))
    _, counted = jax.lax.scan(one_episode, kept, given)
    return counted


_play_episodes = jax.jit(play_episodes, static_argnames=("copies", "episodes"))


def play_match(
    game: Game,
    groups: tuple[Group, ...],
    episodes: int,
    seed: int = 0,
    copies: int | None = None,
) -> Match:
    """Play exactly `episodes` episodes, spread over `copies` game copies (default: up to 1024, or
    up to 64 environments in worker processes)."""
    if episodes < 1:
        raise UserError(f"episodes must be at least 1, not {episodes}")
    if copies is not None and copies < 1:
        raise UserError(f"copies must be at least 1, not {copies}")
    most = MOST_WORKER_COPIES if isinstance(game, WorkerGame) else MOST_COPIES
    each = -(-episodes // min(copies or most, episodes))
    copies = -(-episodes // each)
    played: Any
    restarts = 0
    if isinstance(game, WorkerGame):
        *played, restarts = play_worker_episodes(game, groups, seed, copies, each)
    else:
        played = _play_episodes(game, groups, jax.random.key(seed), copies, each)
    # The last round may hold more episodes than asked for; which copies are left out is fixed
    # beforehand, so it does not depend on how they went.
    flat = jax.tree.map(lambda x: np.asarray(x).reshape(-1, *x.shape[2:])[:episodes], played)
    reward, steps, scores = flat
    return Match(reward, steps, scores, restarts)


class RecordedEpisode(NamedTuple):
    """One episode to look at: T steps. states: T + 1 single states; actions, rewards: [T, seat]."""

    states: list[State]
    actions: np.ndarray
    rewards: np.ndarray


def record_episode(game: Game, groups: tuple[Group, ...], seed: int = 0) -> RecordedEpisode:
    """Play one episode in one copy and keep every state."""
    if isinstance(game, WorkerGame):
        return RecordedEpisode(*record_worker_episode(game, groups, seed))
    states: list[State] = []
    actions, rewards = [], []
    for block in play_blocks(_plain_step, game, groups, seed):
        states = states[:-1] + block.states
        actions.append(block.kept["action"][: block.steps, 0])
        rewards.append(block.kept["reward"][: block.steps, 0])
    return RecordedEpisode(states, np.concatenate(actions), np.concatenate(rewards))


def _plain_step(
    game: Game, groups: tuple[Group, ...], key: PRNGKeyArray, table: Table
) -> tuple[Table, Kept]:
    """A step of the only copy, and what is kept of it."""
    before = jax.tree.map(lambda x: x[0], table.state)
    table, action, reward, over = one_step(game, groups, key, table, jnp.zeros(1, bool))
    return table, {"state": before, "action": action, "reward": reward, "over": over}
