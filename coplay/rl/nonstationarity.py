"""How much the agents' policies move under each other, from one update to the next.

What an agent learned from was played by the old policies of all others. How far the new ones are
from those is measured here, in the same way for every learner.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from coplay.core.numerics import masked_mean
from coplay.nn import categorical


def policy_shift(
    old: Float[Array, "sample seat action"],
    new: Float[Array, "sample seat action"],
    action: Int[Array, "sample seat"],
    acting: Bool[Array, "sample seat"],
    clip: float,
) -> dict[str, Float[Array, " seat"]]:
    """How the policies moved, from log-policies before and after an update on the same samples.

    policy_shift_kl: KL(old || new) of each agent.
    policy_shift_kl_joint: KL of all agents together. It is the sum over the agents that act,
        because they choose independently given what they see.
    policy_shift_ess: the effective sample size (Σw)² / (n Σw²) of the joint ratio
        w = Π_i new/old, as a share.
    policy_shift_others: mean |Π_{j≠i} new_j/old_j - 1|: how much the others' policies changed.
    policy_shift_clip: the share of an agent's ratios outside of 1 ± clip.

    Joint numbers are the same for every agent.
    """
    seats = action.shape[1]
    kl = jnp.where(acting, categorical.kl(old, new), 0.0)
    log_ratio = categorical.take(new, action) - categorical.take(old, action)
    log_ratio = jnp.where(acting, log_ratio, 0.0)
    joint = jnp.sum(log_ratio, axis=1)
    someone = jnp.any(acting, axis=1)
    weight = jnp.where(someone, jnp.exp(joint), 0.0)
    count = jnp.maximum(jnp.sum(someone), 1)
    ess = jnp.sum(weight) ** 2 / jnp.maximum(count * jnp.sum(weight**2), 1e-12)
    others = jnp.abs(jnp.exp(joint[:, None] - log_ratio) - 1)
    outside = (jnp.abs(jnp.exp(log_ratio) - 1) > clip).astype(jnp.float32)
    return {
        "policy_shift_kl": masked_mean(kl, acting, 0),
        "policy_shift_kl_joint": jnp.full(seats, masked_mean(jnp.sum(kl, axis=1), someone, None)),
        "policy_shift_ess": jnp.full(seats, ess),
        "policy_shift_others": masked_mean(others, acting, 0),
        "policy_shift_clip": masked_mean(outside, acting, 0),
    }


def mean_cosine(gradients: Any) -> Float[Array, " seat"]:
    """Of every agent's gradient, [seat, ...] in all arrays of a tree: its mean cosine with the
    gradients of the other agents; 0 for an agent alone."""
    flat = jnp.concatenate([x.reshape(len(x), -1) for x in jax.tree.leaves(gradients)], axis=1)
    length = jnp.sqrt(jnp.sum(flat**2, axis=1))
    cosine = (flat @ flat.T) / jnp.maximum(length[:, None] * length, 1e-20)
    seats = len(flat)
    if seats == 1:
        return jnp.zeros(1)
    return (jnp.sum(cosine, axis=1) - jnp.diag(cosine)) / (seats - 1)


def js_distance(
    one: Float[Array, "*#batch action"], other: Float[Array, "*#batch action"]
) -> Float[Array, "*batch"]:
    """The Jensen-Shannon distance of two policies from their log-probabilities, 0 to 1: the root
    of the mean of both KLs to the mixture, in bits."""
    one, other = jnp.broadcast_arrays(one, other)
    mixture = jnp.logaddexp(one, other) - jnp.log(2.0)
    divergence = 0.5 * (categorical.kl(one, mixture) + categorical.kl(other, mixture))
    return jnp.sqrt(jnp.maximum(divergence / jnp.log(2.0), 0.0))
