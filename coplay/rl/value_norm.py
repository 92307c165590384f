"""Normalised values: a critic predicts (value - mean) / deviation, with running statistics of its
targets, so that the scale of the rewards does not matter to it."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from coplay.core.numerics import masked_mean

LEAST_VARIANCE = 1e-2
DECAY = 0.999  # how much of the running sums remains after an update


class ValueNorm(NamedTuple):
    """Running sums; the mean is mean / weight and likewise the mean square, which removes the pull
    of the zeros that they start from."""

    mean: Float[Array, "*set"]
    square: Float[Array, "*set"]
    weight: Float[Array, "*set"]


def new_norm() -> ValueNorm:
    """Before anything was seen: values are as they are."""
    zero = jnp.zeros(())
    return ValueNorm(zero, zero, zero)


def statistics(norm: ValueNorm) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Mean and standard deviation; 0 and 1 before anything was seen."""
    seen = norm.weight > 0
    weight = jnp.where(seen, norm.weight, 1.0)
    mean = norm.mean / weight
    variance = jnp.maximum(norm.square / weight - jnp.square(mean), LEAST_VARIANCE)
    return jnp.where(seen, mean, 0.0), jnp.where(seen, jnp.sqrt(variance), 1.0)


def updated(
    norm: ValueNorm,
    values: Float[Array, "*shape"],
    mask: Bool[Array, "*shape"],
    decay: float = DECAY,
) -> ValueNorm:
    """With the values in the mask as the newest."""
    new = (
        masked_mean(values, mask, None),
        masked_mean(jnp.square(values), mask, None),
        jnp.any(mask).astype(jnp.float32),
    )
    # Nothing new: nothing changes.
    keep = jnp.where(new[2] > 0, decay, 1.0)
    return ValueNorm(*(keep * old + (1 - keep) * x for old, x in zip(norm, new, strict=True)))
