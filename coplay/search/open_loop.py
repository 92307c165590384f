"""Search that samples the others' actions at each visit: no tree plans against known coin flips.

A node stands for a sequence of own actions, not for a state. Every simulation starts at the root
and plays along its path with fresh samples; an edge keeps the mean of all returns that were seen
through it. For a policy that may react to what the others do this is a lower bound; it converges to
the best fixed sequence of actions, and every real step closes the loop again. With `share_tree`
each simulation also samples the hypothesis about the others: one tree for all samples of goals.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from coplay.core.game import Game, State
from coplay.core.numerics import Tree, where_rows
from coplay.core.player import SearchTrees
from coplay.search.config import SearchConfig
from coplay.search.selection import FIRST
from coplay.search.simulator import (
    Hypothesis,
    Position,
    RootValues,
    Simulator,
    advance,
    begin,
    co_player_cdf,
    mix_bits,
    own_view,
)


class Statistics(NamedTuple):
    """The trees: [tree, node, action], nodes numbered as they were made.

    visits, total: how often an edge was taken, and the sum of the returns behind it.
    child: the node an edge leads to; -1: not made yet.
    prior: probabilities of the actions when the node was made.
    """

    visits: Float[Array, "tree node action"]
    total: Float[Array, "tree node action"]
    child: Int[Array, "tree node action"]
    prior: Float[Array, "tree node action"]


class Walk(NamedTuple):
    """One simulation on its way: where it stands, and its path so far, [tree, depth].

    going: [tree] not yet at a new node, the end, or the depth limit. logits, value: of the last
    state. node, action, reward, discount: the path; steps not taken have discount 1 and reward 0.
    """

    position: Position
    legal: Bool[Array, "tree action"]
    logits: Float[Array, "tree action"]
    value: Float[Array, " tree"]
    at: Int[Array, " tree"]
    going: Bool[Array, " tree"]
    steps: Int[Array, ""]
    node: Int[Array, "tree depth"]
    action: Int[Array, "tree depth"]
    reward: Float[Array, "tree depth"]
    discount: Float[Array, "tree depth"]


def open_loop(
    simulator: Simulator,
    game: Game,
    config: SearchConfig,
    state: State,
    hypothesis: Hypothesis,
    seed: UInt32[Array, " tree"],
) -> tuple[RootValues, SearchTrees]:
    """Search from every state [tree]; PUCT only."""
    start, observation = begin(simulator, game, state, hypothesis, seed)
    first = own_view(observation)
    logits, value = simulator.evaluate(game, first, state, hypothesis)
    trees, actions = logits.shape
    nodes = config.simulations_per_tree + 1
    empty = jnp.zeros((trees, nodes, actions))
    prior = empty.at[:, 0].set(jax.nn.softmax(logits))
    statistics = Statistics(empty, empty, jnp.full(empty.shape, -1, jnp.int32), prior)
    depth = config.depth

    def simulate(number: Int[Array, ""], statistics: Statistics) -> Statistics:
        # Samples differ from simulation to simulation, also on the same path.
        fresh = mix_bits(seed + (number.astype(jnp.uint32) + 1) * jnp.uint32(0x9E3779B1))
        path = jnp.zeros((trees, depth))
        begun = start._replace(seed=fresh)
        if config.share_tree:
            order = jnp.arange(1, game.seats, dtype=jnp.uint32) * jnp.uint32(0xC2B2AE35)
            uniform = (mix_bits(fresh[:, None] + order) >> 8).astype(jnp.float32) * 2.0**-24
            begun = begun._replace(hypothesis=simulator.resample_hypothesis(uniform, hypothesis))
        walk = Walk(
            position=begun,
            legal=first.legal,
            logits=logits,
            value=value,
            at=jnp.zeros(trees, jnp.int32),
            going=~start.over,
            steps=jnp.int32(0),
            node=path.astype(jnp.int32),
            action=path.astype(jnp.int32) - 1,
            reward=path,
            discount=path + 1.0,
        )
        walk = jax.lax.while_loop(
            lambda walk: jnp.any(walk.going) & (walk.steps < depth),
            lambda walk: _onward(simulator, game, config, statistics, walk),
            walk,
        )
        return _learn(statistics, walk, number + 1)

    statistics = jax.lax.fori_loop(0, config.simulations_per_tree, simulate, statistics)
    visits = statistics.visits
    q = statistics.total / jnp.maximum(visits, 1.0)
    grown = SearchTrees(visits, q, statistics.prior, statistics.child)
    return RootValues(q[:, 0], visits[:, 0]), grown


def _onward(
    simulator: Simulator, game: Game, config: SearchConfig, statistics: Statistics, walk: Walk
) -> Walk:
    """One step of all simulations that are still going; the others stand still."""
    here = jax.tree.map(lambda x: _row(x, walk.at), statistics)
    action = _select(here, walk.legal, config, walk.steps == 0)
    others = co_player_cdf(simulator, game, walk.position)
    after, step = advance(simulator, game, config.discount, walk.position, others, action)
    seen = own_view(step.observation)
    logits, value = simulator.evaluate(game, seen, after.state, after.hypothesis)
    going = walk.going
    now = (jnp.arange(walk.node.shape[1]) == walk.steps) & going[:, None]  # [tree, depth]
    child = jnp.take_along_axis(here.child, action[:, None], axis=1)[:, 0]

    def move(new: Tree, old: Tree) -> Tree:
        return where_rows(going, new, old)

    return Walk(
        position=move(after, walk.position),
        legal=move(seen.legal, walk.legal),
        logits=move(logits, walk.logits),
        value=move(jnp.where(after.over, 0.0, value), walk.value),
        at=jnp.where(going & (child >= 0), child, walk.at),
        going=going & (child >= 0) & ~after.over,
        steps=walk.steps + 1,
        node=jnp.where(now, walk.at[:, None], walk.node),
        action=jnp.where(now, action[:, None], walk.action),
        reward=jnp.where(now, step.reward[:, None], walk.reward),
        discount=jnp.where(now, step.discount[:, None], walk.discount),
    )


def _select(
    here: Statistics, legal: Bool[Array, "tree action"], config: SearchConfig, root: Bool[Array, ""]
) -> Int[Array, " tree"]:
    """PUCT among the actions that are legal in the state as it came out this time."""
    visits = here.visits
    q = here.total / jnp.maximum(visits, 1.0)
    all_visits = jnp.sum(visits, axis=-1, keepdims=True)
    if not config.raw_q:
        mean = jnp.sum(here.total, axis=-1, keepdims=True) / jnp.maximum(all_visits, 1.0)
        known = jnp.where(visits > 0, q, mean)
        low = jnp.min(known, axis=-1, keepdims=True)
        high = jnp.max(known, axis=-1, keepdims=True)
        q = (jnp.where(visits > 0, q, low) - low) / jnp.maximum(high - low, 1e-8)
    prior = jnp.where(legal, here.prior, 0.0)
    prior = prior / jnp.maximum(jnp.sum(prior, axis=-1, keepdims=True), 1e-8)
    score = q + config.exploration * prior * jnp.sqrt(all_visits + 1.0) / (1.0 + visits)
    score = jnp.where(root & (visits == 0), FIRST, score)  # all legal actions of the root first
    return jnp.argmax(jnp.where(legal, score, -jnp.inf), axis=-1)


def _learn(statistics: Statistics, walk: Walk, number: Int[Array, ""]) -> Statistics:
    """The statistics with a finished simulation: returns along its path, and a new node."""
    taken = walk.action >= 0  # [tree, depth]

    def back(later: Float[Array, " tree"], row: tuple[Array, Array]) -> tuple[Array, Array]:
        reward, discount = row
        gained = reward + discount * later
        return gained, gained

    rows = (walk.reward.T, walk.discount.T)
    gained = jax.lax.scan(back, walk.value, rows, reverse=True)[1].T  # [tree, depth]
    nodes, actions = statistics.visits.shape[1:]
    edge = jnp.where(taken, walk.node * actions + walk.action, -1)
    # One-hot sums instead of scatters, which are slow on CPU; a path takes an edge only once.
    on = edge[:, :, None] == jnp.arange(nodes * actions)  # [tree, depth, edge]
    shape = statistics.visits.shape
    visits = statistics.visits + jnp.sum(on, axis=1).reshape(shape)
    total = statistics.total + jnp.sum(jnp.where(on, gained[:, :, None], 0.0), axis=1).reshape(
        shape
    )
    last = jnp.max(jnp.where(taken, jnp.arange(taken.shape[1]), -1), axis=1)  # [tree]
    leaf = jnp.take_along_axis(edge, jnp.maximum(last, 0)[:, None], axis=1)  # [tree, 1]
    new = ((leaf == jnp.arange(nodes * actions)) & (last >= 0)[:, None]).reshape(shape)
    child = jnp.where(new & (statistics.child < 0), number, statistics.child)
    prior = jax.lax.dynamic_update_slice_in_dim(
        statistics.prior, jax.nn.softmax(walk.logits)[:, None], number, axis=1
    )
    return Statistics(visits, total, child, prior)


def _row(x: Array, index: Int[Array, " tree"]) -> Array:
    """x[tree, index[tree]]."""
    return jnp.take_along_axis(x, index[:, None, None], axis=1)[:, 0]
