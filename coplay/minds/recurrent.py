"""Networks that remember: an encoder as in `coplay.minds.networks`, a gated recurrent unit, a head.

What enters the gates from the ego view does not depend on the memory, so it is one matrix product
over all steps; only the memory's own part runs step by step.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from coplay.minds.networks import Activation, Linear, Network, ViewShape


class GRUNetwork(eqx.Module):
    """From ego views and a memory to `outputs` numbers and the next memory.

        r = σ(a_r + U_r h + b_r)    z = σ(a_z + U_z h + b_z)    n = tanh(a_n + r (U_n h + b_n))
        h' = (1 - z) n + z h        outputs = head(h')

    encoder: gives (a_r, a_z, a_n). recurrent: U and b of the three, one below the other.
    """

    encoder: Network
    recurrent: Linear
    head: Linear

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
    ):
        encoder_key, recurrent_key, head_key = jax.random.split(key, 3)
        self.encoder = Network(
            shape,
            3 * units,
            key=encoder_key,
            hidden=hidden,
            channels=channels,
            activation=activation,
            head_scale=1.0,
            centred=centred,
        )
        # Columns of norm √3 over three gates: each gate's part is about orthogonal.
        self.recurrent = Linear(units, 3 * units, recurrent_key, math.sqrt(3))
        self.head = Linear(units, outputs, head_key, head_scale)

    def _next(
        self, gates: Float[Array, "*batch gates"], memory: Float[Array, "*batch units"]
    ) -> Float[Array, "*batch units"]:
        reset, update, new = jnp.split(gates, 3, axis=-1)
        own_reset, own_update, own_new = jnp.split(self.recurrent(memory), 3, axis=-1)
        reset = jax.nn.sigmoid(reset + own_reset)
        update = jax.nn.sigmoid(update + own_update)
        new = jnp.tanh(new + reset * own_new)
        return (1 - update) * new + update * memory

    def step(
        self, x: Float[Array, "*batch inputs"], memory: Float[Array, "*batch units"]
    ) -> tuple[Float[Array, "*batch outputs"], Float[Array, "*batch units"]]:
        """One step of a batch."""
        memory = self._next(self.encoder(x), memory)
        return self.head(memory), memory

    def unroll(
        self,
        x: Float[Array, "copy time seat inputs"],
        memory: Float[Array, "copy seat units"],
        cleared: Bool[Array, "copy time seat"],
        alive: Bool[Array, "copy time seat"],
    ) -> tuple[Float[Array, "copy time seat outputs"], Float[Array, "copy time seat units"]]:
        """All steps one after the other: outputs, and the memory after each step.

        memory: before the first step. cleared: the memory is emptied before the step. alive: where
        not, the step leaves the memory as it was (and its outputs have no meaning).
        """

        def one(memory: Array, row: tuple[Array, Array, Array]) -> tuple[Array, tuple]:
            gates, cleared, alive = row
            memory = jnp.where(cleared[..., None], 0.0, memory)
            new = self._next(gates, memory)
            memory = jnp.where(alive[..., None], new, memory)
            return memory, (new, memory)

        rows = jax.tree.map(lambda y: jnp.swapaxes(y, 0, 1), (self.encoder(x), cleared, alive))
        _, (new, memories) = jax.lax.scan(one, memory, rows)
        return self.head(jnp.swapaxes(new, 0, 1)), jnp.swapaxes(memories, 0, 1)
