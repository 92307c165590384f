"""Optimisers: their configuration, and the only place where a gradient becomes a step.

A learner starts an optimiser with `make_transform(config).init(parameters)` and takes a step with
`take_step(config, parameters, gradient, state, rate)`, where `rate` comes from
`learning_rate(config, progress)`. A learner that adds the change of the parameters itself has the
optax optimiser of `make_optimiser(config)`. Both give `parameters` to optax, since some kinds need
them.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

import jax
import optax
from jaxtyping import Array, Float

from coplay.core.config import Config, PositiveFloat, only_if

T = TypeVar("T")  # a pytree of parameters


@dataclass(frozen=True)
class OptimiserConfig(Config):
    """How gradients become steps of the parameters."""

    kind: Literal["adam", "rmsprop", "sgd"] = "adam"
    """What becomes of a clipped gradient: Adam; RMSprop; the gradient as it is."""
    learning_rate: PositiveFloat = 1e-3
    """Step size."""
    schedule: Literal["constant", "linear"] = "constant"
    """Step size over the run: constant, or falling linearly to 0 at its end."""
    max_grad_norm: PositiveFloat = 0.5
    """Largest norm of the gradient of each network; larger gradients are scaled down to it."""
    epsilon: Annotated[PositiveFloat, only_if(".kind", "adam", "rmsprop")] = 1e-5
    """What is added to the root of the mean squared gradient that gradients are divided by."""


def make_transform(config: OptimiserConfig) -> optax.GradientTransformation:
    """From gradients to directions against which to go, without the step size."""
    return optax.chain(optax.clip_by_global_norm(config.max_grad_norm), _direction(config))


def make_optimiser(config: OptimiserConfig) -> optax.GradientTransformation:
    """From gradients to changes of the parameters at the full learning rate, whatever the schedule;
    for `optax.apply_updates`."""
    return optax.chain(
        optax.clip_by_global_norm(config.max_grad_norm),
        optax.chain(_direction(config), optax.scale_by_learning_rate(config.learning_rate)),
    )


def _direction(config: OptimiserConfig) -> optax.GradientTransformation:
    if config.kind == "sgd":
        return optax.identity()
    if config.kind == "rmsprop":
        return optax.scale_by_rms(decay=0.99, eps=config.epsilon, eps_in_sqrt=False)
    return optax.scale_by_adam(eps=config.epsilon)


def learning_rate(
    config: OptimiserConfig, progress: Float[Array, ""] | float
) -> Float[Array, ""] | float:
    """The step size when the share `progress` of the run is done."""
    return config.learning_rate * (1.0 - progress if config.schedule == "linear" else 1.0)


def take_step(
    config: OptimiserConfig,
    parameters: T,
    gradient: T,
    state: Any,
    rate: Float[Array, ""] | float,
) -> tuple[T, Any]:
    """The parameters after one step of size `rate`, and the optimiser's state after it; `state` is
    that of `make_transform`."""
    step, state = make_transform(config).update(gradient, state, parameters)
    return jax.tree.map(lambda x, s: x - rate * s, parameters, step), state
