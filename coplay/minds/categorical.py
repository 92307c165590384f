"""Categorical distributions over legal actions, from logits.

Illegal actions get a logit whose probability is exactly zero in float32, and gradients stay finite,
which they would not with minus infinity. A player that never takes a legal action gives it `NEVER`,
which is far above the logit of illegal ones.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from coplay.sums import sum_in_order

NEVER, ILLEGAL = -1e9, -1e30


def log_policy(
    logits: Float[Array, "*batch action"], legal: Bool[Array, "*batch action"]
) -> Float[Array, "*batch action"]:
    """Log-probabilities with the illegal actions left out."""
    return jax.nn.log_softmax(jnp.where(legal, logits, ILLEGAL), axis=-1)


def even(legal: Bool[Array, "*batch action"]) -> Float[Array, "*batch action"]:
    """Log-probabilities of acting by chance."""
    number = sum_in_order(legal.astype(jnp.float32), keepdims=True)
    return jnp.where(legal, -jnp.log(number), ILLEGAL)


def only_best(
    logits: Float[Array, "*batch action"], legal: Bool[Array, "*batch action"]
) -> Float[Array, "*batch action"]:
    """Logits that leave the best legal action alone."""
    best = jnp.argmax(jnp.where(legal, logits, -jnp.inf), axis=-1)
    return jnp.where(best[..., None] == jnp.arange(logits.shape[-1]), 0.0, NEVER)


def sample(
    uniform: Float[Array, "*batch"], log_probs: Float[Array, "*batch action"]
) -> Int[Array, "*batch"]:
    """The action whose stretch of the cumulative distribution holds `uniform` in [0, 1).

    An action of probability zero has an empty stretch and is never taken: rounding shortens the
    last stretch that is not empty, because `uniform` is scaled by the sum as it came out.
    """
    probs = jnp.exp(log_probs)
    actions = probs.shape[-1]
    below = jnp.zeros_like(uniform)
    total = sum_in_order(probs)
    target = uniform * total
    action = jnp.zeros(uniform.shape, jnp.int32)
    for index in range(actions):
        below = below + probs[..., index]
        action = action + (below <= target)
    # uniform * total may round up to total itself.
    last = actions - 1 - jnp.argmax(jnp.flip(probs > 0, axis=-1), axis=-1)
    return jnp.minimum(action, last).astype(jnp.int32)


def take(
    values: Float[Array, "*batch action"], action: Int[Array, "*batch"]
) -> Float[Array, "*batch"]:
    """The value of the chosen action. A one-hot sum: batched gathers are slow on CPU."""
    chosen = action[..., None] == jnp.arange(values.shape[-1])
    return jnp.sum(jnp.where(chosen, values, 0.0), axis=-1)


def entropy(log_probs: Float[Array, "*batch action"]) -> Float[Array, "*batch"]:
    """-sum p log p; actions of probability zero contribute nothing."""
    return -jnp.sum(jnp.exp(log_probs) * log_probs, axis=-1)


def kl(
    log_probs: Float[Array, "*batch action"], other: Float[Array, "*batch action"]
) -> Float[Array, "*batch"]:
    """KL(first || other), exactly, from the log-probabilities of both."""
    return jnp.sum(jnp.exp(log_probs) * (log_probs - other), axis=-1)
