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
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from coplay.nn.layers import Linear, product

Kind = Literal["gru", "lstm"]
MemoryKind = Literal["none", "gru", "lstm"]
Gates = tuple[Float[Array, "*batch units"], ...]
Parts = list[tuple[Float[Array, "*batch units"] | None, ...]]  # [array][part of the new memory]
Slopes = tuple[Parts, Parts, Parts]  # by what enters, by the memory's part in the gates, by memory


def memory_size(memory_kind: MemoryKind, units: int) -> int:
    """The width of a memory."""
    return {"none": 0, "gru": units, "lstm": 2 * units}[memory_kind]


def split(gates: Float[Array, "*batch gates"], units: int) -> Gates:
    """Gates beside each other, each as an array of its own."""
    return tuple(jnp.split(gates, gates.shape[-1] // units, axis=-1))


def beside(parts: Gates) -> Float[Array, "*batch all"]:
    """The opposite of `split`."""
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts, axis=-1)


def gru(entering: Gates, own: Gates, memory: Gates) -> tuple[Gates, Gates]:
    """r, u = σ(a + b)    n = tanh(a_n + r b_n)    h' = (1 - u) n + u h

    entering: a, from the inputs. own: b = U h, from the memory. memory: its parts, h alone. Returns
    the parts of the new memory, and what its slopes are made of.
    """
    reset, update, new = entering
    own_reset, own_update, own_new = own
    (shown,) = memory
    reset = jax.nn.sigmoid(reset + own_reset)
    update = jax.nn.sigmoid(update + own_update)
    new = jnp.tanh(new + reset * own_new)
    return ((1 - update) * new + update * shown,), (reset, update, new, own_new)


def gru_slopes(kept: Gates, memory: Gates) -> Slopes:
    reset, update, new, own_new = kept
    (shown,) = memory
    by_new = (1 - update) * (1 - new * new)
    by_reset = by_new * own_new * reset * (1 - reset)
    by_update = (shown - new) * update * (1 - update)
    entering: Parts = [(by_reset,), (by_update,), (by_new,)]
    return entering, [*entering[:2], (by_new * reset,)], [(update,)]


def lstm(entering: Gates, own: Gates, memory: Gates) -> tuple[Gates, Gates]:
    """i, f, o = σ(a + b)    g = tanh(a_g + b_g)
    c' = σ(f + 1) c + σ(i) g    h' = σ(o) tanh(c')

    Arguments as in `gru`; the parts of the memory are h, c.
    """
    enter, forget, new, show = (a + b for a, b in zip(entering, own, strict=True))
    enter, forget, show = (jax.nn.sigmoid(x) for x in (enter, forget + 1.0, show))
    new = jnp.tanh(new)
    kept = forget * memory[1] + enter * new
    seen = jnp.tanh(kept)
    return (show * seen, kept), (enter, forget, new, show, seen)


def lstm_slopes(kept: Gates, memory: Gates) -> Slopes:
    enter, forget, new, show, seen = kept
    shown = show * (1 - seen * seen)  # of h' by c'
    by_enter = new * enter * (1 - enter)
    by_forget = memory[1] * forget * (1 - forget)
    by_new = enter * (1 - new * new)
    own: Parts = [(shown * x, x) for x in (by_enter, by_forget, by_new)]
    own.append((seen * show * (1 - show), None))
    return own, own, [(None, None), (shown * forget, forget)]


class Rule(NamedTuple):
    """next: what a cell does in a step. slopes: of the parts of the new memory by `entering`, by
    `own` and by the parts of the memory, from what `next` kept; None: 0."""

    next: Callable[[Gates, Gates, Gates], tuple[Gates, Gates]]
    slopes: Callable[[Gates, Gates], Slopes]


RULES: dict[Kind, Rule] = {"gru": Rule(gru, gru_slopes), "lstm": Rule(lstm, lstm_slopes)}


def entering_gates(layer: Linear, x: Float[Array, "*batch inputs"], units: int) -> Gates:
    """What enters the gates at all steps, by a product for each gate: to take the outcome of one
    product apart costs half as long as the product."""
    parts = layer.weight.shape[0] // units
    weights, biases = (jnp.split(x, parts) for x in (layer.weight, layer.bias))
    return tuple(
        product(x, jnp.transpose(weight)) + bias
        for weight, bias in zip(weights, biases, strict=True)
    )


def next_memory(
    kind: Kind, entering: Gates, recurrent: Linear, memory: Float[Array, "*batch size"]
) -> Float[Array, "*batch size"]:
    """The memory after one step. recurrent: U of all gates, with its bias."""
    parts = split(memory, recurrent.weight.shape[1])
    own = split(recurrent(parts[0]), parts[0].shape[-1])
    return beside(RULES[kind].next(entering, own, parts)[0])


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
    """What `unrolled` gives, and what the slopes of every step are made of."""
    units = recurrent.weight.shape[1]
    # Stored the way the product reads it: turning it in every step would take half as long again.
    weight = jax.lax.optimization_barrier(jnp.transpose(recurrent.weight))

    def one(memory: Array, line: tuple[Gates, Array, Array]) -> tuple[Array, tuple]:
        gates, cleared, alive = line
        memory = jnp.where(cleared[..., None], 0.0, memory)
        parts = split(memory, units)
        own = split(product(parts[0], weight) + recurrent.bias, units)
        following, kept = RULES[kind].next(gates, own, parts)
        new = beside(following)
        memory = jnp.where(alive[..., None], new, memory)
        return memory, (new, memory, kept)

    new, memories, kept = jax.lax.scan(one, memory, (entering, cleared, alive))[1]
    return (new, memories), kept


def _unrolled_forward(
    kind: Kind, entering: Gates, recurrent: Linear, memory: Array, cleared: Array, alive: Array
) -> tuple[tuple[Array, Array], tuple]:
    given, kept = _forward(kind, entering, recurrent, memory, cleared, alive)
    return given, (kept, recurrent, memory, given[1], cleared, alive)


def _unrolled_backward(kind: Kind, kept: tuple, slopes: tuple[Array, Array]) -> tuple:
    """Backwards through the steps. What does not depend on the steps that follow is done for all
    steps at once: before the loop what gates and memories are worth to the next memory, after it
    the gradients of all that entered, and of U as one matrix product."""
    of_steps, recurrent, memory, after, cleared, alive = kept
    units = recurrent.weight.shape[1]
    before = jnp.concatenate([memory[None], after[:-1]])
    before = jnp.where(cleared[..., None], 0.0, before)
    by_entering, by_own, by_memory = RULES[kind].slopes(of_steps, split(before, units))

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
    gates = [gate.reshape(-1, units) for gate in _pulled(of_new, by_own)]
    shown = before[..., :units].reshape(-1, units)
    weight = jnp.concatenate([gate.T @ shown for gate in gates])
    bias = jnp.concatenate([jnp.sum(gate, axis=0) for gate in gates])
    of_recurrent = eqx.tree_at(lambda layer: (layer.weight, layer.bias), recurrent, (weight, bias))
    return _pulled(of_new, by_entering), of_recurrent, first, None, None


unrolled.defvjp(_unrolled_forward, _unrolled_backward)


def _pulled(of_parts: Gates, by: Parts) -> Gates:
    """Slopes of the loss by arrays, from those by the parts of what a rule made of them."""

    def one(slopes: tuple[Array | None, ...]) -> Array:
        terms = [
            of * slope for of, slope in zip(of_parts, slopes, strict=True) if slope is not None
        ]
        return functools.reduce(jnp.add, terms) if terms else jnp.zeros_like(of_parts[0])

    return tuple(map(one, by))


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
        # What enters does not depend on the memory: matrix products over all steps.
        entering = entering_gates(self.entering, x, self.units)
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
