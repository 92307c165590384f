"""Measurements of an update of MAPPO or HyperMAPPO: how the agents' policies moved under each
other, whether their gradients agree, and how different their policies are."""

from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Shaped

from coplay.algorithms.mappo.config import MAPPOConfig
from coplay.algorithms.mappo.data import Context, MAPPOBatch, MAPPOState, Parameters
from coplay.core.numerics import masked_mean
from coplay.nn import categorical
from coplay.nn.layers import Linear
from coplay.rl.minibatches import as_samples
from coplay.rl.nonstationarity import js_distance, mean_cosine, policy_shift

PROBE = 256  # steps of game copies that are looked at, and at most an eighth of a rollout


@runtime_checkable
class TeamLearner(Protocol):
    """What the measurements ask of a learner; see `MAPPO`."""

    @property
    def config(self) -> MAPPOConfig: ...
    @property
    def active(self) -> tuple[int, ...]: ...
    @property
    def separate(self) -> bool: ...
    @property
    def alike(self) -> bool: ...
    def contexts(self, parameters: Parameters, batch: MAPPOBatch) -> Context | None: ...
    def policies(
        self, parameters: Parameters, batch: MAPPOBatch, context: Context | None
    ) -> Float[Array, "row time seat action"]: ...
    def as_others(
        self, batch: MAPPOBatch, context: Context | None, shift: Int[Array, ""]
    ) -> tuple[MAPPOBatch, Context | None]: ...
    def increments(
        self, parameters: Parameters, batch: MAPPOBatch, context: Context | None
    ) -> dict[str, Float[Array, " seat"]]: ...


def moved(
    learner: TeamLearner, learning: MAPPOState, batch: MAPPOBatch
) -> dict[str, Float[Array, "set seat"]]:
    """What the new policies are beside those that played, and beside each other; `batch` [set, row,
    ...]. diversity: mean distance of an agent's policy from the others' on what the agent saw."""
    rows, length = batch.alive.shape[1:3]
    count = max(1, min(rows // 8, PROBE // length))
    part = jax.tree.map(lambda x: x[:, :: rows // count][:, :count], batch)
    context = jax.vmap(learner.contexts)(learning.parameters, part)
    agents = 1 if learner.alike else len(learner.active)
    # [shift, sample, agent, action]: of each agent's view, the policy of the one so many seats on.
    policies = jax.lax.map(
        lambda shift: _together(_policies(learner, learning.parameters, part, context, shift)),
        jnp.arange(agents),
    )
    old, action, acting = (_together(x) for x in (part.log_policy, part.action, part.acting))
    metrics = policy_shift(old, policies[0], action, acting, learner.config.clip)
    if not learner.separate:
        metrics["gradient_cosine"] = _agreement(learner, learning, part)
    apart = js_distance(policies[:1], policies[1:])
    each = jax.vmap(lambda distance: masked_mean(distance, acting, 0))(apart)
    metrics["diversity"] = jnp.sum(each, axis=0) / max(1, agents - 1)
    shape = (batch.alive.shape[0], batch.alive.shape[3])
    metrics = {name: values.reshape(shape) for name, values in metrics.items()}
    return metrics | jax.vmap(learner.increments)(learning.parameters, part, context)


def _together(x: Shaped[Array, "set row time seat *rest"]) -> Shaped[Array, "sample all *rest"]:
    """All agents of all sets beside each other."""
    x = jnp.moveaxis(x, 0, 2)
    return x.reshape(x.shape[0] * x.shape[1], -1, *x.shape[4:])


def _policies(
    learner: TeamLearner,
    parameters: Parameters,
    part: MAPPOBatch,
    context: Context | None,
    shift: Int[Array, ""],
) -> Float[Array, "set row time seat action"]:
    """Log-policies of the agents `shift` seats further on, of what each agent saw."""
    if learner.separate:
        parameters = jax.tree.map(lambda x: jnp.roll(x, -shift, axis=0), parameters)

    def one(parameters: Parameters, part: MAPPOBatch, context: Context | None) -> Array:
        part, context = learner.as_others(part, context, shift)
        return learner.policies(parameters, part, context)

    return jax.vmap(one)(parameters, part, context)


def _agreement(
    learner: TeamLearner, learning: MAPPOState, part: MAPPOBatch
) -> Float[Array, " all"]:
    """Mean cosine of each agent's policy gradient with those of the others, on the last layer of
    the actor that they share: there a gradient costs no way back through the network."""
    parameters, part = jax.tree.map(lambda x: x[0], (learning.parameters, part))
    context = learner.contexts(parameters, part)
    flat = [as_samples(x) for x in (part.log_policy, part.action, part.advantage, part.acting)]
    old, action, advantage, acting = flat

    def losses(head: Linear) -> Float[Array, " seat"]:
        actor = eqx.tree_at(lambda network: network.head, parameters.actor, head)
        new = as_samples(learner.policies(parameters._replace(actor=actor), part, context))
        log_ratio = categorical.take(new, action) - categorical.take(old, action)
        gain = jnp.exp(jnp.where(acting, log_ratio, 0.0)) * advantage
        return masked_mean(-gain, acting, 0)

    return mean_cosine(jax.jacrev(losses)(parameters.actor.head))
