"""Matches: play whole episodes with given players and count what every seat got.

Each game copy plays the same number of whole episodes, one after the other. Counting the episodes
that happen to finish first in a running rollout would favour short ones.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.games.game import Game, State
from coplay.players.player import Group
from coplay.training.rollout import Table, act_all, new_table, seat_keys

MOST_COPIES = 1024


class Match(NamedTuple):
    """Episodes of one seating. reward, steps: [episode, seat] NumPy arrays."""

    reward: np.ndarray
    steps: np.ndarray

    def record(self, game: str, players: list[str]) -> dict[str, Any]:
        """The match as a JSON object: means and standard errors of every seat."""
        count = len(self.reward)
        error = self.reward.std(0, ddof=1) / np.sqrt(count) if count > 1 else [float("nan")] * 99
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
        }


def one_step(
    game: Game, groups: tuple[Group, ...], key: PRNGKeyArray, table: Table
) -> tuple[Table, tuple[Int[Array, "copy seat"], Float[Array, "copy seat"], Bool[Array, " copy"]]]:
    """One step of all copies without reset: the new table, actions, rewards, which ended."""
    copies, seats = table.gained.shape
    streams = jnp.arange(seats)
    step_key, act_key, choice_key = jax.random.split(key, 3)
    uniform = jax.vmap(lambda k: jax.random.uniform(k, (copies,)))(seat_keys(choice_key, streams))
    _, action, _, memory = act_all(game, groups, seat_keys(act_key, streams), uniform, table)
    alive = jax.vmap(game.alive)(table.state)
    state, outcome = jax.vmap(game.step)(jax.random.split(step_key, copies), table.state, action)
    over = outcome.truncated | ~jnp.any(jax.vmap(game.alive)(state), axis=1)
    table = table._replace(
        state=state,
        memory=memory,
        time=table.time + 1,
        gained=table.gained + outcome.reward,
        stayed=table.stayed + alive,
    )
    return table, (action, outcome.reward, over)


def play_episodes(
    game: Game, groups: tuple[Group, ...], key: PRNGKeyArray, copies: int, episodes: int
) -> tuple[Float[Array, "episode copy seat"], Int[Array, "episode copy seat"]]:
    """Every copy plays `episodes` whole episodes: rewards and steps in the game of every seat."""

    def one_episode(table: Table, key: PRNGKeyArray) -> tuple[Table, tuple]:
        reset_key, play_key = jax.random.split(key)
        fresh = new_table(game, (), reset_key, copies)
        table = fresh._replace(memory=table.memory, episode=table.episode)

        def going(carry: tuple) -> Bool[Array, ""]:
            return ~jnp.all(carry[1])

        def go(carry: tuple) -> tuple:
            table, over, step = carry
            stepped, (_, _, ended) = one_step(
                game, groups, jax.random.fold_in(play_key, step), table
            )
            # Copies whose episode is over stand still until the last one ends.
            table = _keep(over, table, stepped)
            return table, over | ended, step + 1

        table, _, _ = jax.lax.while_loop(going, go, (table, jnp.zeros(copies, bool), 0))
        return table._replace(episode=table.episode + 1), (table.gained, table.stayed)

    table = new_table(game, groups, key, copies)
    _, counted = jax.lax.scan(one_episode, table, jax.random.split(key, episodes))
    return counted


def _keep(over: Bool[Array, " copy"], old: Table, new: Table) -> Table:
    """The old table in copies that are over; memories have the copy axis second."""

    def first(a: Array, b: Array) -> Array:
        return jnp.where(over.reshape(-1, *(1,) * (a.ndim - 1)), a, b)

    def second(a: Array, b: Array) -> Array:
        return jnp.where(over.reshape(1, -1, *(1,) * (a.ndim - 2)), a, b)

    kept = jax.tree.map(first, old._replace(memory=()), new._replace(memory=()))
    return kept._replace(memory=jax.tree.map(second, old.memory, new.memory))


_play_episodes = jax.jit(play_episodes, static_argnames=("copies", "episodes"))


def play_match(
    game: Game,
    groups: tuple[Group, ...],
    episodes: int,
    seed: int = 0,
    copies: int | None = None,
) -> Match:
    """Play exactly `episodes` episodes, spread over `copies` game copies (default: up to 1024)."""
    each = -(-episodes // min(copies or MOST_COPIES, episodes))
    copies = -(-episodes // each)
    reward, steps = _play_episodes(game, groups, jax.random.key(seed), copies, each)
    # The last round may hold more episodes than asked for; which copies are left out is fixed
    # beforehand, so it does not depend on how they went.
    flat = (np.asarray(x).reshape(-1, game.seats)[:episodes] for x in (reward, steps))
    return Match(*flat)


class Episode(NamedTuple):
    """One episode to look at: T steps. states: T + 1 single states; actions, rewards: [T, seat]."""

    states: list[State]
    actions: np.ndarray
    rewards: np.ndarray


def record_episode(game: Game, groups: tuple[Group, ...], seed: int = 0) -> Episode:
    """Play one episode in one copy and keep every state."""
    key = jax.random.key(seed)
    table = new_table(game, groups, key, 1)
    step = jax.jit(one_step)
    states, actions, rewards = [table.state], [], []
    over = False
    while not over:
        table, (action, reward, ended) = step(
            game, groups, jax.random.fold_in(key, len(states)), table
        )
        states.append(table.state)
        actions.append(np.asarray(action[0]))
        rewards.append(np.asarray(reward[0]))
        over = bool(ended[0])
    single = [jax.tree.map(lambda x: np.asarray(x[0]), state) for state in states]
    return Episode(single, np.stack(actions), np.stack(rewards))
