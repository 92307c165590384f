"""The PPO loss over samples of alive seats, with its parts per seat."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from coplay.core.numerics import masked_mean
from coplay.nn import categorical


class PPOTerms(NamedTuple):
    """Means over the alive samples of each seat, [seat]."""

    policy_loss: Float[Array, " seat"]
    value_loss: Float[Array, " seat"]
    entropy: Float[Array, " seat"]
    kl: Float[Array, " seat"]
    clip_fraction: Float[Array, " seat"]


def ppo_loss(
    log_policy: Float[Array, "sample seat action"],
    value: Float[Array, "sample seat"],
    old_log_policy: Float[Array, "sample seat action"],
    old_value: Float[Array, "sample seat"],
    action: Int[Array, "sample seat"],
    advantage: Float[Array, "sample seat"],
    target: Float[Array, "sample seat"],
    alive: Bool[Array, "sample seat"],
    *,
    clip: float,
    value_clip: float | None,
    entropy_weight: float | Float[Array, ""],
    value_weight: float | Float[Array, ""],
    huber: float | None = None,
    acting: Bool[Array, "sample seat"] | None = None,
) -> tuple[Float[Array, ""], PPOTerms]:
    """policy - entropy_weight * entropy + value_weight * value, averaged over all alive samples.

    policy: -min(r A, clip(r, 1 ± clip) A), r = new / old probability of the action taken.
    value: (V - target)² / 2; with `value_clip` the larger of that and the same for V kept within
    value_clip of the old value. With `huber` the square of an error e is 2 huber |e| - huber² where
    |e| > huber. KL(old || new) is exact, from the stored policies.

    acting: the samples of policy, entropy and KL, if not all that are alive.
    """
    log_ratio = categorical.take(log_policy, action) - categorical.take(old_log_policy, action)
    ratio = jnp.exp(jnp.where(alive, log_ratio, 0.0))
    clipped = jnp.clip(ratio, 1 - clip, 1 + clip)
    policy = -jnp.minimum(ratio * advantage, clipped * advantage)
    error = _square(value - target, huber)
    if value_clip is not None:
        near = old_value + jnp.clip(value - old_value, -value_clip, value_clip)
        error = jnp.maximum(error, _square(near - target, huber))
    entropy = categorical.entropy(log_policy)
    deciding = alive if acting is None else acting
    terms = PPOTerms(
        policy_loss=masked_mean(policy, deciding, 0),
        value_loss=masked_mean(0.5 * error, alive, 0),
        entropy=masked_mean(entropy, deciding, 0),
        kl=masked_mean(categorical.kl(old_log_policy, log_policy), deciding, 0),
        clip_fraction=masked_mean((jnp.abs(ratio - 1) > clip).astype(jnp.float32), deciding, 0),
    )
    if acting is None:
        per_sample = policy - entropy_weight * entropy + value_weight * 0.5 * error
        return masked_mean(per_sample, alive, None), terms
    loss = masked_mean(policy - entropy_weight * entropy, acting, None)
    return loss + value_weight * masked_mean(0.5 * error, alive, None), terms


def _square(error: Float[Array, "*shape"], huber: float | None) -> Float[Array, "*shape"]:
    """The square, or twice Huber's loss."""
    if huber is None:
        return jnp.square(error)
    size = jnp.abs(error)
    return jnp.where(size <= huber, jnp.square(error), 2 * huber * size - huber**2)
