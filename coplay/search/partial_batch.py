"""Calls of a model for some of many trees.

The cost of a model grows with the number of trees, and in most simulations some trees do not need
it. Compiled programs have fixed sizes, so the model is called for one of a few shares of all trees.
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
"""With fewer trees the model is called for all of them: a call costs what starting it costs."""


def call_where(
    model: Callable[..., Any],
    which: Bool[Array, " tree"],
    shares: tuple[float, ...],
    *arguments: Any,
) -> Any:
    """The outputs of `model(*arguments, trees)` for the trees in `which`; those of other trees have
    no meaning.

    The model is called for the smallest of these shares of all trees in which they have room, with
    the numbers of these trees; or for all, with None; or not at all, if there are none. `arguments`
    and outputs are pytrees of arrays [tree, ...].
    """
    trees = which.shape[0]
    sizes = [int(share * trees) for share in shares] if trees >= SMALL else []
    like = jax.eval_shape(lambda *arguments: model(*arguments, None), *arguments)

    def none(*_: Any) -> Any:
        return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), like)

    def some(size: int, *arguments: Any) -> Any:
        place = jnp.cumsum(which) - 1
        who = jnp.zeros(size, jnp.int32)
        who = who.at[jnp.where(which, place, size)].set(
            jnp.arange(trees, dtype=jnp.int32), mode="drop", unique_indices=True
        )
        arguments = jax.tree.map(lambda x: x.at[who].get(mode=SAFE), arguments)
        back = jnp.where(which, place, 0)
        return jax.tree.map(lambda x: x.at[back].get(mode=SAFE), model(*arguments, who))

    def everyone(*arguments: Any) -> Any:
        return model(*arguments, None)

    number = jnp.sum(which)
    how = sum(any_in_batch(number > size).astype(jnp.int32) for size in (0, *sizes))
    branches: list[Callable[..., Any]] = [
        none,
        *(functools.partial(some, size) for size in sizes),
        everyone,
    ]
    return jax.lax.switch(how, branches, *arguments)


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
