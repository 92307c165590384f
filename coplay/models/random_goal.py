"""A game's goals with one candidate more: to have none, and to act at random.

A stranger may follow no goal at all. Its model needs no network: all legal actions are equally
probable, or as probable as their rates say (`coplay.models.action_rates`). Acting at random is a
trait and no goal: it is never realised, and it lasts even if the player catches something.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer

from coplay.core.goals import Goals
from coplay.models.action_rates import random_policy


class WithRandomGoal(Goals):
    """The candidates and habits of `known`, and acting at random as the last of both. Counts of
    realised goals have its column too, always 0."""

    known: Goals

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.known.names, "random")

    @property
    def unrealised(self) -> int:
        return self.known.unrealised

    @property
    def habit_names(self) -> tuple[str, ...]:
        return (*self.known.habit_names, "random")

    def features(self, state: Any) -> Float[Array, "seat goal feature"]:
        """The features of the goals and a last one that says random."""
        known = self.known.features(state)
        return jnp.pad(known, ((0, 0), (0, 1), (0, 1))).at[:, -1, -1].set(1.0)

    def open(self, state: Any) -> Bool[Array, "seat goal"]:
        return jnp.pad(self.known.open(state), ((0, 0), (0, 1)), constant_values=True)

    def realised(self, state: Any, following: Any) -> Int[Array, " seat"]:
        return self.known.realised(state, following)

    def habit(self, counts: Integer[Array, "*batch goal"]) -> Int[Array, "*batch"]:
        return self.known.habit(counts[..., :-1])

    def prior(
        self,
        habits: Float[Array, "*batch habit"],
        counts: Integer[Array, "*batch goal"],
        open_: Bool[Array, "*batch goal"],
    ) -> Float[Array, "*batch goal"]:
        random = habits[..., -1:]
        aimed = 1.0 - random
        given = habits[..., :-1] / jnp.maximum(aimed, 1e-30)
        known = self.known.prior(given, counts[..., :-1], open_[..., :-1])
        return jnp.concatenate([known * aimed, random], axis=-1)


def with_random_goal(
    log_probs: Float[Array, "*batch goal action"],
    legal: Bool[Array, "*batch action"],
    rates: Float[Array, "*batch action"] | None,
) -> Float[Array, "*batch goals action"]:
    """Log-probabilities of actions for every goal, and for no goal at all, by `log_rates`."""
    random = random_policy(rates, legal)
    return jnp.concatenate([log_probs, random[..., None, :]], axis=-2)
