"""The wiring audit looks into optimisers: any of optax, on networks or on one vector of numbers."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

from coplay.core.learner import Learner
from coplay.evaluation.audits.wiring import Course, parameter_check
from coplay.evaluation.audits.wiring_optimisers import only_decays
from coplay.nn.layers import Linear


class Net(eqx.Module):
    """unused: a layer without effect. Both layers have the same shapes."""

    used: Linear
    unused: Linear

    def __init__(self, key: Any):
        one, two = jax.random.split(key)
        self.used, self.unused = Linear(3, 2, one), Linear(3, 2, two)


class ToyState(NamedTuple):
    actor: Net
    critic: Net
    actor_optimiser: Any
    critic_optimiser: Any


class Toy(Learner):
    """Only what the audit of its parameters asks."""

    config: Any = eqx.field(static=True, default=())
    seats: tuple[int, ...] = eqx.field(static=True, default=(0,))
    active: tuple[int, ...] = eqx.field(static=True, default=(0,))


def used(net: Net) -> Any:
    return jnp.sum(jnp.square(net.used(jnp.ones(3)) - 1.0))


def both(net: Net) -> Any:
    return used(net) + jnp.sum(jnp.square(net.unused(jnp.ones(3)) - 2.0))


def course(
    optimiser: optax.GradientTransformation,
    loss: Callable[[Net], Any] = both,
    part: Callable[[Net], Any] = lambda net: net,
    critic: bool = True,
) -> Course:
    """A few steps of a toy learner. part: of the actor, which alone has an optimiser. critic:
    whether the critic has one."""
    actor, other = Net(jax.random.key(0)), Net(jax.random.key(1))
    start = ToyState(
        actor, other, optimiser.init(part(actor)), optimiser.init(other) if critic else ()
    )
    state = start
    for _ in range(3):
        slope = part(jax.grad(loss)(state.actor))
        change, kept = optimiser.update(slope, state.actor_optimiser, part(state.actor))
        moved = eqx.tree_at(part, state.actor, optax.apply_updates(part(state.actor), change))
        state = state._replace(actor=moved, actor_optimiser=kept)
        if critic:
            slope = jax.grad(both)(state.critic)
            change, kept = optimiser.update(slope, state.critic_optimiser, state.critic)
            moved = optax.apply_updates(state.critic, change)
            state = state._replace(critic=moved, critic_optimiser=kept)
    return Course(start, state, None, None)


OPTIMISERS = {
    "adam": optax.adam(0.1),
    "clipped adam": optax.chain(optax.clip_by_global_norm(0.5), optax.adam(0.1)),
    "adamw": optax.adamw(0.1),
    "sgd with momentum": optax.sgd(0.1, momentum=0.9),
    "rmsprop": optax.rmsprop(0.1),
    "adagrad": optax.adagrad(0.1),
    "with a schedule": optax.inject_hyperparams(optax.adam)(optax.linear_schedule(0.1, 0.0, 9)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIMISERS)
def test_any_optimiser_of_optax(name: str) -> None:
    optimiser = OPTIMISERS[name]
    assert parameter_check(Toy(), course(optimiser)).passed
    check = parameter_check(Toy(), course(optimiser, loss=used))
    assert not check.passed and len(check.figures["still"]) >= 1
    words = "gets no gradient and only decays" if name == "adamw" else "gets no gradient"
    assert f"['actor'].unused.weight {words}" in check.detail
    assert "critic" not in check.detail and ".used" not in check.detail


@pytest.mark.parametrize("name", OPTIMISERS)
def test_parameters_in_no_optimiser_are_named(name: str) -> None:
    """Also where others of the same shape are in one."""
    check = parameter_check(Toy(), course(OPTIMISERS[name], part=lambda net: net.used))
    assert check.figures["still"] == ["['actor'].unused.weight", "['actor'].unused.bias"]
    assert "['actor'].unused.weight is in no optimiser" in check.detail
    check = parameter_check(Toy(), course(OPTIMISERS[name], critic=False))
    assert len(check.figures["still"]) == 4 and "['critic'].used.bias is in no" in check.detail


def test_optimisers_that_keep_nothing() -> None:
    assert parameter_check(Toy(), course(optax.sgd(0.1))).passed
    check = parameter_check(Toy(), course(optax.sgd(0.1), loss=used))
    assert "['actor'].unused.weight does not move; no optimiser keeps anything" in check.detail


def test_all_numbers_of_a_model_as_one_vector() -> None:
    optimiser = optax.adam(0.1)
    net, other = Net(jax.random.key(0)), Net(jax.random.key(1))
    flat, as_net = ravel_pytree(net)
    start = ToyState(net, other, optimiser.init(flat), ())
    slope = ravel_pytree(jax.grad(used)(net))[0]
    change, kept = optimiser.update(slope, start.actor_optimiser)
    state = start._replace(actor=as_net(flat + change), actor_optimiser=kept)
    check = parameter_check(Toy(), Course(start, state, None, None))
    assert "['actor'].unused.weight gets no gradient" in check.detail
    assert "['critic'].used.weight is in no optimiser" in check.detail
    assert "['actor'].used" not in check.detail


def test_decay() -> None:
    before = np.array([0.0, 2.0, -4.0])
    assert only_decays(before, 0.9 * before)
    assert not only_decays(before, 1.1 * before)
    assert not only_decays(before, before - 0.1)
    assert not only_decays(np.zeros(2), np.zeros(2))
