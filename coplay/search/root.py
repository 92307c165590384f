"""Search from root positions, and action values and logits at the root."""

from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, UInt32

from coplay.core.game import Game, State
from coplay.core.player import Plan, SearchTrees
from coplay.search.closed_loop import closed_loop
from coplay.search.config import SearchConfig
from coplay.search.open_loop import open_loop
from coplay.search.simulator import Hypothesis, RootValues, Simulator

T = TypeVar("T")

LEAST_Q_RANGE = 0.05


def for_each_draw(tree: T, draws: int) -> T:
    """Arrays [copy, ...] as [draw * copy, ...]: the roots of so many trees per game copy."""
    return jax.tree.map(
        lambda x: jnp.broadcast_to(x, (draws, *x.shape)).reshape(-1, *x.shape[1:]), tree
    )


def search(
    simulator: Simulator,
    game: Game,
    config: SearchConfig,
    state: State,
    hypothesis: Hypothesis,
    seed: UInt32[Array, " tree"],
) -> RootValues:
    """Search from every state [tree]."""
    return search_trees(simulator, game, config, state, hypothesis, seed)[0]


def search_trees(
    simulator: Simulator,
    game: Game,
    config: SearchConfig,
    state: State,
    hypothesis: Hypothesis,
    seed: UInt32[Array, " tree"],
) -> tuple[RootValues, SearchTrees]:
    """As `search`, with the trees. What is not used of them costs nothing in a compiled program."""
    simulator = simulator.prepared(game)
    return (open_loop if config.resample else closed_loop)(
        simulator, game, config, state, hypothesis, seed
    )


def mean_over_draws(
    found: RootValues, legal: Bool[Array, "copy action"], draws: int
) -> Float[Array, "copy action"]:
    """Q of the legal actions, averaged over the draws in which they were visited; trees are
    [draw * copy]. Actions no draw has visited get the least of the others."""
    q, visits = (x.reshape(draws, *legal.shape) for x in found)
    seen = visits > 0
    number = jnp.sum(seen, axis=0)
    mean = jnp.sum(jnp.where(seen, q, 0.0), axis=0) / jnp.maximum(number, 1)
    known = legal & (number > 0)
    least = jnp.min(jnp.where(known, mean, jnp.inf), axis=-1, keepdims=True)
    return jnp.where(known, mean, jnp.where(jnp.isfinite(least), least, 0.0))


def plan_of(
    found: RootValues, trees: SearchTrees, legal: Bool[Array, "copy action"], draws: int
) -> Plan:
    """What a search tells of a decision; trees are [draw * copy]."""
    visits = jnp.sum(found.visits.reshape(draws, *legal.shape), axis=0)
    each = jax.tree.map(lambda x: jnp.swapaxes(x.reshape(draws, -1, *x.shape[1:]), 0, 1), trees)
    return Plan(mean_over_draws(found, legal, draws), visits, each)


def boltzmann(
    q: Float[Array, "copy action"],
    legal: Bool[Array, "copy action"],
    beta: float | Float[Array, "copy 1"],
    normalise: bool,
) -> Float[Array, "copy action"]:
    """Logits beta * Q; normalised: Q between 0 and 1 among the legal actions, where a range below
    `LEAST_Q_RANGE` counts as that range, so that noise is not stretched."""
    if not normalise:
        return beta * q
    low = jnp.min(jnp.where(legal, q, jnp.inf), axis=-1, keepdims=True)
    high = jnp.max(jnp.where(legal, q, -jnp.inf), axis=-1, keepdims=True)
    return beta * (q - low) / jnp.maximum(high - low, LEAST_Q_RANGE)
