"""A search with mctx as its own users would write it, for `coplay bench peers`.

The rules of the game, and networks of the sizes that our search has: one of two layers of 64 for
the co-players, who are given a goal, and one for the player's policy and value. A node holds the
state of the game and nothing else.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from coplay.bench.plain_ppo import layers, network, views
from coplay.core.game import Game
from coplay.search.mctx_backend import require_mctx

HIDDEN = (64, 64)
DISCOUNT = 0.95


def new_networks(game: Game, key: PRNGKeyArray) -> tuple[Any, Any]:
    """Untrained networks: of the co-players, and of the player itself."""
    state = jax.vmap(game.reset)(jax.random.split(key, 1))
    inputs = views(game, state)[0].shape[-1]
    one, other = jax.random.split(key)
    return (
        layers(one, (inputs + 1, *HIDDEN, game.actions), 1.0),
        layers(other, (inputs, *HIDDEN, game.actions + 1), 1.0),
    )


def plain_search(
    game: Game, networks: tuple[Any, Any], key: PRNGKeyArray, state: Any, simulations: int
) -> Any:
    """[tree, action] how often each action was taken at the root."""
    mctx = require_mctx()
    others, own = networks
    trees = jax.tree.leaves(state)[0].shape[0]
    goal = jnp.zeros((trees, game.seats - 1, 1))

    def think(state: Any) -> tuple[Any, Any, Any]:
        seen, legal = views(game, state)
        found = network(own, seen[:, 0])
        return jnp.where(legal[:, 0], found[:, :-1], -1e9), found[:, -1], legal[:, 0]

    def expand(_: Any, key: PRNGKeyArray, action: Any, state: Any) -> tuple[Any, Any]:
        seen, legal = views(game, state)
        logits = network(others, jnp.concatenate([seen[:, 1:], goal], axis=-1))
        theirs = jax.random.categorical(key, jnp.where(legal[:, 1:], logits, -1e9))
        actions = jnp.concatenate([action[:, None], theirs], axis=1)
        after, outcome = jax.vmap(game.step)(jax.random.split(key, trees), state, actions)
        logits, value, _ = think(after)
        goes_on = jax.vmap(game.alive)(after)[:, 0] & ~outcome.truncated
        output = mctx.RecurrentFnOutput(
            reward=outcome.reward[:, 0],
            discount=jnp.where(goes_on, DISCOUNT, 0.0),
            prior_logits=logits,
            value=value,
        )
        return output, after

    logits, value, legal = think(state)
    root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=state)
    return mctx.muzero_policy(
        None, key, root, expand, simulations, invalid_actions=~legal, dirichlet_fraction=0.0
    ).action_weights
