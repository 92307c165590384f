"""Networks that remember: an encoder as in `coplay.nn.networks`, a recurrent cell, a head.

What enters the gates from the ego view does not depend on the memory, so it is one matrix product
over all steps; only the memory's own part runs step by step.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from coplay.nn.layers import Activation, Linear
from coplay.nn.networks import Network, ViewShape
from coplay.nn.recurrent_cells import Kind, next_memory, split, unrolled


class GRUNetwork(eqx.Module):
    """From ego views and a memory to `outputs` numbers and the next memory.

    encoder: gives what enters the gates. recurrent: the memory's part in them, see `gru` and `lstm`
    of `coplay.nn.recurrent_cells`. head: from what the new memory shows to the outputs.
    """

    encoder: Network
    recurrent: Linear
    head: Linear
    kind: Kind = eqx.field(static=True)

    def __init__(
        self,
        shape: ViewShape,
        outputs: int,
        units: int,
        *,
        key: PRNGKeyArray,
        hidden: tuple[int, ...],
        channels: tuple[int, ...],
        activation: Activation,
        head_scale: float,
        centred: bool = False,
        set_width: int = 0,
        kind: Kind = "gru",
    ):
        gates = 3 if kind == "gru" else 4
        encoder_key, recurrent_key, head_key = jax.random.split(key, 3)
        self.encoder = Network(
            shape,
            gates * units,
            key=encoder_key,
            hidden=hidden,
            channels=channels,
            activation=activation,
            head_scale=1.0,
            centred=centred,
            set_width=set_width,
        )
        # Columns of norm √gates over the gates: each gate's part is about orthogonal.
        self.recurrent = Linear(units, gates * units, recurrent_key, math.sqrt(gates))
        self.head = Linear(units, outputs, head_key, head_scale)
        self.kind = kind

    def step(
        self, x: Float[Array, "*batch inputs"], memory: Float[Array, "*batch size"]
    ) -> tuple[Float[Array, "*batch outputs"], Float[Array, "*batch size"]]:
        """One step of a batch."""
        units = self.recurrent.weight.shape[-1]
        entering = split(self.encoder(x), units)
        memory = next_memory(self.kind, entering, self.recurrent, memory)
        return self.head(memory[..., :units]), memory

    def unroll(
        self,
        x: Float[Array, "copy time seat inputs"],
        memory: Float[Array, "copy seat size"],
        cleared: Bool[Array, "copy time seat"],
        alive: Bool[Array, "copy time seat"],
    ) -> tuple[Float[Array, "copy time seat outputs"], Float[Array, "copy time seat size"]]:
        """All steps one after the other: outputs, and the memory after each step.

        memory: before the first step. cleared: the memory is emptied before the step. alive: where
        not, the step leaves the memory as it was (and its outputs have no meaning).
        """

        x, cleared, alive = (jnp.swapaxes(y, 0, 1) for y in (x, cleared, alive))
        units = self.recurrent.weight.shape[-1]
        entering = split(self.encoder(x), units)
        new, memories = unrolled(self.kind, entering, self.recurrent, memory, cleared, alive)
        return jnp.swapaxes(self.head(new[..., :units]), 0, 1), jnp.swapaxes(memories, 0, 1)
