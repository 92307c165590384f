"""From trajectories to minibatches: whole game copies first, in shuffled order."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as Spec
from jaxtyping import Array, PRNGKeyArray, Shaped

from coplay.core.trajectory import COPY

Carry = TypeVar("Carry")


def by_copy(x: Shaped[Array, "time copy *rest"]) -> Shaped[Array, "copy time *rest"]:
    """A trajectory's array with the game copies first, as minibatches have them."""
    return jnp.swapaxes(x, 0, 1)


def as_samples(x: Shaped[Array, "row time *rest"]) -> Shaped[Array, "sample *rest"]:
    """Rows and their steps as one axis."""
    return x.reshape(-1, *x.shape[2:])


def shuffled_pass(
    step: Callable[[Carry, Any], tuple[Carry, Any]],
    carry: Carry,
    batch: Any,
    key: PRNGKeyArray,
    rows: int,
    minibatches: int,
) -> tuple[Carry, Any]:
    """One pass over samples [set, row, ...] in minibatches of whole rows, in random order.

    step: (carry, minibatch) -> carry and terms. The terms get a leading [minibatch] axis.
    """
    order = jax.random.permutation(key, rows)

    def one_minibatch(carry: Carry, part: Array) -> tuple[Carry, Any]:
        return step(carry, shared_out(jax.tree.map(lambda x: x[:, part], batch)))

    return jax.lax.scan(one_minibatch, carry, order.reshape(minibatches, -1))


def shared_out(minibatch: Any) -> Any:
    """A minibatch [set, row, ...] whose rows are spread over the devices, if the program is made
    for devices that share the copies: else each would compute the gradient of all rows."""
    if COPY not in jax.sharding.get_abstract_mesh().axis_names:
        return minibatch
    return jax.lax.with_sharding_constraint(minibatch, Spec(None, COPY))
