"""How players behave, in a few numbers per episode: rewards, steps, actions and events."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from coplay.core.game import Game
from coplay.core.group import Group
from coplay.matches.rollout import new_table, rollout

LONGEST = 100
"""Steps played where the game does not say how long an episode may be."""
COPIES = 128


def feature_names(game: Game) -> tuple[str, ...]:
    """What the numbers of `behaviour` are."""
    actions = (f"{name} (share of actions)" for name in game.action_names)
    return ("reward", "steps", *actions, *game.event_names)


def behaviour(
    game: Game, groups: tuple[Group, ...], key: PRNGKeyArray
) -> Float[Array, "seat feature"]:
    """What each seat gets, how long it stays, what it does and what happens to it, per episode."""
    steps = min(2 * (game.horizon or LONGEST), 200)
    table_key, roll_key = jax.random.split(key)
    table = new_table(game, groups, table_key, COPIES)
    _, played = rollout(game, groups, table, roll_key, steps, jnp.arange(game.seats))
    episodes = jnp.maximum(jnp.sum(played.over), 1)
    alive = played.alive[..., None]
    taken = (played.action[..., None] == jnp.arange(game.actions)) & alive
    actions = jnp.sum(taken, axis=(0, 1))  # [seat, action]
    over = played.over[..., None]
    numbers = [
        jnp.sum(jnp.where(over, played.episode_reward, 0.0), axis=(0, 1))[:, None] / episodes,
        jnp.sum(jnp.where(over, played.episode_steps, 0), axis=(0, 1))[:, None] / episodes,
        actions / jnp.maximum(jnp.sum(actions, axis=1, keepdims=True), 1),
    ]
    if game.event_names:
        events = jax.vmap(jax.vmap(game.events))(played.state, played.after)
        numbers.append(jnp.sum(events, axis=(0, 1)) / episodes)
    return jnp.concatenate(numbers, axis=1)


behaviour_of = jax.jit(behaviour)
"""`behaviour`, compiled. What players are made of is an argument: those of a family share it."""
