"""Views as networks read them: where they are 1, instead of all their numbers.

Of the inputs of a network on a board nearly all are 0. Where a game tells which are 1
(`Observation.indices`), the first layer is a sum of a few columns of its weights. On CPU that is
faster than the product: its cost grows with what is on the board, and not with cells times players.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as Spec
from jaxtyping import Array, Float, Int, Shaped

from coplay.core.trajectory import COPY

UNROLLED = 64
"""Lookups that are written out one by one; more go through a loop, which compiles sooner."""
WORTHWHILE = 3
"""How many inputs there must be for each index, so that reading indices is the faster way."""


class SparseView(NamedTuple):
    """Inputs of a network that begin with places, of which few are 1.

    indices: [..., index] which places are 1, each once; beyond the last place: none.
    rest: [..., number] the inputs behind the places, as they are.
    """

    indices: Int[Array, "*batch index"]
    rest: Float[Array, "*batch number"]


@jax.custom_vjp
def sparse_product(
    weight: Float[Array, "outputs inputs"], view: SparseView
) -> Float[Array, "*batch outputs"]:
    """weight · x, where x are the inputs that a sparse view stands for.

    Only the weight and `view.rest` have a gradient.
    """
    places = weight.shape[1] - view.rest.shape[-1]
    rows = rows_of(weight[:, :places])
    # Other processors than CPUs are made for products.
    first = jax.lax.platform_dependent(rows, _within(view, places), cpu=summed, default=_multiplied)
    return first + view.rest @ weight[:, places:].T


def _forward(
    weight: Float[Array, "outputs inputs"], view: SparseView
) -> tuple[Float[Array, "*batch outputs"], tuple[Array, SparseView]]:
    return sparse_product(weight, view), (weight, view)


def _backward(
    saved: tuple[Float[Array, "outputs inputs"], SparseView],
    gradient: Float[Array, "*batch outputs"],
) -> tuple[Float[Array, "outputs inputs"], SparseView]:
    weight, view = saved
    numbers = view.rest.shape[-1]
    places = weight.shape[1] - numbers
    flat = gradient.reshape(-1, gradient.shape[-1])
    indices = _within(view, places).reshape(flat.shape[0], -1)
    empty = jnp.zeros((places + 1, weight.shape[0]), gradient.dtype)
    rows = jax.lax.platform_dependent(
        empty, indices, flat, cpu=_scattered_by_device, default=_multiplied_back
    )
    rest = flat.T @ view.rest.reshape(-1, numbers)
    on_weight = jnp.concatenate([rows[:places].T, rest], axis=1)
    none = jnp.zeros(view.indices.shape, jax.dtypes.float0)
    return on_weight, SparseView(none, gradient @ weight[:, places:])


sparse_product.defvjp(_forward, _backward)


def rows_of(weight: Float[Array, "*other unit input"]) -> Float[Array, "*other row unit"]:
    """Weights by input, and a row of zeros for what is not there."""
    rows = jnp.swapaxes(weight, -1, -2)
    return jnp.concatenate([rows, jnp.zeros_like(rows[..., :1, :])], axis=-2)


def summed(
    rows: Float[Array, "row unit"], indices: Int[Array, "*batch index"]
) -> Float[Array, "*batch unit"]:
    """The sum of the rows of the indices."""
    # Worked out once, and not again for every unit.
    by_number = jax.lax.optimization_barrier(jnp.moveaxis(indices, -1, 0))

    def row(number: int | Int[Array, ""]) -> Float[Array, "*batch unit"]:
        return rows.at[by_number[number]].get(mode="promise_in_bounds")

    count = indices.shape[-1]
    # One lookup per index: all at once they would be one more batch in memory.
    total = sum((row(number) for number in range(1, min(count, UNROLLED))), row(0))
    return jax.lax.fori_loop(min(count, UNROLLED), count, lambda i, x: x + row(i), total)


def _within(view: SparseView, places: int) -> Int[Array, "*batch index"]:
    """Indices of the rows of `rows_of`: what is not there has the last one."""
    return jnp.clip(view.indices, 0, places)


def _scattered(
    rows: Float[Array, "row unit"],
    indices: Int[Array, "sample index"],
    gradient: Float[Array, "sample unit"],
) -> Float[Array, "row unit"]:
    """The gradient of `summed`: rows with the gradients of all samples that used them."""

    by_index, count = indices.T, indices.shape[-1]

    def add(number: int | Int[Array, ""], rows: Array) -> Array:
        return rows.at[by_index[number]].add(gradient, mode="promise_in_bounds")

    for number in range(min(count, UNROLLED)):
        rows = add(number, rows)
    return jax.lax.fori_loop(min(count, UNROLLED), count, add, rows)


def _scattered_by_device(
    rows: Float[Array, "row unit"],
    indices: Int[Array, "sample index"],
    gradient: Float[Array, "sample unit"],
) -> Float[Array, "row unit"]:
    """As `_scattered`. Where devices share the samples, each adds up its own ones, and then all are
    summed: else they would exchange what they have after every index."""
    mesh = jax.sharding.get_abstract_mesh()
    samples, devices = len(indices), mesh.size if COPY in mesh.axis_names else 1
    if devices == 1 or samples % devices:
        return _scattered(rows, indices, gradient)

    def shared(x: Shaped[Array, "sample *rest"]) -> Shaped[Array, "device some *rest"]:
        parts = x.reshape(devices, samples // devices, *x.shape[1:])
        return jax.lax.with_sharding_constraint(parts, Spec(COPY))

    each = jax.vmap(_scattered, (None, 0, 0))(rows, shared(indices), shared(gradient))
    return jnp.sum(each, axis=0)


def _multiplied(
    rows: Float[Array, "row unit"], indices: Int[Array, "*batch index"]
) -> Float[Array, "*batch unit"]:
    """As `summed`, by a product."""
    return _marked(indices, rows) @ rows


def _multiplied_back(
    rows: Float[Array, "row unit"],
    indices: Int[Array, "sample index"],
    gradient: Float[Array, "sample unit"],
) -> Float[Array, "row unit"]:
    """As `_scattered`, by a product."""
    return rows + _marked(indices, rows).T @ gradient


def _marked(
    indices: Int[Array, "*batch index"], rows: Float[Array, "row unit"]
) -> Float[Array, "*batch row"]:
    """Which rows are used."""
    return jnp.sum(jax.nn.one_hot(indices, rows.shape[0], dtype=rows.dtype), axis=-2)
