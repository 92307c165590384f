"""What HOP learns from."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer

from coplay.core.game import Observation


class ReplayRows(NamedTuple):
    """What is learned from, by rows [row] = [time * copy]; `seat` are all seats of the game, `own`
    the active ones.

    observation: [row, seat] ego views. alive: in the game. action: as executed.
    goal: [row, seat, feature] of the goal the seat turned out to have; labelled: it is known.
    character: [row, seat] who the seat was (`coplay.models.personas`), as far as it is an own one.
    told: [row, own, input] what actor and critic were told (`belief_context`), but for the drive.
    policy: [row, own, action] what the search chose from. target: [row, own] discounted return.
    """

    observation: Observation
    alive: Bool[Array, "row seat"]
    action: Integer[Array, "row seat"]
    goal: Float[Array, "row seat feature"]
    labelled: Bool[Array, "row seat"]
    persona: Integer[Array, "row seat"]
    context: Float[Array, "row own input"]
    policy: Float[Array, "row own action"]
    target: Float[Array, "row own"]


class RolloutInfo(NamedTuple):
    """Beside the rows and the trajectory of the own seats.

    episode: [time + 1, copy] number of the episode, also after the last step.
    worth: [time, copy, own, drive] of each step to players with each drive, and at last without.
    surest: [row, seat] probability of the action that a seat was most likely to choose, by the
        policy it acted by.
    """

    episode: Int[Array, "time copy"]
    persona_rewards: Float[Array, "time copy own drive"]
    oracle: Float[Array, "row seat"]


class Pairs(NamedTuple):
    """Steps of co-players, [set, model, sample, ...]. mask: in the game, with a known goal."""

    observation: Observation
    goal: Float[Array, "*set sample feature"]
    action: Integer[Array, "*set sample"]
    mask: Bool[Array, "*set sample"]


def equal_shares(
    replay: ReplayRows, filled: Int[Array, ""], personas: int
) -> Float[Array, "row seat"]:
    """By which chance to draw each row for each seat, summed up along the rows: only steps in which
    it was in the game and not aimless, and as many of the one character as of the other. Who goes
    straight for what it wants is out of the game soon, and has few steps to learn from."""
    rows = replay.alive.shape[0]
    there = replay.alive & (jnp.arange(rows) >= rows - filled)[:, None]
    kinds = jnp.arange(-1, personas)
    of_kind = there[..., None] & (replay.persona[..., None] == kinds)  # [row, seat, kind]
    number = jnp.sum(of_kind, axis=0, dtype=jnp.float32)
    share = jnp.sum(of_kind / jnp.maximum(number, 1.0), axis=-1)
    share = share / jnp.maximum(jnp.sum(number > 0, axis=-1), 1)
    return jnp.cumsum(share, axis=0)


def draw_rows(
    shares: Float[Array, "row seat"], uniform: Float[Array, "*batch"]
) -> Int[Array, "seat *batch"]:
    """Rows by their shares, the same `uniform` in [0, 1) for every seat."""
    last = shares.shape[0] - 1
    found = jax.vmap(lambda share: jnp.searchsorted(share, uniform * share[-1], side="right"))
    return jnp.minimum(found(shares.T), last)


def picked(replay: ReplayRows, index: Int[Array, "seat sample"], own: np.ndarray) -> ReplayRows:
    """The rows `index` of each seat: fields are [seat, sample, ...] and [own, sample, ...]; `own`:
    the seats of the own columns."""

    def rows(x: Any, index: Array) -> Any:
        return jax.tree.map(lambda x: jax.vmap(lambda x, i: x[i], (1, 0))(x, index), x)

    mine = {"context", "policy", "target"}
    return ReplayRows(
        **{
            name: rows(value, index[own] if name in mine else index)
            for name, value in replay._asdict().items()
        }
    )
