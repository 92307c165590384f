"""Search with one sampled future per edge, by mctx: the paper's form.

What the others do after an action is drawn once and kept, so a tree plans against known coin flips
and is optimistic: it finds E[max] where max E is due (see `coplay.minds.open_loop`).
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import mctx
from jaxtyping import Array, Float, Int, UInt32

from coplay.games.game import Game, State
from coplay.minds.planning import (
    Mind,
    Position,
    RootValues,
    SearchConfig,
    World,
    advance,
    begin,
    own,
)

FIRST = 1e6  # a score above all others


def closed_loop(
    world: World,
    game: Game,
    config: SearchConfig,
    state: State,
    mind: Mind,
    seed: UInt32[Array, " tree"],
) -> RootValues:
    """Search from every state [tree]; see `SearchConfig`."""
    position, observation = begin(world, game, state, mind, seed)
    logits, value = world.judge(game, own(observation), state, mind)
    root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=position)

    def expand(
        _: Any, key: Any, action: Int[Array, " tree"], position: Position
    ) -> tuple[Any, Position]:
        after, step = advance(world, game, config.discount, position, action)
        logits, value = world.judge(game, own(step.observation), after.state, after.mind)
        output = mctx.RecurrentFnOutput(
            reward=step.reward, discount=step.discount, prior_logits=logits, value=value
        )
        return output, after

    illegal = ~own(observation).legal
    key = jax.random.wrap_key_data(
        jnp.stack([seed[0], jnp.uint32(config.simulations)]), impl="threefry2x32"
    )
    tree = _tree(key, root, expand, illegal, config)
    summary = tree.summary()
    q = summary.qvalues if config.backup == "mean" else best_values(tree)
    return RootValues(q, summary.visit_counts)


def best_values(tree: Any) -> Float[Array, "tree action"]:
    """Q of the root if every node is worth its best visited action; leaves as they were judged.

    The mean over simulations counts the futures that were tried and found worse; this does not.
    """
    nodes = tree.node_values.shape[1]
    visited = tree.children_visits > 0  # [tree, node, action]

    def q_of(node: Int[Array, ""], value: Float[Array, "tree node"]) -> Float[Array, "tree action"]:
        child = jnp.maximum(tree.children_index[:, node], 0)
        later = jnp.take_along_axis(value, child, axis=1)
        q = tree.children_rewards[:, node] + tree.children_discounts[:, node] * later
        return jnp.where(visited[:, node], q, -jnp.inf)

    def one_node(
        index: Int[Array, ""], value: Float[Array, "tree node"]
    ) -> Float[Array, "tree node"]:
        node = nodes - 1 - index  # a child has a higher number than its parent
        best = jnp.max(q_of(node, value), axis=-1)
        kept = jnp.where(jnp.isfinite(best), best, value[:, node])
        return jax.lax.dynamic_update_slice_in_dim(value, kept[:, None], node, axis=1)

    value = jax.lax.fori_loop(0, nodes - 1, one_node, tree.raw_values)
    return jnp.where(visited[:, 0], q_of(jnp.int32(0), value), 0.0)


def _tree(key: Any, root: Any, expand: Any, illegal: Array, config: SearchConfig) -> Any:
    """The one call of mctx."""
    if config.method == "gumbel":
        return mctx.gumbel_muzero_policy(
            (),
            key,
            root,
            expand,
            config.simulations,
            illegal,
            config.depth,
            max_num_considered_actions=illegal.shape[-1],
            gumbel_scale=0.0,
        ).search_tree
    select = functools.partial(
        mctx.muzero_action_selection,
        pb_c_init=config.exploration,
        qtransform=functools.partial(_scores, config=config),
    )
    return mctx.search(
        (),
        key,
        root=root,
        recurrent_fn=expand,
        root_action_selection_fn=functools.partial(select, depth=0),
        interior_action_selection_fn=select,
        num_simulations=config.simulations,
        max_depth=config.depth,
        invalid_actions=illegal.astype(jnp.float32),
    )


def _scores(tree: Any, node: Int[Array, ""], config: SearchConfig) -> Float[Array, " action"]:
    """[action] Q as PUCT adds it up, of one node of one tree."""
    visits = tree.children_visits[node]
    if config.normalise:
        q = mctx.qtransform_by_parent_and_siblings(tree, node)
    else:
        q = jnp.where(visits > 0, tree.qvalues(node), 0.0)
    if not config.sweep:
        return q
    return jnp.where((node == 0) & (visits == 0), FIRST, q)
