"""Collecting datasets: whole episodes among players drawn from a mix, compiled.

Every episode begins at a reset and is played to its end, so short and long ones appear as often as
they occur; a rollout cut at some step would hold too many short ones.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, PRNGKeyArray

from coplay.algorithms.scripted import Mix
from coplay.core.errors import UserError
from coplay.core.game import Game, require_horizon
from coplay.core.goals import hindsight
from coplay.core.group import Group, group_players
from coplay.core.numerics import where_rows
from coplay.core.progress import Told, untold
from coplay.games.adapters.worker_game import WorkerGame
from coplay.games.registry import game_parts
from coplay.matches.dataset import Dataset, Episodes
from coplay.matches.match import one_step
from coplay.matches.rollout import Table, new_table
from coplay.training.players import make_player

COPIES = 256


def collect(
    game_name: str, game_config: Any, mix: str, samples: int, seed: int = 0, told: Told = untold
) -> Dataset:
    """Episodes with `samples` samples; each seat's player is drawn from the mix, such as
    ns,nh,random, anew for each episode."""
    player, kinds = named_mix(game_parts(game_name)[1](game_config), mix), tuple(mix.split(","))
    return collect_from(game_name, game_config, player, kinds, samples, seed, told)


def collect_from(
    game_name: str,
    game_config: Any,
    mix: Mix,
    kinds: tuple[str, ...],
    samples: int,
    seed: int,
    told: Told = untold,
) -> Dataset:
    """Episodes with `samples` samples among players of a mix. kinds: their names.

    The last episode is whole; its steps beyond `samples` are no samples.
    """
    game = game_parts(game_name)[1](game_config)
    (group,) = group_players([mix] * game.seats)
    if samples < 1:
        raise UserError(f"samples must be at least 1, not {samples}")
    if isinstance(game, WorkerGame):
        raise UserError(f"'{game.name}' runs in worker processes, whose states cannot be kept")
    horizon = require_horizon(game)
    play = jax.jit(lambda game, group, key: play_whole(game, group, key, COPIES, horizon))
    parts: list[Episodes] = []
    found, number = 0, 0
    told("samples", 0, samples)
    while found < samples:
        key = jax.random.fold_in(jax.random.key(seed), number)
        parts.append(jax.tree.map(np.asarray, play(game, group, key)))
        found += int(parts[-1].sample.sum())
        number += 1
        told("samples", min(found, samples), samples)
        if number == 3 and not found:
            raise UserError("nobody is ever in the game: there is nothing to collect")
    whole: Episodes = jax.tree.map(lambda *x: np.concatenate(x), *parts)
    # In the order of `Samples`: by episode, seat, time.
    rank = np.cumsum(np.swapaxes(whole.sample, 1, 2)).reshape(
        whole.sample.shape[0], game.seats, horizon
    )
    count = 1 + int(np.argmax(rank[:, -1, -1] >= samples))
    kept: Episodes = jax.tree.map(lambda x: x[:count], whole)
    kept = kept._replace(sample=kept.sample & (np.swapaxes(rank[:count], 1, 2) <= samples))
    return Dataset(game_name, game_config, kinds, seed, kept)


def named_mix(game: Game, mix: str) -> Mix:
    """Players by their names, as in ns,nh,random."""
    entries = mix.split(",")
    if not all(entries) or len(set(entries)) != len(entries):
        raise UserError(f"--mix '{mix}': expected different players, e.g. ns,nh,random")
    return Mix(tuple(make_player(entry, game) for entry in entries))


def play_whole(game: Game, group: Group, key: PRNGKeyArray, copies: int, horizon: int) -> Episodes:
    """One whole episode in every copy, as `Episodes` with [copy] for [episode]."""
    reset_key, play_key = jax.random.split(key)
    table = new_table(game, (group,), reset_key, copies)

    def step(carry: tuple[Table, Bool[Array, " copy"]], key: PRNGKeyArray) -> tuple[tuple, tuple]:
        table, over = carry
        alive = jax.vmap(game.alive)(table.state) & ~over[:, None]
        following, _, reward, ended = one_step(game, (group,), key, table, over)
        # What is over stays as it was.
        state = where_rows(over, table.state, following.state)
        still = jax.vmap(game.alive)(state)
        cut = ended & ~over & jnp.any(still, axis=1)
        row = (
            table.state,
            jax.vmap(game.last_actions)(state).astype(jnp.int8),
            reward,
            alive & ~still,
            cut,
            alive,
            ended,
        )
        return (following._replace(state=state), ended), row

    start = (table, jnp.zeros(copies, bool))
    (table, _), rows = jax.lax.scan(step, start, jax.random.split(play_key, horizon))
    before, action, reward, left, cut, alive, ended = rows
    goal = jnp.full(alive.shape, -1, jnp.int8)
    state = jax.tree.map(lambda x, end: jnp.concatenate([x, end[None]]), before, table.state)
    if game.goals is not None:
        earlier, later = (jax.tree.map(lambda x, s=s: x[s], state) for s in (np.s_[:-1], np.s_[1:]))
        realised = jax.vmap(jax.vmap(game.goals.realised))(earlier, later)
        realised = jnp.where(alive, realised, -1)
        over = ended.at[1:].set(ended[1:] & ~ended[:-1])
        goal = hindsight(realised, over, game.goals.unrealised).astype(jnp.int8)
        goal = jnp.where(alive, goal, jnp.int8(-1))
    played = Episodes(
        state=state,
        action=action,
        reward=reward,
        terminated=left,
        truncated=cut,
        sample=alive,
        kind=table.memory[0].drawn.T.astype(jnp.int8),
        goal=goal,
        length=(horizon - jnp.sum(ended, axis=0) + jnp.any(ended, axis=0)).astype(jnp.int16),
    )
    timed = played._replace(kind=None, length=None)
    timed = jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), timed)
    return timed._replace(kind=played.kind, length=played.length)
