"""Scripted players of iterated matrix games.

A policy is a function of the game and of the ego state; it gives the probabilities of the actions.
The first action of a game is its cooperative one, where it has one.
"""

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from coplay.core.game import ScriptedPolicy, State

GENEROSITY = 1 / 3
"""Probability with which the generous player forgives: with the usual pay-offs 3, 0, 5, 1 of the
prisoner's dilemma the most that nobody can exploit."""
MIXTURES = (10, 25, 75, 90)
"""Percent of the first action, of the players with a fixed mixture."""


def players_of(actions: tuple[str, ...]) -> Mapping[str, ScriptedPolicy]:
    """All scripted players of a game with these actions, by name."""
    named: dict[str, ScriptedPolicy] = {
        f"always-{name.replace(' ', '-')}": always(index) for index, name in enumerate(actions)
    }
    return {
        **named,
        "tit-for-tat": tit_for_tat,
        "generous": generous,
        "suspicious": suspicious,
        "grim": grim,
        "win-stay-lose-shift": win_stay_lose_shift,
        **{f"mixture-{percent}": mixture(percent) for percent in MIXTURES},
    }


@functools.cache  # the same player is the same function: programs are then compiled once
def always(action: int) -> ScriptedPolicy:
    """Takes one action in every round."""

    def always_one(game: Any, ego: State) -> Float[Array, " action"]:
        return jnp.eye(game.actions)[action]

    return always_one


@functools.cache
def mixture(percent: int) -> ScriptedPolicy:
    """Takes the first action with a fixed probability, else one of the others, evenly."""

    def mixed(game: Any, ego: State) -> Float[Array, " action"]:
        first = percent / 100
        return jnp.full(game.actions, (1 - first) / (game.actions - 1)).at[0].set(first)

    return mixed


def _copied(game: Any, ego: State) -> Float[Array, " action"]:
    """The last action of a co-player that is drawn at random."""
    return jnp.mean(jax.nn.one_hot(ego.last[1:], game.actions), axis=0)


def tit_for_tat(game: Any, ego: State) -> Float[Array, " action"]:
    """Begins with the first action, then copies the last action of the co-player."""
    return jnp.where(ego.time == 0, jnp.eye(game.actions)[0], _copied(game, ego))


def suspicious(game: Any, ego: State) -> Float[Array, " action"]:
    """Tit-for-tat that begins with the second action."""
    return jnp.where(ego.time == 0, jnp.eye(game.actions)[1], _copied(game, ego))


def generous(game: Any, ego: State) -> Float[Array, " action"]:
    """Tit-for-tat that forgives: sometimes it takes the first action whatever the co-player did."""
    kind = jnp.eye(game.actions)[0]
    return (1 - GENEROSITY) * tit_for_tat(game, ego) + GENEROSITY * kind


def grim(game: Any, ego: State) -> Float[Array, " action"]:
    """Takes the first action until a co-player took another one, then always the second."""
    return jnp.eye(game.actions)[jnp.any(ego.strayed[1:]).astype(jnp.int32)]


def win_stay_lose_shift(game: Any, ego: State) -> Float[Array, " action"]:
    """Begins with the first action. Repeats its last action if that brought at least the mean of
    its pay-off table, else takes the next action."""
    last = jnp.maximum(ego.last, 0)
    won = game.pay(ego.place, last)[0] >= jnp.mean(game.table(ego.place)[0])
    follows = jnp.where(won, last[0], (last[0] + 1) % game.actions)
    return jnp.eye(game.actions)[jnp.where(ego.time == 0, 0, follows)]
