"""Which actions a player takes, whatever the state: counted while it acts.

A player without a goal need not take all legal actions alike. Each action has a rate, and legal
actions are taken in proportion to their rates. The rate of an action is how often the player took
it, over how often it would have done so at rate 1 (one step, at each action, of the iteration by
Hunter, 2004, that finds the most likely rates).
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from coplay.core.numerics import sum_in_order
from coplay.nn import categorical


class ActionCounts(NamedTuple):
    """taken: how often each action was taken. expected: how often it would have been at rate 1."""

    taken: Float[Array, "*batch action"]
    expected: Float[Array, "*batch action"]


def no_counts(shape: tuple[int, ...]) -> ActionCounts:
    """Before anything was seen; shape: [..., action]."""
    return ActionCounts(jnp.zeros(shape), jnp.zeros(shape))


def with_action(
    counts: ActionCounts,
    action: Int[Array, "*batch"],
    legal: Bool[Array, "*batch action"],
    weight: Float[Array, "*batch"],
) -> ActionCounts:
    """The counts after an action that counts so much."""
    taken = action[..., None] == jnp.arange(legal.shape[-1])
    rates = jnp.where(legal, jnp.exp(log_rates(counts)), 0.0)
    expected = legal / sum_in_order(rates, keepdims=True)
    weight = weight[..., None]
    return ActionCounts(counts.taken + weight * taken, counts.expected + weight * expected)


def log_rates(counts: ActionCounts) -> Float[Array, "*batch action"]:
    """Logarithms of the rates; beforehand each action is assumed to have been taken once, at rate
    1."""
    return jnp.log((counts.taken + 1.0) / (counts.expected + 1.0))


def random_policy(
    rates: Float[Array, "*batch action"] | None, legal: Bool[Array, "*batch action"]
) -> Float[Array, "*batch action"]:
    """Log-probabilities of a player that takes legal actions by these `log_rates`; None: all
    alike."""
    if rates is None:
        return categorical.uniform_policy(legal)
    return categorical.log_policy(rates, legal)
