"""Optimisers: every kind goes downhill, and the two ways to take a step agree."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from coplay.core.config import inert_fields
from coplay.core.errors import UserError
from coplay.rl.optimisers import (
    OptimiserConfig,
    learning_rate,
    make_optimiser,
    make_transform,
    take_step,
)

KINDS = ["adam", "rmsprop", "sgd"]
START = {"weight": jnp.array([[3.0, -2.0]]), "bias": jnp.array([1.0])}


def slope(parameters: dict) -> dict:
    return jax.grad(lambda p: sum(jnp.sum(jnp.square(x)) for x in p.values()))(parameters)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_goes_downhill(kind: str) -> None:
    config = OptimiserConfig(kind=kind, learning_rate=0.1)
    parameters, state = START, make_transform(config).init(START)
    for _ in range(5):
        parameters, state = take_step(config, parameters, slope(parameters), state, 0.1)
    for name, before in START.items():
        assert np.all(np.abs(parameters[name]) < np.abs(before))


@pytest.mark.parametrize("kind", KINDS)
def test_both_ways_take_the_same_step(kind: str) -> None:
    config = OptimiserConfig(kind=kind, learning_rate=0.1)
    gradient = slope(START)
    one, _ = take_step(config, START, gradient, make_transform(config).init(START), 0.1)
    optimiser = make_optimiser(config)
    change, _ = optimiser.update(gradient, optimiser.init(START), START)
    other = optax.apply_updates(START, change)
    assert jax.tree.all(jax.tree.map(np.array_equal, one, other))


def test_gradients_are_clipped() -> None:
    config = OptimiserConfig(kind="sgd", max_grad_norm=0.5)
    after, _ = take_step(config, START, slope(START), make_transform(config).init(START), 1.0)
    change = optax.tree.norm(jax.tree.map(jnp.subtract, START, after))
    np.testing.assert_allclose(change, 0.5, rtol=1e-5)


def test_schedule() -> None:
    assert learning_rate(OptimiserConfig(learning_rate=0.5), 0.75) == 0.5
    linear = OptimiserConfig(learning_rate=0.5, schedule="linear")
    assert learning_rate(linear, 0.0) == 0.5
    assert learning_rate(linear, 0.75) == 0.125


def test_fields() -> None:
    with pytest.raises(UserError, match="learning_rate must be above 0"):
        OptimiserConfig(learning_rate=0.0)
    assert inert_fields(OptimiserConfig(kind="sgd", epsilon=1e-8)) == [
        "epsilon does nothing here: kind is sgd"
    ]
