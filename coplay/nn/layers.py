"""Layers: linear, 3x3 convolution, their initialisation and activations."""

import math
from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from coplay.nn.sparse_views import SparseView, sparse_product

Activation = Literal["tanh", "relu"]


def orthogonal(key: PRNGKeyArray, rows: int, columns: int) -> Float[Array, "row column"]:
    """A random matrix with orthonormal rows (or columns, if there are fewer of them), uniformly.

    The orthogonal factor of a Gaussian matrix, by the Newton-Schulz iteration
    X <- 1.5 X - 0.5 X XᵀX. JAX's own initialiser calls LAPACK, whose calls from a compiled
    loop over seeds or seats never returned on a CPU of two cores (JAX 0.10.2).
    """
    small, large = sorted((rows, columns))
    gaussian = jax.random.normal(key, (small * large,)).reshape(small, large)
    # Singular values of the start are at most 1; one of 1e-5 needs about 30 iterations to reach 1.
    start = gaussian / jnp.linalg.norm(gaussian)

    def improve(_: Int[Array, ""], x: Float[Array, "small large"]) -> Float[Array, "small large"]:
        return 1.5 * x - 0.5 * (x @ x.T) @ x

    basis = jax.lax.fori_loop(0, 40, improve, start)
    return basis if rows <= columns else basis.T


def default_init(make: Callable[[PRNGKeyArray], Any], key: PRNGKeyArray) -> Any:
    """The module that `make` would give, with other numbers to begin with: normal matrices of
    variance 1 / inputs, zeros elsewhere. For modules of many layers: compiling an orthogonal start
    for each takes far longer than drawing all numbers at once."""
    shapes = eqx.filter_eval_shape(make, key)
    leaves, structure = jax.tree.flatten(shapes)
    sizes = [math.prod(leaf.shape) if len(leaf.shape) == 2 else 0 for leaf in leaves]
    numbers = jax.random.normal(key, (sum(sizes),))
    begun, values = 0, []
    for leaf, size in zip(leaves, sizes, strict=True):
        some = numbers[begun : begun + size]
        begun += size
        full = (
            some.reshape(leaf.shape) / math.sqrt(leaf.shape[1]) if size else jnp.zeros(leaf.shape)
        )
        values.append(full)
    return jax.tree.unflatten(structure, values)


class Linear(eqx.Module):
    """weight · x + bias over the last axis, orthogonally initialised, bias zero.

    The weight is stored [outputs, inputs] like Equinox's and PyTorch's. On CPU the product that
    gives its gradient is faster that way round where there are several leading axes or few outputs,
    and faster still for narrow inputs if the leading axes are one.
    """

    weight: Float[Array, "outputs inputs"]
    bias: Float[Array, " outputs"]

    def __init__(self, inputs: int, outputs: int, key: PRNGKeyArray, scale: float = math.sqrt(2)):
        self.weight = scale * orthogonal(key, outputs, inputs)
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Float[Array, "*batch inputs"]) -> Float[Array, "*batch outputs"]:
        return product(x, jnp.transpose(self.weight)) + self.bias

    def sparse(self, view: SparseView) -> Float[Array, "*batch outputs"]:
        """The same of inputs of which few are not 0."""
        return sparse_product(self.weight, view) + self.bias


def product(
    x: Float[Array, "*batch inputs"], weight: Float[Array, "inputs outputs"]
) -> Float[Array, "*batch outputs"]:
    """x · weight with the leading axes as one."""
    return (x.reshape(-1, x.shape[-1]) @ weight).reshape(*x.shape[:-1], weight.shape[-1])


class Conv3x3(eqx.Module):
    """A 3x3 convolution with zero padding on [..., height, width, channel].

    Nine shifted copies and one matrix product: under `vmap` over seats this stays a batched matrix
    product, where a convolution with a kernel per seat becomes a grouped one, slow on CPU.
    """

    linear: Linear

    def __init__(self, inputs: int, outputs: int, key: PRNGKeyArray):
        self.linear = Linear(9 * inputs, outputs, key)

    def __call__(
        self, x: Float[Array, "*batch height width inputs"]
    ) -> Float[Array, "*batch height width outputs"]:
        height, width = x.shape[-3:-1]
        padded = jnp.pad(x, [(0, 0)] * (x.ndim - 3) + [(1, 1), (1, 1), (0, 0)])
        shifted = [
            padded[..., row : row + height, column : column + width, :]
            for row in range(3)
            for column in range(3)
        ]
        return self.linear(jnp.concatenate(shifted, axis=-1))


def activation_function(activation: Activation) -> Callable[[Array], Array]:
    """What stands between the layers of networks with this activation."""
    return jnp.tanh if activation == "tanh" else jax.nn.relu
