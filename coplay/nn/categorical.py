"""Categorical distributions over legal actions, from logits.

Illegal actions get a logit whose probability is exactly zero in float32, and gradients stay finite,
which they would not with minus infinity. A player that never takes a legal action gives it `NEVER`,
which is far above the logit of illegal ones.

Actions are few and batches long, so what runs over actions is worked out with the actions as the
first axis and the batch as one other: on CPU as vectors along the batch, where a sum over the last
axis would be a call into a library for a handful of numbers each. Between two of these functions
XLA leaves out that the axes are turned back and round again.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped

from coplay.core.numerics import sum_in_order

NEVER, ILLEGAL = -1e9, -1e30


def log_policy(
    logits: Float[Array, "*batch action"], legal: Bool[Array, "*batch action"]
) -> Float[Array, "*batch action"]:
    """Log-probabilities with the illegal actions left out."""
    logits, legal = jnp.broadcast_arrays(logits, legal)
    first = jnp.where(_first(legal), _first(logits), ILLEGAL)
    first = first - jax.lax.stop_gradient(jnp.max(first, axis=0))
    first = first - jnp.log(jnp.sum(jnp.exp(first), axis=0))
    return first.T.reshape(logits.shape)


def uniform_policy(legal: Bool[Array, "*batch action"]) -> Float[Array, "*batch action"]:
    """Log-probabilities of acting by chance."""
    number = sum_in_order(legal.astype(jnp.float32), keepdims=True)
    return jnp.where(legal, -jnp.log(number), ILLEGAL)


def mixed(
    log_probs: Float[Array, "*batch action"], legal: Bool[Array, "*batch action"], share: float
) -> Float[Array, "*batch action"]:
    """Log-probabilities of acting by chance in this share of all cases, and else by `log_probs`."""
    chance = uniform_policy(legal) + jnp.log(share)
    return jnp.where(legal, jnp.logaddexp(log_probs + jnp.log1p(-share), chance), ILLEGAL)


def greedy(
    logits: Float[Array, "*batch action"], legal: Bool[Array, "*batch action"]
) -> Float[Array, "*batch action"]:
    """Logits that leave the best legal action alone."""
    best = jnp.argmax(jnp.where(legal, logits, -jnp.inf), axis=-1)
    return jnp.where(best[..., None] == jnp.arange(logits.shape[-1]), 0.0, NEVER)


def cdf(weights: Float[Array, "*batch action"]) -> Float[Array, "*batch action"]:
    """Where the stretch of each action ends, if they are as long as these weights and lie one after
    the other: the cumulative distribution, scaled."""
    ends: list[Float[Array, " *batch"]] = []
    for part in jnp.moveaxis(weights, -1, 0):
        ends.append(ends[-1] + part if ends else part)
    return jnp.stack(ends, axis=-1)


def sample_cdf(
    uniform: Float[Array, "*batch"], ends: Float[Array, "*batch action"]
) -> Int[Array, "*batch"]:
    """The action whose stretch (`cdf`) holds `uniform` in [0, 1).

    An action of probability zero has an empty stretch and is never taken: `uniform` is scaled by
    the sum as it came out, and a float32 below 1 times a normal one is below it, also rounded.
    """
    parts = jnp.moveaxis(ends, -1, 0)
    target = uniform * parts[-1]
    action = jnp.zeros(uniform.shape, jnp.int32)
    for end in parts[:-1]:
        action = action + (end <= target)
    return action


def sample(
    uniform: Float[Array, "*batch"], log_probs: Float[Array, "*batch action"]
) -> Int[Array, "*batch"]:
    """An action by its probability, see `sample_cdf`."""
    return sample_cdf(uniform, cdf(jnp.exp(log_probs)))


def take(
    values: Float[Array, "*batch action"], action: Int[Array, "*batch"]
) -> Float[Array, "*batch"]:
    """The value of the chosen action. A one-hot sum: batched gathers are slow on CPU."""
    chosen = action.reshape(-1) == jnp.arange(values.shape[-1])[:, None]
    return jnp.sum(jnp.where(chosen, _first(values), 0.0), axis=0).reshape(action.shape)


def entropy(log_probs: Float[Array, "*batch action"]) -> Float[Array, "*batch"]:
    """-sum p log p; actions of probability zero contribute nothing."""
    first = _first(log_probs)
    return -jnp.sum(jnp.exp(first) * first, axis=0).reshape(log_probs.shape[:-1])


def kl(
    log_probs: Float[Array, "*batch action"], other: Float[Array, "*batch action"]
) -> Float[Array, "*batch"]:
    """KL(first || other), exactly, from the log-probabilities of both."""
    first = _first(log_probs)
    found = jnp.sum(jnp.exp(first) * (first - _first(other)), axis=0)
    return found.reshape(log_probs.shape[:-1])


def _first(x: Shaped[Array, "*batch action"]) -> Shaped[Array, "action sample"]:
    """Actions first, and all that are alike as one axis."""
    return x.reshape(-1, x.shape[-1]).T
