"""Goals that no game declares: prototypes, kinds of behaviour that are found while learning.

The opponent model sees the number of a prototype where it would see a goal. Which prototype a
co-player follows is inferred by Bayes' rule from its actions. The model of a prototype learns from
the steps of the co-players that are believed to follow it. This is expectation maximisation in
small steps: what is predicted better by one prototype is learned by it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer

from coplay.core.goals import Goals, restricted
from coplay.core.numerics import where_rows


class PrototypeGoals(Goals):
    """So many prototypes. Each is always open and never realised; it is a habit, too."""

    seats: int = eqx.field(static=True)
    number: int = eqx.field(static=True)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"prototype {index}" for index in range(self.number))

    @property
    def unrealised(self) -> int:
        return -1

    @property
    def habit_names(self) -> tuple[str, ...]:
        return self.names

    def features(self, state: Any) -> Float[Array, "seat goal feature"]:
        """The number of the prototype, one-hot."""
        return jnp.broadcast_to(jnp.eye(self.number), (self.seats, self.number, self.number))

    def open(self, state: Any) -> Bool[Array, "seat goal"]:
        return jnp.ones((self.seats, self.number), bool)

    def realised(self, state: Any, following: Any) -> Int[Array, " seat"]:
        return jnp.full(self.seats, -1)

    def habit(self, counts: Integer[Array, "*batch goal"]) -> Int[Array, "*batch"]:
        """None: no step shows a prototype for certain."""
        return jnp.full(counts.shape[:-1], -1)

    def prior(
        self,
        habits: Float[Array, "*batch habit"],
        counts: Integer[Array, "*batch goal"],
        open_: Bool[Array, "*batch goal"],
    ) -> Float[Array, "*batch goal"]:
        return restricted(habits, open_)


def shares_in_hindsight(
    belief: Float[Array, "time copy *batch goal"], over: Bool[Array, "time copy"], number: int
) -> Float[Array, "time copy *batch prototype"]:
    """How probable each of so many prototypes is at every step, by the last belief in its episode.

    belief: over the prototypes, and perhaps one candidate more. over: the episode ended here.
    """
    known = belief[..., :number]
    shares = restricted(known, jnp.ones_like(known, bool))

    def backward(
        later: Float[Array, "copy *batch prototype"], row: tuple[Array, Array]
    ) -> tuple[Array, Array]:
        now, ended = row
        last = where_rows(ended, now, later)
        return last, last

    return jax.lax.scan(backward, shares[-1], (shares, over), reverse=True)[1]
