"""The network that makes contexts c of generated weights θ = θ_base + Σ_k c_k B_k."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from coplay.nn.layer_norm import LayerNorm, LayerNormNetwork
from coplay.nn.layers import Activation, Linear
from coplay.nn.networks import ViewShape
from coplay.nn.policy_window import PolicyWindow
from coplay.nn.recurrent_cells import Cell, Window


class Attention(eqx.Module):
    """What an agent takes from all agents: softmax(q·k / √size) v, of those that are heard.

    heads: each looks at a part of the width, `size` numbers, with weights of its own.
    """

    query: Linear
    key: Linear
    value: Linear
    out: Linear
    heads: int = eqx.field(static=True)

    def __init__(self, width: int, heads: int, key: PRNGKeyArray):
        keys = jax.random.split(key, 4)
        self.query, self.key, self.value, self.out = (Linear(width, width, k, 1.0) for k in keys)
        self.heads = heads

    def __call__(
        self,
        mine: Float[Array, "*batch asking width"],
        all_: Float[Array, "*batch agent width"],
        heard: Bool[Array, "*batch asking agent"],
    ) -> Float[Array, "*batch asking width"]:
        """`mine` with what was heard added; nothing is added where nobody is heard."""
        return mine + self.taken(mine, all_, heard)

    def taken(
        self,
        mine: Float[Array, "*batch asking width"],
        all_: Float[Array, "*batch agent width"],
        heard: Bool[Array, "*batch asking agent"],
    ) -> Float[Array, "*batch asking width"]:
        """What was heard."""
        given = (self.query(mine), self.key(all_), self.value(all_))
        queries, keys, values = (jnp.split(x, self.heads, axis=-1) for x in given)
        heads = zip(queries, keys, values, strict=True)
        taken = [_attended(query, key, value, heard) for query, key, value in heads]
        return self.out(taken[0] if len(taken) == 1 else jnp.concatenate(taken, axis=-1))


def _attended(
    query: Float[Array, "*batch asking size"],
    key: Float[Array, "*batch agent size"],
    value: Float[Array, "*batch agent size"],
    heard: Bool[Array, "*batch asking agent"],
) -> Float[Array, "*batch asking size"]:
    """One head of an attention."""
    score = jnp.einsum("...qw,...aw->...qa", query, key) / jnp.sqrt(query.shape[-1])
    weight = jax.nn.softmax(jnp.where(heard, score, -1e30), axis=-1)
    weight = jnp.where(heard, weight, 0.0)
    return jnp.einsum("...qa,...aw->...qw", weight, value)


class TransformerLayer(eqx.Module):
    """Attention over agents and a feed-forward part, each after a norm and added to what was
    there: y = x + attention(norm(x)), y + W₂ relu(W₁ norm(y))."""

    attention: Attention
    before: LayerNorm
    between: LayerNorm
    up: Linear
    down: Linear

    def __init__(self, width: int, heads: int, key: PRNGKeyArray):
        keys = jax.random.split(key, 3)
        self.attention = Attention(width, heads, keys[0])
        self.before, self.between = LayerNorm(width), LayerNorm(width)
        self.up, self.down = Linear(width, 2 * width, keys[1]), Linear(2 * width, width, keys[2])

    def __call__(
        self,
        mine: Float[Array, "*batch asking width"],
        all_: Float[Array, "*batch agent width"],
        heard: Bool[Array, "*batch asking agent"],
    ) -> Float[Array, "*batch asking width"]:
        """See `Attention`."""
        near = mine + self.attention.taken(self.before(mine), self.before(all_), heard)
        return near + self.down(jax.nn.relu(self.up(self.between(near))))


class ContextNetwork(eqx.Module):
    """From what agents saw, did and got to the contexts of their weights.

    encoder → attention over agents (if any) → memory → norm → z = tanh(W h), [..., latent].
    """

    encoder: LayerNormNetwork
    attention: Attention | TransformerLayer | None
    cell: Cell | Window | PolicyWindow
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
        attention: Literal["none", "plain", "transformer"],
        heads: int,
        memory_kind: Literal["gru", "lstm", "window", "policies"],
        units: int,
        window: int,
        temperature: float,
        latent: int,
        set_width: int = 0,
    ):
        keys = jax.random.split(key, 4)
        self.encoder = LayerNormNetwork(
            shape,
            width,
            key=keys[0],
            hidden=(width,),
            channels=channels,
            activation=activation,
            head_scale=1.0,
            set_width=set_width,
        )
        self.attention = None
        if attention == "plain":
            self.attention = Attention(width, heads, keys[1])
        elif attention == "transformer":
            self.attention = TransformerLayer(width, heads, keys[1])
        if memory_kind == "window":
            self.cell = Window(width, window)
        elif memory_kind == "policies":
            self.cell = PolicyWindow(width, shape.actions, window, temperature)
        else:
            self.cell = Cell(memory_kind, width, units, keys[2])
        self.norm = LayerNorm(self.cell.units)
        self.projection = Linear(self.cell.units, latent, keys[3], 1.0)

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
        log_policy: Float[Array, "row time seat action"],
    ) -> tuple[Float[Array, "row time seat latent"], Float[Array, "row time seat size"]]:
        """z of every agent at every step, and the memory after each; see `Cell.unroll`.

        log_policy: that acted at each step.
        """
        given = (x, cleared, alive, log_policy)
        x, cleared, alive, log_policy = (jnp.swapaxes(y, 0, 1) for y in given)
        known = self.encoded(x)
        if self.attention is not None:
            heard = jnp.broadcast_to(alive[:, :, None], (*alive.shape, alive.shape[-1]))
            known = self.attention(known, known, heard)
        if isinstance(self.cell, PolicyWindow):
            shown, memories = self.cell.unroll(known, memory, cleared, alive, log_policy)
        else:
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
