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

from coplay.nn.layers import Linear, product

Kind = Literal["gru", "lstm"]
MemoryKind = Literal["none", "gru", "lstm"]
Gates = tuple[Float[Array, "*batch units"], ...]


def memory_size(memory_kind: MemoryKind, units: int) -> int:
    """The width of a memory."""
    return {"none": 0, "gru": units, "lstm": 2 * units}[memory_kind]


def split(gates: Float[Array, "*batch gates"], units: int) -> Gates:
    """Gates beside each other, each as an array of its own."""
    return tuple(jnp.split(gates, gates.shape[-1] // units, axis=-1))


def beside(parts: Gates) -> Float[Array, "*batch all"]:
    """The opposite of `split`."""
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts, axis=-1)


def gru(entering: Gates, own: Gates, memory: Gates) -> Gates:
    """r, u = σ(a + b)    n = tanh(a_n + r b_n)    h' = (1 - u) n + u h

    entering: a, from the inputs. own: b = U h, from the memory. memory: its parts, h alone.
    """
    reset, update, new = entering
    own_reset, own_update, own_new = own
    (shown,) = memory
    reset = jax.nn.sigmoid(reset + own_reset)
    update = jax.nn.sigmoid(update + own_update)
    new = jnp.tanh(new + reset * own_new)
    return ((1 - update) * new + update * shown,)


def lstm(entering: Gates, own: Gates, memory: Gates) -> Gates:
    """i, f, o = σ(a + b)    g = tanh(a_g + b_g)
    c' = σ(f + 1) c + σ(i) g    h' = σ(o) tanh(c')

    Arguments as in `gru`; the parts of the memory are h, c.
    """
    enter, forget, new, show = (a + b for a, b in zip(entering, own, strict=True))
    kept = jax.nn.sigmoid(forget + 1.0) * memory[1] + jax.nn.sigmoid(enter) * jnp.tanh(new)
    return jax.nn.sigmoid(show) * jnp.tanh(kept), kept


RULES: dict[Kind, Callable[[Gates, Gates, Gates], Gates]] = {"gru": gru, "lstm": lstm}


def next_memory(
    kind: Kind, entering: Gates, recurrent: Linear, memory: Float[Array, "*batch size"]
) -> Float[Array, "*batch size"]:
    """The memory after one step. recurrent: U of all gates, with its bias."""
    parts = split(memory, recurrent.weight.shape[1])
    return beside(RULES[kind](entering, split(recurrent(parts[0]), parts[0].shape[-1]), parts))


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

    Its gradient is written out below: left to itself, JAX adds up the gradient of U inside the
    loop, a product for every step, and both directions together take about twice as long.
    """
    return _forward(kind, entering, recurrent, memory, cleared, alive)[0]


def _forward(
    kind: Kind, entering: Gates, recurrent: Linear, memory: Array, cleared: Array, alive: Array
) -> tuple[tuple[Array, Array], Gates]:
    """What `unrolled` gives, and the memory's part in the gates of every step."""
    units = recurrent.weight.shape[1]
    # Stored the way the product reads it: turning it in every step would take half as long again.
    weight = jax.lax.optimization_barrier(jnp.transpose(recurrent.weight))

    def one(memory: Array, line: tuple[Gates, Array, Array]) -> tuple[Array, tuple]:
        gates, cleared, alive = line
        memory = jnp.where(cleared[..., None], 0.0, memory)
        parts = split(memory, units)
        own = split(product(parts[0], weight) + recurrent.bias, units)
        new = beside(RULES[kind](gates, own, parts))
        memory = jnp.where(alive[..., None], new, memory)
        return memory, (new, memory, own)

    new, memories, own = jax.lax.scan(one, memory, (entering, cleared, alive))[1]
    return (new, memories), own


def _unrolled_forward(
    kind: Kind, entering: Gates, recurrent: Linear, memory: Array, cleared: Array, alive: Array
) -> tuple[tuple[Array, Array], tuple]:
    given, own = _forward(kind, entering, recurrent, memory, cleared, alive)
    return given, (entering, own, recurrent, memory, given[1], cleared, alive)


def _unrolled_backward(kind: Kind, kept: tuple, slopes: tuple[Array, Array]) -> tuple:
    """Backwards through the steps. What does not depend on the steps that follow is done for all
    steps at once: before the loop what gates and memories are worth to the next memory, after it
    the gradients of all that entered, and of U as one matrix product."""
    entering, own, recurrent, memory, after, cleared, alive = kept
    units = recurrent.weight.shape[1]
    before = jnp.concatenate([memory[None], after[:-1]])
    before = jnp.where(cleared[..., None], 0.0, before)
    by_entering, by_own, by_memory = _worth(RULES[kind], entering, own, split(before, units))

    def one(slope: Array, line: tuple) -> tuple[Array, Gates]:
        """slope: of the loss by the memory after the step."""
        of_new, of_memory, by_own, by_memory, cleared, alive = line
        slope = slope + of_memory
        of_new = split(jnp.where(alive[..., None], slope, 0.0) + of_new, units)
        shown, *rest = _pulled(of_new, by_memory)
        shown = shown + product(beside(_pulled(of_new, by_own)), recurrent.weight)
        slope = jnp.where(alive[..., None], 0.0, slope) + beside((shown, *rest))
        return jnp.where(cleared[..., None], 0.0, slope), of_new

    lines = (*slopes, by_own, by_memory, cleared, alive)
    first, of_new = jax.lax.scan(one, jnp.zeros_like(memory), lines, reverse=True)
    gates = beside(_pulled(of_new, by_own)).reshape(-1, len(own) * units)
    weight = gates.T @ before[..., :units].reshape(-1, units)
    of_recurrent = eqx.tree_at(
        lambda layer: (layer.weight, layer.bias), recurrent, (weight, jnp.sum(gates, axis=0))
    )
    return _pulled(of_new, by_entering), of_recurrent, first, None, None


unrolled.defvjp(_unrolled_forward, _unrolled_backward)


def _worth(rule: Callable[..., Gates], *groups: Gates) -> list[list[Gates]]:
    """Slopes of each part of what a rule gives by each array that it is given, number by number, as
    rules work: [group][array][part]."""

    def slope(which: int, index: int) -> Gates:
        def given(x: Array) -> Gates:
            changed = [list(group) for group in groups]
            changed[which][index] = x
            return rule(*map(tuple, changed))

        x = groups[which][index]
        return jax.jvp(given, (x,), (jnp.ones_like(x),))[1]

    return [[slope(which, i) for i in range(len(group))] for which, group in enumerate(groups)]


def _pulled(of_parts: Gates, by: list[Gates]) -> Gates:
    """Slopes of the loss by arrays, from those by the parts of what a rule made of them."""
    return tuple(functools.reduce(jnp.add, map(jnp.multiply, of_parts, one)) for one in by)


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


class Window(eqx.Module):
    """A memory of the last inputs as they were, the newest first; it has nothing to learn.

    units: width of all of them.
    """

    inputs: int = eqx.field(static=True)
    units: int = eqx.field(static=True)

    def __init__(self, inputs: int, steps: int):
        """steps: how many are kept, that of the present step among them."""
        self.inputs, self.units = inputs, steps * inputs

    def next(
        self, x: Float[Array, "*batch inputs"], memory: Float[Array, "*batch units"]
    ) -> Float[Array, "*batch units"]:
        """The memory after one step."""
        return jnp.concatenate([x, memory[..., : self.units - self.inputs]], axis=-1)

    def shown(self, memory: Float[Array, "*batch units"]) -> Float[Array, "*batch units"]:
        """All of it."""
        return memory

    def unroll(
        self,
        x: Float[Array, "time *batch inputs"],
        memory: Float[Array, "*batch units"],
        cleared: Bool[Array, "time *batch"],
        alive: Bool[Array, "time *batch"],
    ) -> tuple[Float[Array, "time *batch units"], Float[Array, "time *batch units"]]:
        """See `Cell.unroll`."""

        def one(memory: Array, line: tuple[Array, Array, Array]) -> tuple[Array, tuple]:
            x, cleared, alive = line
            memory = jnp.where(cleared[..., None], 0.0, memory)
            new = self.next(x, memory)
            memory = jnp.where(alive[..., None], new, memory)
            return memory, (new, memory)

        return jax.lax.scan(one, memory, (x, cleared, alive))[1]
