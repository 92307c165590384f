"""Networks with layer normalisation and, if wanted, a memory, as MAPPO's actors and critics have.

A memory is one flat array: a gated recurrent unit keeps its output h, a long short-term memory
(h, c) one behind the other, and a network without a memory an array of width 0. So whoever carries
memories need not know the kind.
"""

import math
from typing import TYPE_CHECKING, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from coplay.minds.networks import Activation, Conv3x3, Linear, ViewShape, function_of

if TYPE_CHECKING:
    from coplay.minds.hypernetwork import Heads

Recall = Literal["none", "gru", "lstm"]


class Generated(NamedTuple):
    """Weights that depend on a context: `heads` give increments per latent number of the context.

    context: [..., latent], with the axes of the inputs of the network.
    """

    heads: "Heads"
    context: Float[Array, "*batch latent"]


class LayerNorm(eqx.Module):
    """Mean 0 and variance 1 over the last axis, then a trainable scale and shift."""

    scale: Float[Array, " width"]
    shift: Float[Array, " width"]

    def __init__(self, width: int):
        self.scale, self.shift = jnp.ones(width), jnp.zeros(width)

    def __call__(self, x: Float[Array, "*batch width"]) -> Float[Array, "*batch width"]:
        centred = x - jnp.mean(x, axis=-1, keepdims=True)
        variance = jnp.mean(jnp.square(centred), axis=-1, keepdims=True)
        return centred * jax.lax.rsqrt(variance + 1e-5) * self.scale + self.shift


class Cell(eqx.Module):
    """A recurrent cell.

    gru:   r, u = σ(a + U h)            n = tanh(a_n + r (U_n h))     h' = (1 - u) n + u h
    lstm:  i, f, o = σ(a + U h)         g = tanh(a_g + U_g h)
           c' = σ(f + 1) c + σ(i) g     h' = σ(o) tanh(c')

    entering: gives a of all gates from the inputs. recurrent: U of all gates, with its bias.
    """

    entering: Linear
    recurrent: Linear
    kind: Literal["gru", "lstm"] = eqx.field(static=True)
    units: int = eqx.field(static=True)

    def __init__(self, kind: Literal["gru", "lstm"], inputs: int, units: int, key: PRNGKeyArray):
        gates = 3 if kind == "gru" else 4
        entering, recurrent = jax.random.split(key)
        self.entering = Linear(inputs, gates * units, entering, 1.0)
        # Columns of norm √gates over the gates: each gate's part is about orthogonal.
        self.recurrent = Linear(units, gates * units, recurrent, math.sqrt(gates))
        self.kind, self.units = kind, units

    def next(
        self, gates: Float[Array, "*batch gates"], memory: Float[Array, "*batch size"]
    ) -> Float[Array, "*batch size"]:
        """The memory after a step whose inputs gave `gates` (`entering`)."""
        if self.kind == "gru":
            reset, update, new = jnp.split(gates, 3, axis=-1)
            own_reset, own_update, own_new = jnp.split(self.recurrent(memory), 3, axis=-1)
            reset = jax.nn.sigmoid(reset + own_reset)
            update = jax.nn.sigmoid(update + own_update)
            new = jnp.tanh(new + reset * own_new)
            return (1 - update) * new + update * memory
        shown, kept = jnp.split(memory, 2, axis=-1)
        enter, forget, new, show = jnp.split(gates + self.recurrent(shown), 4, axis=-1)
        kept = jax.nn.sigmoid(forget + 1.0) * kept + jax.nn.sigmoid(enter) * jnp.tanh(new)
        return jnp.concatenate([jax.nn.sigmoid(show) * jnp.tanh(kept), kept], axis=-1)

    def shown(self, memory: Float[Array, "*batch size"]) -> Float[Array, "*batch units"]:
        """What the rest of a network sees of a memory."""
        return memory[..., : self.units]

    def unroll(
        self,
        x: Float[Array, "row time seat inputs"],
        memory: Float[Array, "row seat size"],
        cleared: Bool[Array, "row time seat"],
        alive: Bool[Array, "row time seat"],
    ) -> tuple[Float[Array, "row time seat units"], Float[Array, "row time seat size"]]:
        """All steps one after the other: what is shown at each, and the memory after each.

        memory: before the first step. cleared: the memory is emptied before the step. alive: where
        not, the step leaves the memory as it was (and what is shown has no meaning).
        """

        def one(memory: Array, line: tuple[Array, Array, Array]) -> tuple[Array, tuple]:
            gates, cleared, alive = line
            memory = jnp.where(cleared[..., None], 0.0, memory)
            new = self.next(gates, memory)
            memory = jnp.where(alive[..., None], new, memory)
            return memory, (self.shown(new), memory)

        # What enters does not depend on the memory: one matrix product over all steps.
        lines = jax.tree.map(lambda y: jnp.swapaxes(y, 0, 1), (self.entering(x), cleared, alive))
        _, (shown, memories) = jax.lax.scan(one, memory, lines)
        return jnp.swapaxes(shown, 0, 1), jnp.swapaxes(memories, 0, 1)


