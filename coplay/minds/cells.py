"""Recurrent cells, and what they do to many steps one after the other.

A memory is one flat array: a gated recurrent unit keeps its output h, a long short-term memory
(h, c) one behind the other. So whoever carries memories need not know the kind.

Inside a loop over steps, XLA's CPU compiler turns functions of several slices of one array into
code that handles one number at a time, several times slower. So the gates of all steps come as
arrays of their own, one for each gate.
"""

import functools
import math
from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from coplay.minds.networks import Linear, product

Kind = Literal["gru", "lstm"]
Recall = Literal["none", "gru", "lstm"]
Gates = tuple[Float[Array, "*batch units"], ...]


def memory_size(recall: Recall, units: int) -> int:
    """The width of a memory."""
    return {"none": 0, "gru": units, "lstm": 2 * units}[recall]


def split(gates: Float[Array, "*batch gates"], units: int) -> Gates:
    """Gates beside each other, each as an array of its own."""
    return tuple(jnp.split(gates, gates.shape[-1] // units, axis=-1))


def gru(
    entering: Gates, own: Gates, memory: Float[Array, "*batch units"]
) -> Float[Array, "*batch units"]:
    """r, u = σ(a + b)    n = tanh(a_n + r b_n)    h' = (1 - u) n + u h

    entering: a, from the inputs. own: b = U h, from the memory.
    """
    reset, update, new = entering
    own_reset, own_update, own_new = own
    reset = jax.nn.sigmoid(reset + own_reset)
    update = jax.nn.sigmoid(update + own_update)
    new = jnp.tanh(new + reset * own_new)
    return (1 - update) * new + update * memory


def lstm(
    entering: Gates, own: Gates, memory: Float[Array, "*batch size"]
) -> Float[Array, "*batch size"]:
    """i, f, o = σ(a + b)    g = tanh(a_g + b_g)
    c' = σ(f + 1) c + σ(i) g    h' = σ(o) tanh(c')

    Arguments as in `gru`.
    """
    _, kept = jnp.split(memory, 2, axis=-1)
    enter, forget, new, show = (a + b for a, b in zip(entering, own, strict=True))
    kept = jax.nn.sigmoid(forget + 1.0) * kept + jax.nn.sigmoid(enter) * jnp.tanh(new)
    return jnp.concatenate([jax.nn.sigmoid(show) * jnp.tanh(kept), kept], axis=-1)


def next_memory(
    kind: Kind, entering: Gates, recurrent: Linear, memory: Float[Array, "*batch size"]
) -> Float[Array, "*batch size"]:
    """The memory after one step. recurrent: U of all gates, with its bias."""
    return RULES[kind](entering, own_gates(recurrent, memory), memory)


def own_gates(recurrent: Linear, memory: Float[Array, "*batch size"]) -> Gates:
    """The memory's part in the gates."""
    units = recurrent.weight.shape[1]
    return split(recurrent(memory[..., :units]), units)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def unrolled(
    kind: Kind,
    entering: tuple[Float[Array, "time *batch units"], ...],
    recurrent: Linear,
    memory: Float[Array, "*batch size"],
    cleared: Bool[Array, "time *batch"],
    alive: Bool[Array, "time *batch"],
) -> tuple[Float[Array, "time *batch size"], Float[Array, "time *batch size"]]:
    """All steps one after the other: what each step makes of the memory, and the memory after each.

    memory: before the first step. cleared: the memory is emptied before the step. alive: where not,
    the step leaves the memory as it was (and what it made of it has no meaning).

    The gradient of U is one matrix product over all steps; left to itself, JAX adds up a product of
    every step inside the loop, and both directions take about twice as long.
    """
    return _forward(kind, entering, recurrent, memory, cleared, alive)[0]


def _forward(
    kind: Kind, entering: Gates, recurrent: Linear, memory: Array, cleared: Array, alive: Array
) -> tuple[tuple[Array, Array], Gates]:
    """What `unrolled` gives, and the memory's part in the gates of every step."""

    def one(memory: Array, line: tuple[Gates, Array, Array]) -> tuple[Array, tuple]:
        gates, cleared, alive = line
        memory = jnp.where(cleared[..., None], 0.0, memory)
        own = own_gates(recurrent, memory)
        new = RULES[kind](gates, own, memory)
        memory = jnp.where(alive[..., None], new, memory)
        return memory, (new, memory, own)

    new, memories, own = jax.lax.scan(one, memory, (entering, cleared, alive))[1]
    return (new, memories), own


def _unrolled_forward(
    kind: Kind, entering: Gates, recurrent: Linear, memory: Array, cleared: Array, alive: Array
) -> tuple[tuple[Array, Array], tuple]:
    given, own = _forward(kind, entering, recurrent, memory, cleared, alive)
    before = jnp.concatenate([memory[None], given[1][:-1]])
    before = jnp.where(cleared[..., None], 0.0, before)
    return given, (entering, own, recurrent, before, cleared, alive)


def _unrolled_backward(kind: Kind, kept: tuple, slopes: tuple[Array, Array]) -> tuple:
    entering, own, recurrent, before, cleared, alive = kept
    units = recurrent.weight.shape[1]

    def one(slope: Array, line: tuple) -> tuple[Array, tuple[Gates, Gates]]:
        """slope: of the loss by the memory after the step."""
        of_new, of_memory, entering, own, before, cleared, alive = line
        slope = slope + of_memory
        of_new = jnp.where(alive[..., None], slope, 0.0) + of_new
        _, pull = jax.vjp(RULES[kind], entering, own, before)
        of_entering, of_own, of_before = pull(of_new)
        shown = product(jnp.concatenate(of_own, axis=-1), recurrent.weight)
        of_before = jnp.where(alive[..., None], 0.0, slope) + of_before.at[..., :units].add(shown)
        return jnp.where(cleared[..., None], 0.0, of_before), (of_entering, of_own)

    lines = (*slopes, entering, own, before, cleared, alive)
    first, (of_entering, of_own) = jax.lax.scan(one, jnp.zeros_like(before[0]), lines, reverse=True)
    gates = jnp.concatenate(of_own, axis=-1).reshape(-1, len(of_own) * units)
    weight = gates.T @ before[..., :units].reshape(-1, units)
    of_recurrent = eqx.tree_at(
        lambda layer: (layer.weight, layer.bias), recurrent, (weight, jnp.sum(gates, axis=0))
    )
    return of_entering, of_recurrent, first, None, None


unrolled.defvjp(_unrolled_forward, _unrolled_backward)

RULES: dict[Kind, Callable[[Gates, Gates, Array], Array]] = {"gru": gru, "lstm": lstm}


class Cell(eqx.Module):
    """A recurrent cell, `gru` or `lstm`.

    entering: gives a of all gates from the inputs. recurrent: U of all gates, with its bias.
    """

    entering: Linear
    recurrent: Linear
    kind: Kind = eqx.field(static=True)
    units: int = eqx.field(static=True)

    def __init__(self, kind: Kind, inputs: int, units: int, key: PRNGKeyArray):
        gates = 3 if kind == "gru" else 4
        entering, recurrent = jax.random.split(key)
        self.entering = Linear(inputs, gates * units, entering, 1.0)
        # Columns of norm √gates over the gates: each gate's part is about orthogonal.
        self.recurrent = Linear(units, gates * units, recurrent, math.sqrt(gates))
        self.kind, self.units = kind, units

    def next(
        self, x: Float[Array, "*batch inputs"], memory: Float[Array, "*batch size"]
    ) -> Float[Array, "*batch size"]:
        """The memory after one step."""
        entering = split(self.entering(x), self.units)
        return next_memory(self.kind, entering, self.recurrent, memory)

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
        new, memories = unrolled(self.kind, entering, self.recurrent, memory, cleared, alive)
        return self.shown(new), memories
