"""Batched tree search: PUCT and Gumbel, many trees at once.

The meaning is mctx's: the same selection rules, Q transforms, masks and depth limit, for a model
whose outcomes depend on position and action alone. What differs is how trees are kept (see
`docs/search.md`):

- Nodes come first, [node, tree, ...]: simulation i of every tree makes node i + 1, so new nodes are
  written as one slice.
- All that a choice needs lies together, one row per node, and is read by element: a choice is one
  pass over [tree] without reductions.
- The way down notes its path; the way up changes two numbers per edge and one per node.
- A path ends where the future does (discount 0), and the model is not asked if no tree needs it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Float, Int, Shaped

from coplay.minds.selection import (
    SAFE,
    Node,
    Rules,
    choose_at_root,
    choose_inside,
    priors,
    root_logits,
)
from coplay.sums import sum_in_order

Embedding = Any  # what the model needs to know of a node: a pytree of arrays [tree, ...]

UNVISITED = -1


class Judged(NamedTuple):
    """How the model sees nodes [tree]: logits of the actions, and the value."""

    logits: Float[Array, "tree action"]
    value: Float[Array, " tree"]


class Taken(NamedTuple):
    """What an action leads to, [tree]. discount: of what follows; 0: nothing follows."""

    reward: Float[Array, " tree"]
    discount: Float[Array, " tree"]
    judged: Judged


Model = Callable[[Int[Array, " tree"], Embedding], tuple[Taken, Embedding]]


class Tree(NamedTuple):
    """Trees with the nodes made so far; N nodes, node 0 is the root.

    edges: what choices are made by: for each node the priors of its actions (`Node.prior`), how
        often each was taken, and its Q, [node, tree, 3 * action].
    child: where an action leads: a node, `UNVISITED`, or -2 - node if nothing follows there.
    value: the mean of the returns seen from a node on; raw: as the model judged it.
    reward, discount: of the action that led to the node.
    """

    edges: Float[Array, "node tree number"]
    child: Int[Array, "node tree action"]
    value: Float[Array, "node tree"]
    raw: Float[Array, "node tree"]
    reward: Float[Array, "node tree"]
    discount: Float[Array, "node tree"]

    @property
    def actions(self) -> int:
        return self.child.shape[-1]

    @property
    def visits(self) -> Float[Array, "node tree action"]:
        return self.edges[..., self.actions : 2 * self.actions]

    @property
    def q(self) -> Float[Array, "node tree action"]:
        """Q of every action; 0 where it was not taken."""
        return self.edges[..., 2 * self.actions :]


class Way(NamedTuple):
    """The ways down of one simulation.

    levels: how long the longest is. edge: the last action of each tree's way, as node * A + action
    of A actions. child: what that leads to (see `Tree`).
    notes: for each level the node passed, the action chosen there, and the visits and the value of
    the node so far. Beyond the end of a tree's way node is N.
    """

    levels: Int[Array, ""]
    edge: Int[Array, " tree"]
    child: Int[Array, " tree"]
    notes: Float[Array, "level 4 tree"]


def grow(
    model: Model,
    root: Judged,
    embedding: Embedding,
    legal: Bool[Array, "tree action"],
    rules: Rules,
) -> Tree:
    """Trees after all simulations, from roots with these embeddings.

    The model must give the same outcome whenever it is asked for the same action at the same node.
    """
    trees, actions = root.logits.shape
    nodes = rules.simulations + 1
    levels = min(rules.depth, rules.simulations)
    ids = jnp.arange(trees)

    def room(first: Shaped[Array, "tree *shape"]) -> Shaped[Array, "node tree *shape"]:
        return jnp.zeros((nodes, *first.shape), first.dtype).at[0].set(first)

    nothing = jnp.zeros_like(root.value)
    tree = Tree(
        edges=room(_fresh_edges(root_logits(root.logits, legal, rules), rules)),
        child=jnp.full((nodes, trees, actions), UNVISITED, jnp.int32),
        value=room(root.value),
        raw=room(root.value),
        reward=room(nothing),
        discount=room(nothing),
    )
    Carry = tuple[Tree, Embedding, Float[Array, "level 4 tree"]]

    def simulate(number: Int[Array, ""], carry: Carry) -> Carry:
        tree, memory, notes = carry
        way = _down(tree, notes, number, legal, rules)
        new = way.child == UNVISITED
        node, action = way.edge // actions, way.edge % actions
        parent = jax.tree.map(lambda x: x.at[node, ids].get(mode=SAFE), memory)
        like = jax.eval_shape(model, action, parent)
        taken, after = jax.lax.cond(
            anywhere(new),
            lambda action, parent: model(action, parent),
            lambda *_: jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), like),
            action,
            parent,
        )
        made = number + 1
        tree = _with_nodes(tree, way.edge, new, made, taken, rules)
        memory = jax.tree.map(lambda x, row: _with_row(x, row, made), memory, after)
        old = jnp.where(way.child < UNVISITED, -2 - way.child, way.child)
        return _up(tree, way, jnp.where(new, made, old)), memory, way.notes

    start = (tree, jax.tree.map(room, embedding), jnp.zeros((levels, 4, trees)))
    return jax.lax.fori_loop(0, rules.simulations, simulate, start)[0]


def best_q(tree: Tree) -> Float[Array, "tree action"]:
    """Q of the root if every node is worth its best visited action; leaves as they were judged.

    The mean over simulations counts the futures that were tried and found worse; this does not.
    """
    nodes, trees, _ = tree.child.shape
    visited = tree.visits > 0
    ids = jnp.arange(trees)[:, None]

    def q_of(node: Int[Array, ""], value: Float[Array, "node tree"]) -> Float[Array, "tree action"]:
        child = tree.child[node]
        child = jnp.where(child < UNVISITED, -2 - child, jnp.maximum(child, 0))
        later, reward, discount = (
            x.at[child, ids].get(mode="promise_in_bounds")
            for x in (value, tree.reward, tree.discount)
        )
        return jnp.where(visited[node], reward + discount * later, -jnp.inf)

    def one_node(
        index: Int[Array, ""], value: Float[Array, "node tree"]
    ) -> Float[Array, "node tree"]:
        node = nodes - 1 - index  # a child has a higher number than its parent
        best = jnp.max(q_of(node, value), axis=-1)
        return _with_row(value, jnp.where(jnp.isfinite(best), best, value[node]), node)

    value = jax.lax.fori_loop(0, nodes - 1, one_node, tree.raw)
    return jnp.where(visited[0], q_of(jnp.int32(0), value), 0.0)


# --- down ----------------------------------------------------------------------------------------


def _down(
    tree: Tree,
    notes: Float[Array, "level 4 tree"],
    number: Int[Array, ""],
    legal: Bool[Array, "tree action"],
    rules: Rules,
) -> Way:
    """The way of every tree to an action not taken before, an end, or the depth limit."""
    nodes, trees, actions = tree.child.shape
    ids = jnp.arange(trees)
    children, values, raws = (x.reshape(-1) for x in (tree.child, tree.value, tree.raw))

    def noted(way: Way, passed: Array, action: Array, here: Node) -> Float[Array, "level 4 tree"]:
        row = (passed.astype(jnp.float32), action.astype(jnp.float32))
        rows = jnp.stack([*row, here.node_visits, here.value])
        return jax.lax.dynamic_update_slice(way.notes, rows[None], (way.levels, 0, 0))

    def begin() -> Way:
        here = _node(tree.edges[0], tree.value[0], tree.raw[0])
        action = choose_at_root(here, legal, number, rules)
        way = Way(jnp.int32(0), action, children.at[ids * actions + action].get(mode=SAFE), notes)
        return way._replace(levels=way.levels + 1, notes=noted(way, 0 * action, action, here))

    def onward(way: Way) -> Way:
        going = way.child >= 0
        at = jnp.maximum(way.child, 0)
        place = at * trees + ids
        value, raw = (x.at[place].get(mode=SAFE) for x in (values, raws))
        here = _node(tree.edges.at[at, ids].get(mode=SAFE), value, raw)
        action = choose_inside(here, rules)
        child = children.at[place * actions + action].get(mode=SAFE)
        return Way(
            levels=way.levels + 1,
            edge=jnp.where(going, at * actions + action, way.edge),
            child=jnp.where(going, child, way.child),
            notes=noted(way, jnp.where(going, at, nodes), action, here),
        )

    return jax.lax.while_loop(
        lambda way: anywhere(way.child >= 0) & (way.levels < rules.depth), onward, begin()
    )


def _node(
    edges: Float[Array, "tree number"], value: Float[Array, " tree"], raw: Float[Array, " tree"]
) -> Node:
    prior, visits, q = edges.T.reshape(3, -1, edges.shape[0])
    return Node(prior, visits, q, 1.0 + sum_in_order(visits, axis=0), value, raw)


# --- new nodes, and up ---------------------------------------------------------------------------


def _with_nodes(
    tree: Tree,
    edge: Int[Array, " tree"],
    new: Bool[Array, " tree"],
    made: Int[Array, ""],
    taken: Taken,
    rules: Rules,
) -> Tree:
    """The trees with a node `made` for what the last actions led to; linked where it is new."""
    nodes, trees, actions = tree.child.shape
    name = jnp.where(taken.discount == 0, -2 - made, made)
    node = jnp.where(new, edge // actions, nodes)  # beyond the last node: dropped
    where = (node * trees + jnp.arange(trees)) * actions + edge % actions
    child = tree.child.reshape(-1).at[where].set(name, mode="drop", unique_indices=True)
    return Tree(
        edges=_with_row(tree.edges, _fresh_edges(taken.judged.logits, rules), made),
        child=child.reshape(tree.child.shape),
        value=_with_row(tree.value, taken.judged.value, made),
        raw=_with_row(tree.raw, taken.judged.value, made),
        reward=_with_row(tree.reward, taken.reward, made),
        discount=_with_row(tree.discount, taken.discount, made),
    )


def _fresh_edges(logits: Float[Array, "tree action"], rules: Rules) -> Float[Array, "tree number"]:
    """Priors; visits and Q are 0."""
    nothing = jnp.zeros_like(logits)
    return jnp.concatenate([priors(logits, rules), nothing, nothing], axis=-1)


def _with_row(
    rows: Shaped[Array, "node tree *shape"], row: Shaped[Array, "tree *shape"], at: Int[Array, ""]
) -> Shaped[Array, "node tree *shape"]:
    return jax.lax.dynamic_update_slice(rows, row[None], (at, *(0,) * row.ndim))


def _up(tree: Tree, way: Way, leaf: Int[Array, " tree"]) -> Tree:
    """The trees with the returns of one simulation, which ended in the nodes `leaf`."""
    nodes, trees, actions = tree.child.shape
    ids = jnp.arange(trees)
    rewards, discounts = tree.reward.reshape(-1), tree.discount.reshape(-1)
    reached = tree.raw.reshape(-1).at[leaf * trees + ids].get(mode=SAFE)
    how: dict[str, Any] = {"mode": "drop", "unique_indices": True}

    def back(carry: tuple) -> tuple:
        level, below, gained, later, edges, value = carry
        level = level - 1
        passed, chosen, node_visits, node_value = way.notes[level]
        node = passed.astype(jnp.int32)
        reward, discount = (x.at[below].get(mode=SAFE) for x in (rewards, discounts))
        returned = reward + discount * gained
        mean = (node_value * node_visits + returned) / (node_visits + 1.0)
        q = reward + discount * later
        # Beyond the end of a tree's way node is N: these writes fall outside and are dropped.
        place = node * trees + ids
        first = place * (3 * actions) + chosen.astype(jnp.int32)
        edges = edges.at[first + actions].add(1.0, **how)
        edges = edges.at[first + 2 * actions].set(q, **how)
        value = value.at[place].set(mean, **how)
        on = node < nodes
        below, gained, later = (
            jnp.where(on, new, old)
            for new, old in ((place, below), (returned, gained), (mean, later))
        )
        return level, below, gained, later, edges, value

    start = (
        *(way.levels, leaf * trees + ids, reached, reached),
        *(tree.edges.reshape(-1), tree.value.reshape(-1)),
    )
    *_, edges, value = jax.lax.while_loop(lambda carry: carry[0] > 0, back, start)
    return tree._replace(
        edges=edges.reshape(tree.edges.shape), value=value.reshape(tree.value.shape)
    )


@custom_vmap
def anywhere(flags: Bool[Array, "*shape"]) -> Bool[Array, ""]:
    """Whether any flag is set; under `vmap`, in any of the batch.

    A loop over this goes on for all as long as it does for one. That keeps its condition a single
    number: a condition per element would make `vmap` copy all that the loop carries at every turn.
    """
    return jnp.any(flags)


@anywhere.def_vmap
def _anywhere_in_batch(
    size: int, batched: list[bool], flags: Bool[Array, "*shape"]
) -> tuple[Bool[Array, ""], bool]:
    return anywhere(flags), False
