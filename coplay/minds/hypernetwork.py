"""Weights that depend on a context: θ = θ_base + Σ_k c_k B_k, and the network that makes c.

The matrices of single samples are never built. A layer with generated weights is computed as
x·W + Σ_k c_k (x·B_k), which is the same sum in another order and needs no memory for weights per
sample. All B start at zero, so at the start θ is θ_base whatever the context.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from coplay.minds.cells import Cell
from coplay.minds.networks import Activation, Linear, ViewShape
from coplay.minds.normed import LayerNorm, NormedNetwork


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

    def __init__(self, latent: int, network: NormedNetwork, which: Literal["head", "last", "all"]):
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


class Attention(eqx.Module):
    """What an agent takes from all agents: softmax(q·k / √width) v, of those that are heard."""

    query: Linear
    key: Linear
    value: Linear
    out: Linear

    def __init__(self, width: int, key: PRNGKeyArray):
        keys = jax.random.split(key, 4)
        self.query, self.key, self.value, self.out = (Linear(width, width, k, 1.0) for k in keys)

    def __call__(
        self,
        mine: Float[Array, "*batch asking width"],
        all_: Float[Array, "*batch agent width"],
        heard: Bool[Array, "*batch asking agent"],
    ) -> Float[Array, "*batch asking width"]:
        """`mine` with what was heard added; nothing is added where nobody is heard."""
        query, key, value = self.query(mine), self.key(all_), self.value(all_)
        score = jnp.einsum("...qw,...aw->...qa", query, key) / jnp.sqrt(mine.shape[-1])
        weight = jax.nn.softmax(jnp.where(heard, score, -1e30), axis=-1)
        weight = jnp.where(heard, weight, 0.0)
        return mine + self.out(jnp.einsum("...qa,...aw->...qw", weight, value))


class ContextNetwork(eqx.Module):
    """From what agents saw, did and got to the contexts of their weights.

    encoder → attention over agents (if any) → memory → norm → z = tanh(W h), [..., latent].
    """

    encoder: NormedNetwork
    attention: Attention | None
    cell: Cell
    norm: LayerNorm
    projection: Linear

    def __init__(
        self,
        shape: ViewShape,
        *,
        key: PRNGKeyArray,
        width: int,
        channels: tuple[int, ...],
        activation: Activation,
        attention: bool,
        recall: Literal["gru", "lstm"],
        units: int,
        latent: int,
    ):
        keys = jax.random.split(key, 4)
        self.encoder = NormedNetwork(
            shape,
            width,
            key=keys[0],
            hidden=(width,),
            channels=channels,
            activation=activation,
            head_scale=1.0,
        )
        self.attention = Attention(width, keys[1]) if attention else None
        self.cell = Cell(recall, width, units, keys[2])
        self.norm = LayerNorm(units)
        self.projection = Linear(units, latent, keys[3], 1.0)

    def encoded(self, x: Float[Array, "*batch inputs"]) -> Float[Array, "*batch width"]:
        """What one agent knows, before it hears of others."""
        return self.encoder.step(x, jnp.zeros((*x.shape[:-1], 0)))[0]

    def latent(self, shown: Float[Array, "*batch units"]) -> Float[Array, "*batch latent"]:
        """z from what the memory shows."""
        return jnp.tanh(self.projection(self.norm(shown)))

    def unroll(
        self,
        x: Float[Array, "row time seat inputs"],
        memory: Float[Array, "row seat size"],
        cleared: Bool[Array, "row time seat"],
        alive: Bool[Array, "row time seat"],
    ) -> tuple[Float[Array, "row time seat latent"], Float[Array, "row time seat size"]]:
        """z of every agent at every step, and the memory after each; see `Cell.unroll`."""
        x, cleared, alive = (jnp.swapaxes(y, 0, 1) for y in (x, cleared, alive))
        known = self.encoded(x)
        if self.attention is not None:
            heard = jnp.broadcast_to(alive[:, :, None], (*alive.shape, alive.shape[-1]))
            known = self.attention(known, known, heard)
        shown, memories = self.cell.unroll(known, memory, cleared, alive)
        return jnp.swapaxes(self.latent(shown), 0, 1), jnp.swapaxes(memories, 0, 1)


def team_mean(
    values: Float[Array, "*batch agent latent"], present: Bool[Array, "*batch agent"]
) -> Float[Array, "*batch 1 latent"]:
    """The mean over the agents that are present, with an agent axis of length 1."""
    total = jnp.sum(jnp.where(present[..., None], values, 0.0), axis=-2, keepdims=True)
    return total / jnp.maximum(jnp.sum(present, axis=-1), 1)[..., None, None]


def accumulated(
    z: Float[Array, "row time seat latent"],
    start: Float[Array, "row seat latent"],
    first: Bool[Array, "row time seat"],
    alive: Bool[Array, "row time seat"],
    accumulation: float,
    frozen: bool,
) -> tuple[Float[Array, "row time seat latent"], Float[Array, "row time seat latent"]]:
    """Contexts c_t = accumulation · m_t · c_{t-1} + z_t, with m_t = 0 where an episode begins; or,
    if `frozen`, c_t = z_t there and c_{t-1} everywhere else. Also c_{t-1} of every step.

    A seat that is not alive keeps its context.
    """
    # time first, for the steps
    z, first, alive = (jnp.moveaxis(x, 1, 0) for x in (z, first, alive))

    def one(before: Array, line: tuple[Array, Array, Array]) -> tuple[Array, tuple[Array, Array]]:
        z, first, alive = line
        now = next_context(z, before, first, alive, accumulation, frozen)
        return now, (now, before)

    _, (now, before) = jax.lax.scan(one, start, (z, first, alive))
    return jnp.moveaxis(now, 0, 1), jnp.moveaxis(before, 0, 1)


def next_context(
    z: Float[Array, "*batch latent"],
    before: Float[Array, "*batch latent"],
    first: Bool[Array, "*batch"],
    alive: Bool[Array, "*batch"],
    accumulation: float,
    frozen: bool,
) -> Float[Array, "*batch latent"]:
    """One step of `accumulated`."""
    first, alive = first[..., None], alive[..., None]
    if frozen:
        return jnp.where(alive & first, z, before)
    return jnp.where(alive, z + accumulation * jnp.where(first, 0.0, before), before)