def memory_size(recall: Recall, units: int) -> int:
    """The width of a memory."""
    return {"none": 0, "gru": units, "lstm": 2 * units}[recall]


class NormedNetwork(eqx.Module):
    """From inputs to `outputs` numbers: optional convolutions, hidden layers, memory, head.

    A layer is norm(act(weight · x + bias)); the inputs and what the memory shows are normalised
    too. Without `layer_norm` the norms are left out.
    """

    convolutions: tuple[Conv3x3, ...]
    entry: LayerNorm | None
    layers: tuple[Linear, ...]
    norms: tuple[LayerNorm, ...]
    cell: Cell | None
    exit: LayerNorm | None
    head: Linear
    activation: Activation = eqx.field(static=True)
    board: tuple[int, int, int] = eqx.field(static=True)

    def __init__(
        self,
        shape: ViewShape,
        outputs: int,
        *,
        key: PRNGKeyArray,
        hidden: tuple[int, ...],
        channels: tuple[int, ...] = (),
        activation: Activation = "relu",
        layer_norm: bool = True,
        recall: Recall = "none",
        units: int = 0,
        head_scale: float = 1.0,
    ):
        keys = iter(jax.random.split(key, len(channels) + len(hidden) + 2))
        height, width, planes = shape.planes
        convolutions, layers = [], []
        for channel in channels:
            convolutions.append(Conv3x3(planes, channel, next(keys)))
            planes = channel
        size = height * width * planes + shape.features
        self.entry = LayerNorm(size) if layer_norm else None
        for wide in hidden:
            layers.append(Linear(size, wide, next(keys)))
            size = wide
        self.convolutions, self.layers = tuple(convolutions), tuple(layers)
        self.norms = tuple(LayerNorm(wide) for wide in hidden) if layer_norm else ()
        cell_key, head_key = next(keys), next(keys)
        self.cell = None if recall == "none" else Cell(recall, size, units, cell_key)
        self.exit = LayerNorm(units) if self.cell is not None and layer_norm else None
        size = size if self.cell is None else units
        self.head = Linear(size, outputs, head_key, head_scale)
        self.activation, self.board = activation, shape.planes

    def step(
        self,
        x: Float[Array, "*batch inputs"],
        memory: Float[Array, "*batch size"],
        generated: Generated | None = None,
    ) -> tuple[Float[Array, "*batch outputs"], Float[Array, "*batch size"]]:
        """One step of a batch: outputs, and the memory after it."""
        x = self._encoded(x, generated)
        if self.cell is not None:
            memory = self.cell.next(self.cell.entering(x), memory)
            x = self._out(self.cell.shown(memory))
        return self._headed(x, generated), memory

    def unroll(
        self,
        x: Float[Array, "row time seat inputs"],
        memory: Float[Array, "row seat size"],
        cleared: Bool[Array, "row time seat"],
        alive: Bool[Array, "row time seat"],
        generated: Generated | None = None,
    ) -> tuple[Float[Array, "row time seat outputs"], Float[Array, "row time seat size"]]:
        """Steps one after the other, see `Cell.unroll`: outputs, and the memory after each."""
        x = self._encoded(x, generated)
        memories = jnp.broadcast_to(memory[:, None], (*alive.shape, memory.shape[-1]))
        if self.cell is not None:
            x, memories = self.cell.unroll(x, memory, cleared, alive)
            x = self._out(x)
        return self._headed(x, generated), memories

    def _encoded(
        self, x: Float[Array, "*batch inputs"], generated: Generated | None
    ) -> Float[Array, "*batch width"]:
        """What the hidden layers make of the inputs."""
        act = function_of(self.activation)
        if self.convolutions:
            size = math.prod(self.board)
            board = x[..., :size].reshape(*x.shape[:-1], *self.board)
            for convolution in self.convolutions:
                board = act(convolution(board))
            x = jnp.concatenate([board.reshape(*x.shape[:-1], -1), x[..., size:]], axis=-1)
        if self.entry is not None:
            x = self.entry(x)
        for index, layer in enumerate(self.layers):
            out = layer(x)
            if generated is not None and generated.heads.layers:
                out = out + generated.heads.layers[index](x, generated.context)
            x = act(out)
            if self.norms:
                x = self.norms[index](x)
            if generated is not None and generated.heads.scales:
                x = x * (1.0 + generated.context @ generated.heads.scales[index])
        return x

    def _out(self, x: Float[Array, "*batch units"]) -> Float[Array, "*batch units"]:
        return x if self.exit is None else self.exit(x)

    def _headed(
        self, x: Float[Array, "*batch width"], generated: Generated | None
    ) -> Float[Array, "*batch outputs"]:
        out = self.head(x)
        if generated is not None:
            out = out + generated.heads.head(x, generated.context)
        return out
