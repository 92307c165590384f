"""Networks with layer normalisation and memory, against plain loops in NumPy."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.nn.generated_weights import Generated, Heads
from coplay.nn.layer_norm import LayerNorm, LayerNormNetwork
from coplay.nn.networks import ViewShape
from coplay.nn.recurrent_cells import Cell, memory_size

ROWS, STEPS, SEATS, INPUTS, UNITS = 2, 5, 3, 4, 3
RNG = np.random.default_rng(0)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def noisy(make: Any) -> Any:
    """What `make` gives, with all of its numbers moved; compiled as one."""
    rng = np.random.default_rng(0)
    tree = jax.tree.map(np.asarray, jax.jit(make)())
    moved = jax.tree.map(lambda x: np.float32(x + 0.3 * rng.normal(size=x.shape)), tree)
    return jax.tree.map(jnp.asarray, moved)


def plain_step(cell: Cell, x: np.ndarray, memory: np.ndarray) -> np.ndarray:
    """One step of one sample, gate by gate."""
    a = np.asarray(cell.entering.weight) @ x + np.asarray(cell.entering.bias)
    u = np.asarray(cell.recurrent.weight) @ memory[:UNITS] + np.asarray(cell.recurrent.bias)
    a, u = (v.reshape(-1, UNITS) for v in (a, u))
    if cell.kind == "gru":
        r, z = sigmoid(a[0] + u[0]), sigmoid(a[1] + u[1])
        return (1 - z) * np.tanh(a[2] + r * u[2]) + z * memory
    kept = sigmoid(a[1] + u[1] + 1) * memory[UNITS:]
    kept = kept + sigmoid(a[0] + u[0]) * np.tanh(a[2] + u[2])
    return np.concatenate([sigmoid(a[3] + u[3]) * np.tanh(kept), kept])


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_cells_unrolled_are_plain_loops(kind: Any) -> None:
    cell = noisy(lambda: Cell(kind, INPUTS, UNITS, jax.random.key(0)))
    x = RNG.normal(size=(STEPS, ROWS, SEATS, INPUTS)).astype(np.float32)
    start = RNG.normal(size=(ROWS, SEATS, memory_size(kind, UNITS))).astype(np.float32)
    cleared = RNG.random((STEPS, ROWS, SEATS)) < 0.3
    alive = RNG.random((STEPS, ROWS, SEATS)) < 0.7
    shown, memories = jax.jit(Cell.unroll)(cell, x, start, cleared, alive)
    for row in range(ROWS):
        for seat in range(SEATS):
            memory = start[row, seat]
            for t in range(STEPS):
                memory = np.where(cleared[t, row, seat], 0.0, memory)
                new = plain_step(cell, x[t, row, seat], memory)
                np.testing.assert_allclose(shown[t, row, seat], new[:UNITS], atol=1e-5)
                memory = new if alive[t, row, seat] else memory
                np.testing.assert_allclose(memories[t, row, seat], memory, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_gradients_of_unrolled_cells_are_those_of_steps_one_after_the_other(kind: Any) -> None:
    cell = noisy(lambda: Cell(kind, INPUTS, UNITS, jax.random.key(0)))
    size = memory_size(kind, UNITS)
    x = RNG.normal(size=(STEPS, ROWS, SEATS, INPUTS)).astype(np.float32)
    start = RNG.normal(size=(ROWS, SEATS, size)).astype(np.float32)
    cleared = RNG.random((STEPS, ROWS, SEATS)) < 0.3
    alive = RNG.random((STEPS, ROWS, SEATS)) < 0.7
    weights = [RNG.normal(size=(STEPS, ROWS, SEATS, n)).astype(np.float32) for n in (UNITS, size)]

    def loss(shown: Any, memories: Any) -> Any:
        return jnp.sum(weights[0] * jnp.sin(shown)) + jnp.sum(weights[1] * jnp.sin(memories))

    def by_steps(cell: Cell, x: Any, memory: Any) -> Any:
        shown, memories = [], []
        for t in range(STEPS):
            memory = jnp.where(cleared[t, ..., None], 0.0, memory)
            new = cell.next(x[t], memory)
            memory = jnp.where(alive[t, ..., None], new, memory)
            shown.append(cell.shown(new))
            memories.append(memory)
        return loss(jnp.stack(shown), jnp.stack(memories))

    def at_once(cell: Cell, x: Any, memory: Any) -> Any:
        return loss(*cell.unroll(x, memory, jnp.asarray(cleared), jnp.asarray(alive)))

    expected, found = (
        jax.tree.leaves(jax.jit(jax.grad(f, (0, 1, 2)))(cell, x, start))
        for f in (by_steps, at_once)
    )
    assert len(found) == 6 and all(np.abs(one).max() > 0.1 for one in expected)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(other, one, atol=1e-5)


def test_layer_norm() -> None:
    norm = noisy(lambda: LayerNorm(6))
    x = RNG.normal(2.0, 3.0, size=(5, 6)).astype(np.float32)
    centred = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    expected = centred * np.asarray(norm.scale) + np.asarray(norm.shift)
    np.testing.assert_allclose(jax.jit(LayerNorm.__call__)(norm, x), expected, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("memory_kind", ["none", "gru", "lstm"])
def test_unrolled_networks_are_steps_one_after_the_other(memory_kind: Any) -> None:
    network = noisy(
        lambda: LayerNormNetwork(
            ViewShape((2, 2, 2), 3, 4),
            4,
            key=jax.random.key(1),
            hidden=(5, 6),
            channels=(2,) if memory_kind == "none" else (),
            memory_kind=memory_kind,
            units=UNITS,
        )
    )
    x = jnp.asarray(RNG.normal(size=(ROWS, STEPS, SEATS, 11)), jnp.float32)
    memory = jnp.asarray(
        RNG.normal(size=(ROWS, SEATS, memory_size(memory_kind, UNITS))), jnp.float32
    )
    no, yes = jnp.zeros((ROWS, STEPS, SEATS), bool), jnp.ones((ROWS, STEPS, SEATS), bool)
    context = jnp.asarray(RNG.normal(size=(ROWS, STEPS, SEATS, 2)), jnp.float32)
    heads = noisy(lambda: Heads(2, network, "last"))
    generated = Generated(heads, context)
    outputs, memories = jax.jit(LayerNormNetwork.unroll)(network, x, memory, no, yes, generated)
    step = jax.jit(LayerNormNetwork.step)
    for t in range(STEPS):
        out, memory = step(network, x[:, t], memory, Generated(heads, context[:, t]))
        np.testing.assert_allclose(outputs[:, t], out, atol=1e-5)
        np.testing.assert_allclose(memories[:, t], memory, atol=1e-5)
