"""The networks of HOP: made anew, or begun with those of a PPO run."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from coplay.algorithms.hop.config import HOPConfig
from coplay.algorithms.ppo.learner import PPO, PPOState
from coplay.core.errors import UserError
from coplay.core.learner import Learner
from coplay.nn.networks import Network, ViewShape, network_by


class Networks(NamedTuple):
    """Actor and critic [set, ...], opponent models [set, model, ...]."""

    actor: Network
    critic: Network
    opponents: Network


def new_networks(
    config: HOPConfig, shape: ViewShape, others: int, context: int, key: PRNGKeyArray
) -> Networks:
    """Networks of one seat with so many co-players; `context`: how many numbers actor and critic
    see
    beside the ego view."""
    actor_key, critic_key, opponent_key = jax.random.split(key, 3)
    goal = 0 if config.direct_om else shape.goal_features
    with_goal = ViewShape(shape.planes, shape.features + goal, shape.actions)
    wide = ViewShape(shape.planes, shape.features + context, shape.actions)
    models = others if config.opponents == "separate" else 1
    opponents = jax.vmap(lambda key: network_by(config, with_goal, shape.actions, key, 0.01))(
        jax.random.split(opponent_key, models)
    )
    actor = network_by(config, wide, shape.actions, actor_key, 0.01)
    return Networks(actor, network_by(config, wide, 1, critic_key, 1.0), opponents)


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
    if they are separate. What is told beside the ego view does not count in them yet.

    path: how the run was named. learner, state: of that run.
    """
    if not isinstance(learner, PPO) or not isinstance(state, PPOState):
        raise UserError(f"warm_start '{path}' is no run of ppo")
    if learner.config.parameters == "separate":
        missing = [seat for seat in seats if seat not in learner.seats]
        if missing:
            raise UserError(f"warm_start: nobody learned in the seats {missing} of that run")
        rows = np.array([learner.seats.index(seat) for seat in seats])
        rows = rows if separate else rows[:1]
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
    """The networks [set, ...] with so many inputs more, which do not count yet."""
    (first, *layers), wide = network.layers, ((0, 0), (0, 0), (0, more))
    first = eqx.tree_at(lambda layer: layer.weight, first, jnp.pad(first.weight, wide))
    return eqx.tree_at(lambda network: network.layers, network, (first, *layers))


def _form(tree: Any) -> tuple[Any, list[tuple[int, ...]]]:
    """Structure and shapes of a pytree."""
    return jax.tree.structure(tree), [x.shape for x in jax.tree.leaves(tree)]
