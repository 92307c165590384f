"""Recurrent cells, and what they do to many steps one after the other.

A memory is one flat array: a gated recurrent unit keeps its output h, a long short-term memory
(h, c) one behind the other. So whoever carries memories need not know the kind.

Inside a loop over steps, XLA's CPU compiler turns functions of several slices of one array into
code that handles one number at a time, several times slower. So the gates of all steps come as
arrays of their own, one for each gate.
"""

import math
from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from coplay.minds.networks import Linear

Recall = Literal["none", "gru", "lstm"]
Gates = tuple[Float[Array, "*batch units"], ...]


def memory_size(recall: Recall, units: int) -> int:
    """The width of a memory."""
    return {"none": 0, "gru": units, "lstm": 2 * units}[recall]


def split(gates: Float[Array, "*batch gates"], units: int) -> Gates:
    """Gates beside each other, each as an array of its own."""
    return tuple(jnp.split(gates, gates.shape[-1] // units, axis=-1))


def gru(
    entering: Gates, recurrent: Linear, memory: Float[Array, "*batch units"]
) -> Float[Array, "*batch units"]:
    """r, u = σ(a + U h)    n = tanh(a_n + r (U_n h))    h' = (1 - u) n + u h

    entering: a. recurrent: U of all gates, with its bias.
    """
    reset, update, new = entering
    own_reset, own_update, own_new = split(recurrent(memory), memory.shape[-1])
    reset = jax.nn.sigmoid(reset + own_reset)
    update = jax.nn.sigmoid(update + own_update)
    new = jnp.tanh(new + reset * own_new)
    return (1 - update) * new + update * memory


def lstm(
    entering: Gates, recurrent: Linear, memory: Float[Array, "*batch size"]
) -> Float[Array, "*batch size"]:
    """i, f, o = σ(a + U h)    g = tanh(a_g + U_g h)
    c' = σ(f + 1) c + σ(i) g    h' = σ(o) tanh(c')

    Arguments as in `gru`.
    """
    shown, kept = jnp.split(memory, 2, axis=-1)
    own = split(recurrent(shown), shown.shape[-1])
    enter, forget, new, show = (a + b for a, b in zip(entering, own, strict=True))
    kept = jax.nn.sigmoid(forget + 1.0) * kept + jax.nn.sigmoid(enter) * jnp.tanh(new)
    return jnp.concatenate([jax.nn.sigmoid(show) * jnp.tanh(kept), kept], axis=-1)


def unrolled(
    step: Callable[[Gates, Array], Array],
    entering: tuple[Float[Array, "time *batch units"], ...],
    memory: Float[Array, "*batch size"],
    cleared: Bool[Array, "time *batch"],
    alive: Bool[Array, "time *batch"],
) -> tuple[Float[Array, "time *batch size"], Float[Array, "time *batch size"]]:
    """All steps one after the other: what each step makes of the memory, and the memory after each.

    memory: before the first step. cleared: the memory is emptied before the step. alive: where not,
    the step leaves the memory as it was (and what it made of it has no meaning).
    """

    def one(memory: Array, line: tuple[Gates, Array, Array]) -> tuple[Array, tuple[Array, Array]]:
        gates, cleared, alive = line
        memory = jnp.where(cleared[..., None], 0.0, memory)
        new = step(gates, memory)
        memory = jnp.where(alive[..., None], new, memory)
        return memory, (new, memory)

    return jax.lax.scan(one, memory, (entering, cleared, alive))[1]


class Cell(eqx.Module):
    """A recurrent cell, `gru` or `lstm`.

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

    def _next(self, entering: Gates, memory: Float[Array, "*batch size"]) -> Array:
        return (gru if self.kind == "gru" else lstm)(entering, self.recurrent, memory)

    def next(
        self, x: Float[Array, "*batch inputs"], memory: Float[Array, "*batch size"]
    ) -> Float[Array, "*batch size"]:
        """The memory after one step."""
        return self._next(split(self.entering(x), self.units), memory)

    def shown(self, memory: Float[Array, "*batch size"]) -> Float[Array, "*batch units"]:
        """What the rest of a network sees of a memory."""
        return memory[..., : self.units]

    def unroll(
        self,
        x: Float[Array, "time *batch inputs"],
        memory: Float[Array, "*batch size"],
        cleared: Bool[Array, "time *batch"],
        alive: Bool[Array, "time *batch"],
    ) -> tuple[Float[Array, "time *batch units"], Float[Array, "time *batch size"]]:
        """All steps one after the other, see `unrolled`: what is shown at each, and the memory
        after each."""
        # What enters does not depend on the memory: one matrix product over all steps.
        entering = split(self.entering(x), self.units)
        new, memories = unrolled(self._next, entering, memory, cleared, alive)
        return self.shown(new), memories
