"""Trees of mctx: the reference for those of `coplay.search.tree`, selectable in their place.

mctx is an extra: it is imported only when a search uses it.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.core.errors import UserError, how_to_install
from coplay.core.player import SearchTrees
from coplay.search.selection import FIRST, Rules
from coplay.search.tree import Embedding, Evaluation, Model


def require_mctx() -> Any:
    """The module mctx; a user error that says how to install it if it is missing."""
    try:
        import mctx
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "mctx":
            raise
        raise UserError(
            f"backend=mctx needs mctx, which is not installed: {how_to_install('mctx')}, or leave "
            "backend out"
        ) from None
    return mctx


def grow_mctx(
    key: PRNGKeyArray,
    model: Model,
    root: Evaluation,
    embedding: Embedding,
    legal: Bool[Array, "tree action"],
    rules: Rules,
) -> Any:
    """The tree of mctx after all simulations; `key` is for its noise that breaks ties."""
    mctx = require_mctx()

    def expand(_: Any, key: Any, action: Int[Array, " tree"], embedding: Embedding) -> tuple:
        taken, after = model.step_model(action, embedding, model.observe(embedding, None), None)
        output = mctx.RecurrentFnOutput(
            reward=taken.reward,
            discount=taken.discount,
            prior_logits=taken.evaluation.logits,
            value=taken.evaluation.value,
        )
        return output, after

    start = mctx.RootFnOutput(prior_logits=root.logits, value=root.value, embedding=embedding)
    if rules.kind == "gumbel":
        return mctx.gumbel_muzero_policy(
            (),
            key,
            start,
            expand,
            rules.simulations,
            ~legal,
            rules.depth,
            max_num_considered_actions=legal.shape[-1],
            gumbel_scale=0.0,
        ).search_tree
    select = functools.partial(
        mctx.muzero_action_selection,
        pb_c_init=rules.init,
        pb_c_base=rules.base,
        qtransform=functools.partial(_scores, rules=rules),
    )
    return mctx.search(
        (),
        key,
        root=start,
        recurrent_fn=expand,
        root_action_selection_fn=functools.partial(select, depth=0),
        interior_action_selection_fn=select,
        num_simulations=rules.simulations,
        max_depth=rules.depth,
        invalid_actions=(~legal).astype(jnp.float32),
    )


def as_search_trees(tree: Any) -> SearchTrees:
    """As `coplay.search.tree.as_search_trees`, of a tree of mctx."""
    nodes = jnp.arange(tree.node_values.shape[1])
    q = jax.vmap(lambda one: jax.vmap(one.qvalues)(nodes))(tree)
    prior = jax.nn.softmax(tree.children_prior_logits, axis=-1)
    return SearchTrees(tree.children_visits.astype(q.dtype), q, prior, tree.children_index)


def _scores(tree: Any, node: Int[Array, ""], rules: Rules) -> Float[Array, " action"]:
    """[action] Q as PUCT adds it up, of one node of one tree."""
    visits = tree.children_visits[node]
    if rules.normalise:
        q = require_mctx().qtransform_by_parent_and_siblings(tree, node)
    else:
        q = jnp.where(visits > 0, tree.qvalues(node), 0.0)
    if not rules.sweep:
        return q
    return jnp.where((node == 0) & (visits == 0), FIRST, q)


def best_q(tree: Any) -> Float[Array, "tree action"]:
    """As `coplay.search.tree.best_q`, of a tree of mctx."""
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
