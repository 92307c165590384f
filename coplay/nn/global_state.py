"""What a critic may be shown of the whole game, beside what one seat sees.

A game with a state of the world of its own (`Game.has_global_state`) shows that, the same to all
seats.
Else it is what all seats see, one after the other: ego-first where seats can be renumbered. Where
ego views show everything already, the own view is all there is.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from coplay.core.game import Game, Observation, State
from coplay.nn.networks import flatten


def global_state_of_all(
    game: Game, state: State, observation: Observation, axes: int
) -> Float[Array, "*batch seat number"]:
    """The world as it is shown to every seat; arrays have `axes` leading axes.

    state: needed only if the game has a state of the world of its own. observation: of all seats.
    """
    if game.has_global_state:
        one = game.global_state
        for _ in range(axes):
            one = jax.vmap(one)
        global_state = one(state)
        shape = (*global_state.shape[:-1], game.seats, global_state.shape[-1])
        return jnp.broadcast_to(global_state[..., None, :], shape)
    views = flatten(observation)
    if game.view_is_global:
        return views
    seats = np.arange(game.seats)
    order = (seats[:, None] * game.symmetric + seats) % game.seats
    return views[..., order, :].reshape(*views.shape[:-1], -1)


def global_state_of_one(
    game: Game, state: State, observation: Observation
) -> Float[Array, "copy number"]:
    """The world as it is shown to one seat, from its ego states and its own views, [copy, ...]."""
    if game.has_global_state:
        return jax.vmap(game.global_state)(state)
    if game.view_is_global:
        return flatten(observation)
    views = flatten(jax.vmap(game.observe)(state))
    return views.reshape(views.shape[0], -1)
