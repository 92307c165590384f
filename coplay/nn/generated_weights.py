"""Weights that depend on a context: θ = θ_base + Σ_k c_k B_k.

The matrices of single samples are never built. A layer with generated weights is computed as
x·W + Σ_k c_k (x·B_k), which is the same sum in another order and needs no memory for weights per
sample. All B start at zero, so at the start θ is θ_base whatever the context.
"""

from typing import Literal, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from coplay.nn.layers import Linear


@runtime_checkable
class Layered(Protocol):
    """A network of hidden linear layers and a last one."""

    layers: tuple[Linear, ...]
    head: Linear


class Increment(eqx.Module):
    """What a context adds to one linear layer. weight, bias: of each latent number, zero at the
    start."""

    weight: Float[Array, "latent outputs inputs"]
    bias: Float[Array, "latent outputs"]

    def __init__(self, latent: int, layer: Linear):
        self.weight = jnp.zeros((latent, *layer.weight.shape))
        self.bias = jnp.zeros((latent, *layer.bias.shape))

    def __call__(
        self, x: Float[Array, "*batch inputs"], context: Float[Array, "*#batch latent"]
    ) -> Float[Array, "*batch outputs"]:
        """Σ_k context_k (x · weight_k + bias_k)."""
        latent, outputs, inputs = self.weight.shape
        context = jnp.broadcast_to(context, (*x.shape[:-1], latent)).reshape(-1, latent)
        # Samples last: sums over few outputs or latent numbers then run along many samples.
        each = (x.reshape(-1, inputs) @ self.weight.reshape(-1, inputs).T).T
        each = each.reshape(latent, outputs, -1) + self.bias[..., None]
        whole = jnp.sum(context.T[:, None] * each, axis=0)
        return whole.T.reshape(*x.shape[:-1], outputs)


class Heads(eqx.Module):
    """What a context changes in a network; every array has the latent numbers first.

    head: increments of the last layer. layers: of the hidden layers (else empty).
    scales: hidden layer -> [latent, width]: what it gives is multiplied by 1 + context · scales
    (else empty).
    """

    head: Increment
    layers: tuple[Increment, ...]
    scales: tuple[Float[Array, "latent width"], ...]

    def __init__(self, latent: int, network: Layered, which: Literal["head", "last", "all"]):
        """which: the last layer alone; with scales of the hidden layers; or all layers."""
        self.head = Increment(latent, network.head)
        wide = network.layers if which == "all" else ()
        self.layers = tuple(Increment(latent, layer) for layer in wide)
        scaled = network.layers if which == "last" else ()
        self.scales = tuple(jnp.zeros((latent, len(layer.bias))) for layer in scaled)

    def products(self, other: "Heads") -> Float[Array, "latent latent"]:
        """[k, l] inner products of what latent number k adds here and l adds there, over all
        generated parameters: ‖Bᵀd‖² = dᵀ (B Bᵀ) d."""
        pairs = zip(jax.tree.leaves(self), jax.tree.leaves(other), strict=True)
        return sum(
            (mine.reshape(len(mine), -1) @ theirs.reshape(len(theirs), -1).T)
            for mine, theirs in pairs
        )


def squared_length(
    products: Float[Array, "latent latent"], difference: Float[Array, "*batch latent"]
) -> Float[Array, "*batch"]:
    """‖Bᵀ difference‖², from `Heads.products` of B with itself; never below 0 by rounding."""
    return jnp.maximum(jnp.sum((difference @ products) * difference, axis=-1), 0.0)


class Generated(NamedTuple):
    """Weights that depend on a context: `heads` give increments per latent number of the context.

    context: [..., latent], with the axes of the inputs of the network.
    """

    heads: Heads
    context: Float[Array, "*batch latent"]
