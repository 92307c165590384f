"""The path through the trees of a decision that was tried most."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from coplay.core.player import SearchTrees

NOTHING = -1
"""In place of an action behind the end of a path."""
DIGITS = 4
"""Q that agree to so many digits count as equal, as where trees are shown."""


def principal_path(trees: SearchTrees, steps: int) -> Int[Array, "copy step"]:
    """The actions that were tried most, one after the other, over the trees of a decision together;
    of equals the one of higher Q. `NOTHING` from where an action has fewer than two visits.

    trees: [copy, tree, ...].
    """
    return jax.vmap(lambda some: _path_of_one(some, steps))(trees)


def _path_of_one(trees: SearchTrees, steps: int) -> Int[Array, " step"]:
    number = jnp.arange(trees.visits.shape[0])

    def down(node: Int[Array, " tree"], _: None) -> tuple[Int[Array, " tree"], Int[Array, ""]]:
        visits = _at(trees.visits, node)
        total = jnp.sum(visits, axis=0)
        q = jnp.sum(visits * _at(trees.q, node), axis=0) / jnp.maximum(total, 1.0)
        most = jnp.max(total)
        best = jnp.argmax(jnp.where(total == most, jnp.round(q, DIGITS), -jnp.inf))
        # A tree in which nothing follows has no node any more.
        child = trees.child[number, jnp.maximum(node, 0), best]
        taken = (node >= 0) & (visits[:, best] > 0) & (most >= 2)
        return jnp.where(taken, child, NOTHING), jnp.where(most >= 2, best, NOTHING)

    def _at(values: Float[Array, "tree node action"], node: Int[Array, " tree"]) -> Array:
        there = (node >= 0)[:, None]
        return jnp.where(there, values[number, jnp.maximum(node, 0)], 0.0)

    root = jnp.zeros(number.shape, trees.child.dtype)
    return jax.lax.scan(down, root, None, length=steps)[1].astype(jnp.int32)
