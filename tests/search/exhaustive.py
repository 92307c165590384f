"""Exact values of own actions in small positions, by looking at everything that can happen.

Two players: own actions and the co-player's are all tried, level by level. Shares nothing with the
searches but the game's rules.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coplay.core.game import Game, State

QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


def children(game: Game, states: State, policy: Any) -> tuple[State, Any, Any, Any, Any]:
    """All steps from states [n]: next states, rewards, ends [n, own, other], the chance of the
    co-player's actions [n, other], own legal actions [n, own]."""
    number = game.actions
    own, other = jnp.meshgrid(jnp.arange(number), jnp.arange(number), indexing="ij")

    def from_one(state: State) -> tuple:
        def one(a: Any, b: Any) -> tuple:
            after, outcome = game.step(jax.random.key(0), state, jnp.stack([a, b]))
            over = outcome.truncated | ~game.alive(after)[0]
            return after, outcome.reward[0], over

        after, reward, over = jax.vmap(jax.vmap(one))(own, other)
        chance = policy(game, game.ego_state(state, 1))
        return after, reward, over, chance, game.observe(state).legal[0]

    return jax.vmap(from_one)(states)


def exact_q(game: Game, states: State, policy: Any, depth: int, discount: float) -> np.ndarray:
    """[n, own] the best expected discounted return after each own action from states [n], `depth`
    steps in all; minus infinity for illegal actions."""

    def q(states: State, depth: int) -> Any:
        after, reward, over, chance, legal = children(game, states, policy)
        later = jnp.zeros_like(reward)
        if depth > 1:
            flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[3:]), after)
            best = jnp.max(q(flat, depth - 1), axis=-1).reshape(reward.shape)
            later = jnp.where(over, 0.0, best)
        co_player_cdf = jnp.sum(chance[:, None, :] * (reward + discount * later), axis=-1)
        return jnp.where(legal, co_player_cdf, -jnp.inf)

    return np.asarray(jax.jit(lambda states: q(states, depth), compiler_options=QUICK)(states))
