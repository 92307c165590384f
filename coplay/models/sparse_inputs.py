"""Simulators whose networks read where an ego view is 1 (`coplay.nn.sparse_views`); no view is
built."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from coplay.core.game import Game, Observation, State
from coplay.nn import categorical
from coplay.nn.ego_centred import centre_indices, centred_size
from coplay.nn.layers import activation_function
from coplay.nn.networks import Network, view_shape
from coplay.nn.sparse_views import rows_of, summed


def sparse_fits(actor: Network, game: Game) -> bool:
    """Whether the game has sparse views and the networks begin with a layer that reads them."""
    return (
        game.has_sparse_view
        and bool(actor.layers)
        and not actor.convolutions
        and actor.sets is None
    )


def sparse_views_of(
    actor: Network, game: Game, state: State, seats: slice
) -> Int[Array, "tree seat n"]:
    """Where inputs of networks like the actor are 1, for these seats."""
    indices = jax.vmap(game.sparse_view)(state)[:, seats]
    return centre_indices(indices, actor.board) if actor.centred else indices


def own_rows(actor: Network, critic: Network, game: Game) -> Float[Array, "row own_unit"]:
    """What each input of a view adds to the first layers of actor and critic."""
    inputs = view_inputs(actor, game)
    weights = [network.layers[0].weight[:, :inputs] for network in (actor, critic)]
    return rows_of(jnp.concatenate(weights))


def evaluate_sparse(
    actor: Network,
    critic: Network,
    rows: Float[Array, "row own_unit"],
    game: Game,
    observation: Observation,
    state: State,
    context: tuple[Float[Array, "tree _"], ...],
) -> tuple[Float[Array, "tree action"], Float[Array, " tree"]]:
    """Log-probabilities by the actor and values by the critic, for the planner's own views.

    rows: as `own_rows` gives. context: what the networks see beside the view, in parts. The first
    part is added last: the rest is worked out once for several of it.
    """
    indices = sparse_views_of(actor, game, state, slice(1))[:, 0]
    first = observation.features[:, -1:] * rows[-2] + summed(rows, indices)
    layers = actor.layers[0], critic.layers[0]
    weight = jnp.concatenate([layer.weight for layer in layers])
    first = first + jnp.concatenate([layer.bias for layer in layers])
    ends = np.cumsum([rows.shape[0] - 1, *(part.shape[-1] for part in context)])
    for part, begin, end in reversed(list(zip(context, ends[:-1], ends[1:], strict=True))):
        first = first + part @ weight[:, begin:end].T
    # Actor and critic in one piece: read by two, every row would be written out first.
    act = activation_function(actor.activation)
    for_actor, for_critic = jnp.split(act(first), 2, axis=-1)
    logits, value = actor.after_first(for_actor), critic.after_first(for_critic)
    return categorical.log_policy(logits, observation.legal), value[..., 0]


def view_inputs(network: Network, game: Game) -> int:
    """How many inputs are the view; all others come after it."""
    shape = view_shape(game)
    size = centred_size(shape.planes) if network.centred else math.prod(shape.planes)
    return size + shape.features


def others_after_first(
    models: Network, first: Float[Array, "other tree unit"]
) -> Float[Array, "other tree n"]:
    """The outputs of models [other or 1, ...] from the units of their first layers."""
    number, units = models.head.bias.shape[0], activation_function(models.activation)(first)
    if number == 1:
        return jax.tree.map(lambda x: x[0], models).after_first(units)
    return jax.vmap(Network.after_first)(models, units)
