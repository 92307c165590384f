"""Sums along short axes, and choices between rows.

On CPU a sum along an axis of a few numbers is a call into a library, with all its numbers written
out first. Added up one by one it becomes part of the loop that made them.
"""

from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Shaped

Tree = TypeVar("Tree")


def sum_in_order(
    values: Shaped[Array, "..."], axis: int = -1, keepdims: bool = False
) -> Shaped[Array, "..."]:
    """The sum along a short axis from left to right, as a running sum would give it."""
    parts = jnp.moveaxis(values, axis, 0)
    total = jnp.zeros(parts.shape[1:], values.dtype)
    for part in parts:
        total = total + part
    return jnp.expand_dims(total, axis) if keepdims else total


def masked_mean(
    values: Float[Array, "*shape"], mask: Bool[Array, "*shape"], axis: int | tuple[int, ...] | None
) -> Float[Array, "*rest"]:
    """Mean over the entries in the mask; 0 if there are none."""
    total = jnp.sum(jnp.where(mask, values, 0.0), axis=axis)
    return total / jnp.maximum(jnp.sum(mask, axis=axis), 1)


def where_rows(mask: Bool[Array, " row"], new: Tree, old: Tree) -> Tree:
    """`new` in the rows of the mask, `old` in all others; trees of arrays [row, ...]."""

    def choose(new: Array, old: Array) -> Array:
        return jnp.where(mask.reshape(-1, *(1,) * (new.ndim - 1)), new, old)

    return jax.tree.map(choose, new, old)
