"""The networks of HOP: new ones, or those of a PPO run to start from; and their losses."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from coplay.algorithms.hop.config import HOPConfig
from coplay.algorithms.hop.data import Pairs
from coplay.algorithms.ppo.learner import PPO, PPOState
from coplay.core.errors import UserError
from coplay.core.learner import Learner
from coplay.core.numerics import masked_mean
from coplay.models.opponent_model import cross_entropy, predict_from
from coplay.nn import categorical
from coplay.nn.networks import Network, ViewShape, make_network
from coplay.nn.sparse_views import SparseView


class GoalSizes(NamedTuple):
    """How many candidate goals there are, by how many numbers each is described, and how many
    habits there are; acting at random left out."""

    goals: int
    features: int
    habits: int


def goal_sizes(config: HOPConfig, shape: ViewShape) -> GoalSizes:
    """Of a resolved configuration; all 0 without goals."""
    number = config.goals.prototypes
    return {
        "declared": GoalSizes(shape.goals, shape.goal_features, shape.habits),
        "prototypes": GoalSizes(number, number, number),
        "none": GoalSizes(0, 0, 0),
    }[config.goals.source]


class Networks(NamedTuple):
    """Actor and critic [set, ...], opponent models [set, model, ...]."""

    actor: Network
    critic: Network
    opponents: Network


def new_networks(
    config: HOPConfig, shape: ViewShape, others: int, context: int, key: PRNGKeyArray
) -> Networks:
    """Networks of one seat with so many co-players; `context`: how many numbers actor and critic
    see beside the ego view."""
    actor_key, critic_key, opponent_key = jax.random.split(key, 3)
    goal = goal_sizes(config, shape).features
    with_goal, wide = shape.with_more(goal), shape.with_more(context)
    models = others if config.opponents == "separate" else 1
    opponents = jax.vmap(
        lambda key: make_network(config.network, with_goal, shape.actions, key, 0.01)
    )(jax.random.split(opponent_key, models))
    actor = make_network(config.network, wide, shape.actions, actor_key, 0.01)
    return Networks(actor, make_network(config.network, wide, 1, critic_key, 1.0), opponents)


def warm_started(
    path: str,
    learner: Learner,
    state: Any,
    networks: Networks,
    seats: tuple[int, ...],
    separate: bool,
    context: int,
) -> Networks:
    """The networks [set, ...] with actor and critic from a PPO run, each seat's from the same seat
    if they are separate. What they see beside the ego view has weights of 0 at first.

    path: how the run was named. learner, state: of that run.
    """
    if not isinstance(learner, PPO) or not isinstance(state, PPOState):
        raise UserError(f"warm_start '{path}' is no run of ppo")
    if learner.config.parameters == "separate" and not separate:
        raise UserError(
            f"warm_start '{path}' has networks of its own for each seat, and this learner one set "
            "for all: train ppo with --parameters shared, or hop with --parameters separate"
        )
    if learner.config.parameters == "separate":
        missing = [seat for seat in seats if seat not in learner.seats]
        if missing:
            raise UserError(f"warm_start: nobody learned in the seats {missing} of that run")
        rows = np.array([learner.seats.index(seat) for seat in seats])
    else:
        rows = np.zeros(len(seats) if separate else 1, int)
    actor, critic = jax.tree.map(lambda x: x[rows], (state.actor, state.critic))
    actor, critic = (_with_inputs(network, context) for network in (actor, critic))
    loaded, wanted = (actor, critic), (networks.actor, networks.critic)
    if _form(loaded) != _form(wanted):
        raise UserError(
            f"warm_start '{path}': its networks have other shapes "
            f"(network={learner.config.network.kind}, hidden={learner.config.network.hidden}); "
            "train both with the same network, hidden, channels and activation, "
            "for instance coplay train ppo --network.kind centred, and without shared+id"
        )
    return networks._replace(actor=actor, critic=critic)


def _with_inputs(network: Network, more: int) -> Network:
    """The networks [set, ...] with so many inputs more, of weight 0."""
    (first, *layers), wide = network.layers, ((0, 0), (0, 0), (0, more))
    first = eqx.tree_at(lambda layer: layer.weight, first, jnp.pad(first.weight, wide))
    return eqx.tree_at(lambda network: network.layers, network, (first, *layers))


def _form(tree: Any) -> tuple[Any, list[tuple[int, ...]]]:
    """Structure and shapes of a pytree."""
    return jax.tree.structure(tree), [x.shape for x in jax.tree.leaves(tree)]


# --- losses ------------------------------------------------------------------------------------


def actor_loss(
    actor: Network,
    view: Float[Array, "sample input"] | SparseView,
    legal: Bool[Array, "sample action"],
    alive: Bool[Array, " sample"],
    policy: Float[Array, "sample action"],
) -> Float[Array, ""]:
    """Half the cross-entropy of the actor on the policy that the search gave."""
    log_policy = categorical.log_policy(actor(view), legal)
    return 0.5 * masked_mean(-jnp.sum(policy * log_policy, axis=-1), alive, None)


def critic_loss(
    critic: Network,
    view: Float[Array, "sample input"] | SparseView,
    alive: Bool[Array, " sample"],
    target: Float[Array, " sample"],
) -> Float[Array, ""]:
    """Half the squared error of the critic on the returns."""
    error = jnp.square(critic(view)[..., 0] - target)
    return 0.5 * masked_mean(error, alive, None)


def opponent_loss(model: Network, pairs: Pairs) -> Float[Array, ""]:
    """Cross-entropy of an opponent model on what co-players did."""
    log_probs = predict_from(model, pairs.view, pairs.goal, pairs.legal)
    return cross_entropy(log_probs, pairs.action, pairs.mask)
