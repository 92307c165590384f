"""Asking a model for some of many trees.

What a model costs grows with the trees it is asked for, and in most simulations some do not need
it. Compiled programs have fixed sizes, so it is asked for one of a few shares of all trees.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool

from coplay.search.selection import SAFE

SMALL = 128
"""With fewer trees the model is asked for all of them: a call costs what starting it costs."""


def call_where(
    model: Callable[..., Any], which: Bool[Array, " tree"], shares: tuple[float, ...], *told: Any
) -> Any:
    """What `model(*told, trees)` says of the trees that are marked; of others it has no meaning.

    It is asked for the smallest of these shares of all trees in which they have room, told which
    trees these are; or for all, told None; or, if none is marked, not at all. `told` and what the
    model says are pytrees of arrays [tree, ...].
    """
    trees = which.shape[0]
    sizes = [int(share * trees) for share in shares] if trees >= SMALL else []
    like = jax.eval_shape(lambda *told: model(*told, None), *told)

    def none(*_: Any) -> Any:
        return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), like)

    def some(size: int, *told: Any) -> Any:
        place = jnp.cumsum(which) - 1
        who = jnp.zeros(size, jnp.int32)
        who = who.at[jnp.where(which, place, size)].set(
            jnp.arange(trees, dtype=jnp.int32), mode="drop", unique_indices=True
        )
        told = jax.tree.map(lambda x: x.at[who].get(mode=SAFE), told)
        back = jnp.where(which, place, 0)
        return jax.tree.map(lambda x: x.at[back].get(mode=SAFE), model(*told, who))

    def everyone(*told: Any) -> Any:
        return model(*told, None)

    number = jnp.sum(which)
    how = sum(any_in_batch(number > size).astype(jnp.int32) for size in (0, *sizes))
    branches: list[Callable[..., Any]] = [
        none,
        *(functools.partial(some, size) for size in sizes),
        everyone,
    ]
    return jax.lax.switch(how, branches, *told)


@custom_vmap
def any_in_batch(flags: Bool[Array, "*shape"]) -> Bool[Array, ""]:
    """Whether any flag is set; under `vmap`, in any of the batch.

    A loop over this goes on for all as long as it does for one. That keeps its condition a single
    number: a condition per element would make `vmap` copy all that the loop carries at every turn.
    """
    return jnp.any(flags)


@any_in_batch.def_vmap
def _any_in_batch(
    size: int, batched: list[bool], flags: Bool[Array, "*shape"]
) -> tuple[Bool[Array, ""], bool]:
    return any_in_batch(flags), False
