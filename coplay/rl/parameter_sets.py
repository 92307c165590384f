"""Parameter sets: one for all seats of a learner, or one for each; what follows from that.

Learners with sets have the fields of `Learner`, `parameters` in their configuration ("separate" is
one set for each seat), and states whose arrays have a leading [parameter set] axis, among them
`identity` [set, seat of the game, ...].
"""

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key, PRNGKeyArray, Shaped

from coplay.core.learner import Learner
from coplay.core.trajectory import Trajectory, picked_seats, seat_keys
from coplay.nn.networks import ViewShape

Kind = TypeVar("Kind", bound=Learner)
T = TypeVar("T")


def separate(learner: Learner) -> bool:
    """Whether every seat has a set of its own."""
    return learner.config.parameters == "separate"


def set_keys(
    learner: Learner, key: PRNGKeyArray, streams: Int[Array, " seat"]
) -> Key[Array, " set"]:
    """What the sets begin with: of a seat's own set, it hangs on the seat's stream."""
    return seat_keys(key, streams)[np.array(learner.seats)] if separate(learner) else key[None]


def set_rows(learner: Learner) -> np.ndarray:
    """Which sets the active seats use."""
    if not separate(learner):
        return np.array([0])
    return np.array([learner.seats.index(seat) for seat in learner.active])


class SetLearner(Learner):
    """A learner with parameter sets: its fields, and what follows from the sets alone.

    shape: of the ego views. game_seats: how many seats the game has.
    """

    config: Any = eqx.field(static=True)
    shape: ViewShape
    game_seats: int = eqx.field(static=True)
    seats: tuple[int, ...] = eqx.field(static=True)
    active: tuple[int, ...] = eqx.field(static=True)

    @property
    def separate(self) -> bool:
        """Whether every seat has a set of its own."""
        return separate(self)

    @property
    def set_rows(self) -> np.ndarray:
        """Which sets the active seats use."""
        return set_rows(self)

    def active_sets(self, state: T) -> T:
        """The sets of the active seats, [set, ...]."""
        rows = self.set_rows
        return jax.tree.map(lambda x: x[rows], state)

    def with_active_sets(self, state: T, learned: T) -> T:
        """A state with other sets for the active seats."""
        rows = self.set_rows
        return jax.tree.map(lambda x, new: x.at[rows].set(new), state, learned)

    def alone(self: Kind, state: Any, seat: int, at: int) -> tuple[Kind, Any]:
        return alone(self, state, seat, at)


def in_order_of_streams(
    learner: SetLearner,
    state: Any,
    data: T,
    streams: Int[Array, " seat"],
    pick: Callable[[T, Int[Array, " own"]], T] = picked_seats,  # type: ignore[assignment]
) -> tuple[Any, T, Int[Array, " own"]]:
    """What a set that seats share learns from, its seats in the order of their streams: state and
    data of the active seats, and for each of these its place in that order. pick: (data, seats) ->
    data of these seats.

    Gradients are sums over seats. In another order they differ by rounding, out of which clipping
    and the optimiser make more; so which seat somebody sits in would decide what all learn.
    """
    active = np.array(learner.active)
    if learner.separate:
        return state, data, jnp.arange(len(active))
    order = jnp.argsort(streams[active])
    identity = state.identity.at[:, active].set(state.identity[:, active][:, order])
    return state._replace(identity=identity), pick(data, order), jnp.argsort(order)


def over_sets(function: Callable[..., Any], in_axes: Any = 0) -> Callable[..., Any]:
    """`jax.vmap` over parameter sets. One set is done without: with an axis of length 1 in front,
    XLA's CPU compiler lets matrix products inside loops take half as long again."""

    def over(*arguments: Any) -> Any:
        axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(arguments)
        mapped = [one for one, axis in zip(arguments, axes, strict=True) if axis == 0]
        if len(jax.tree.leaves(mapped)[0]) > 1:
            return jax.vmap(function, axes)(*arguments)
        single = (
            jax.tree.map(lambda x: x[0], one) if axis == 0 else one
            for one, axis in zip(arguments, axes, strict=True)
        )
        return jax.tree.map(lambda x: x[None], function(*single))

    return over


def alone(learner: Kind, state: Any, seat: int, at: int) -> tuple[Kind, Any]:
    """See `Learner.alone`: the seat's set, and its identity at its new place."""
    row = learner.seats.index(seat) if separate(learner) else 0
    mine = jax.tree.map(lambda x: x[row : row + 1], state)
    mine = mine._replace(identity=jnp.roll(mine.identity, at - seat, axis=1))
    return dataclasses.replace(learner, seats=(at,), active=(at,)), mine


def by_seat(trajectory: Trajectory) -> Trajectory:
    """The trajectory of each seat alone, as [seat, time, copy, 1, ...]."""
    over = jnp.broadcast_to(trajectory.over, (trajectory.alive.shape[2], *trajectory.over.shape))
    last, memory = late_by_seat((trajectory.last, trajectory.memory))
    rest = trajectory._replace(over=None, last=None, memory=None)  # type: ignore[arg-type]
    return steps_by_seat(rest)._replace(over=over, last=last, memory=memory)


def steps_by_seat(tree: T) -> T:
    """Arrays [time, copy, seat, ...] as [seat, time, copy, 1, ...]."""
    return jax.tree.map(lambda x: jnp.moveaxis(x, 2, 0)[:, :, :, None], tree)


def late_by_seat(tree: T) -> T:
    """Arrays [copy, seat, ...] as [seat, copy, 1, ...]."""
    return jax.tree.map(lambda x: jnp.moveaxis(x, 1, 0)[:, :, None], tree)


def seats_first(
    x: Shaped[Array, "set row time seat *rest"],
) -> Shaped[Array, "all row time *rest"]:
    """What belongs to each seat of each set."""
    sets, rows, steps, seats, *rest = x.shape
    return jnp.moveaxis(x, 3, 1).reshape(sets * seats, rows, steps, *rest)


def stages(batch: Any, terms: Any, gradients: Any) -> dict[str, Any]:
    """See `Learner.stages`. batch: samples [set, row, time, seat of the set, ...] with advantage
    and target. terms: of the loss, [set, seat of the set]. gradients: [set, ...]."""
    seats = jax.tree.map(seats_first, batch)
    each = batch.alive.shape[3]
    return {
        "batch": seats._replace(advantage=None, target=None),
        "advantages": (seats.advantage, seats.target),
        "loss": (
            jax.tree.map(lambda x: x.reshape(-1), terms),
            jax.tree.map(lambda x: jnp.repeat(x, each, axis=0), gradients),
        ),
    }
