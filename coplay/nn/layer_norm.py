"""Networks with layer normalisation and, if wanted, a memory, as MAPPO's actors and critics have.

A network without a memory carries an array of width 0 in its place.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from coplay.nn.entities import EntityEncoder
from coplay.nn.generated_weights import Generated
from coplay.nn.layers import Activation, Conv3x3, Linear, activation_function, product
from coplay.nn.networks import ViewShape, new_entity_encoder
from coplay.nn.recurrent_cells import Cell, MemoryKind


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


class LayerNormNetwork(eqx.Module):
    """From inputs to `outputs` numbers: optional convolutions or an encoder of entities, hidden
    layers, memory, head.

    A layer is norm(act(weight · x + bias)); the inputs and what the memory shows are normalised
    too. Without `layer_norm` the norms are left out.
    """

    convolutions: tuple[Conv3x3, ...]
    sets: EntityEncoder | None
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
        memory_kind: MemoryKind = "none",
        units: int = 0,
        head_scale: float = 1.0,
        set_width: int = 0,
    ):
        """set_width: units for entities; 0: lists are read as they are."""
        keys = iter(jax.random.split(key, len(channels) + len(hidden) + 2))
        height, width, planes = shape.planes
        convolutions, layers = [], []
        for channel in channels:
            convolutions.append(Conv3x3(planes, channel, next(keys)))
            planes = channel
        size = height * width * planes + shape.features
        self.sets = new_entity_encoder(shape, set_width, activation, key) if set_width else None
        if self.sets is not None:
            size = self.sets.outputs
        self.entry = LayerNorm(size) if layer_norm else None
        for wide in hidden:
            layers.append(Linear(size, wide, next(keys)))
            size = wide
        self.convolutions, self.layers = tuple(convolutions), tuple(layers)
        self.norms = tuple(LayerNorm(wide) for wide in hidden) if layer_norm else ()
        cell_key, head_key = next(keys), next(keys)
        self.cell = None if memory_kind == "none" else Cell(memory_kind, size, units, cell_key)
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
            memory = self.cell.next(x, memory)
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
        if self.cell is None:
            memories = jnp.broadcast_to(memory[:, None], (*alive.shape, memory.shape[-1]))
            return self.shown(x, memories, generated), memories
        # Time first, for the steps: inputs and outputs are narrower than what lies between them.
        x, cleared, alive = (jnp.swapaxes(y, 0, 1) for y in (x, cleared, alive))
        if generated is not None:
            generated = generated._replace(context=jnp.swapaxes(generated.context, 0, 1))
        shown, memories = self.cell.unroll(self._encoded(x, generated), memory, cleared, alive)
        outputs = self._headed(self._out(shown), generated)
        return jnp.swapaxes(outputs, 0, 1), jnp.swapaxes(memories, 0, 1)

    def shown(
        self,
        x: Float[Array, "*batch inputs"],
        memory: Float[Array, "*batch size"],
        generated: Generated | None = None,
    ) -> Float[Array, "*batch outputs"]:
        """The outputs of steps of which the memory after them is known."""
        if self.cell is None:
            return self._headed(self._encoded(x, generated), generated)
        return self._headed(self._out(self.cell.shown(memory)), generated)

    def _encoded(
        self, x: Float[Array, "*batch inputs"], generated: Generated | None
    ) -> Float[Array, "*batch width"]:
        """What the hidden layers make of the inputs."""
        act = activation_function(self.activation)
        if self.convolutions:
            size = math.prod(self.board)
            board = x[..., :size].reshape(*x.shape[:-1], *self.board)
            for convolution in self.convolutions:
                board = act(convolution(board))
            x = jnp.concatenate([board.reshape(*x.shape[:-1], -1), x[..., size:]], axis=-1)
        if self.sets is not None:
            x = self.sets(x)
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
                x = x * (1.0 + product(generated.context, generated.heads.scales[index]))
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
