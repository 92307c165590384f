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

import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Float, Int, Shaped

Embedding = Any  # what the model needs to know of a node: a pytree of arrays [tree, ...]

FIRST = 1e6  # a score above all others
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


class Rules(NamedTuple):
    """How to search.

    simulations: how many. depth: the longest path, in actions.
    method: PUCT, or Gumbel search without Gumbel noise.
    normalise: Q between 0 and 1 among a node, its value and its children; else as it is.
    sweep: every legal action of the root is tried once before all else.
    init, base: c of PUCT is init + log((visits + base + 1) / base).
    """

    simulations: int
    depth: int
    method: Literal["puct", "gumbel"] = "puct"
    normalise: bool = True
    sweep: bool = False
    init: float = 1.25
    base: float = 19652.0


class Tree(NamedTuple):
    """Trees with the nodes made so far; N nodes, node 0 is the root.

    edges: what choices are made by: for each node the priors of its actions, how often each was
        taken, and its Q, [node, tree, 3 * action].
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


class Path(NamedTuple):
    """The ways down of one simulation; rows are levels, the root is level 0.

    level: how many rows are filled. at: the node where a tree's way ended; action: its last choice;
    child: what that leads to. going: not there yet.
    node, chosen: nodes passed and actions chosen; beyond the end of a tree's way node is N.
    node_visits, node_value, visits: of the nodes, and of the actions chosen, so far.
    """

    level: Int[Array, ""]
    at: Int[Array, " tree"]
    action: Int[Array, " tree"]
    child: Int[Array, " tree"]
    going: Bool[Array, " tree"]
    node: Int[Array, "level tree"]
    chosen: Int[Array, "level tree"]
    node_visits: Float[Array, "level tree"]
    node_value: Float[Array, "level tree"]
    visits: Float[Array, "level tree"]


class Node(NamedTuple):
    """What a choice is made by, of one node per tree; a list has one [tree] array per action."""

    prior: list[Float[Array, " tree"]]
    visits: list[Float[Array, " tree"]]
    q: list[Float[Array, " tree"]]
    value: Float[Array, " tree"]


def grow(
    model: Model,
    root: Judged,
    embedding: Embedding,
    legal: Bool[Array, "tree action"],
    rules: Rules,
) -> Tree:
    """Trees after all simulations, from roots with these embeddings."""
    nodes = rules.simulations + 1

    def room(first: Shaped[Array, "tree *shape"]) -> Shaped[Array, "node tree *shape"]:
        return jnp.zeros((nodes, *first.shape), first.dtype).at[0].set(first)

    nothing = jnp.zeros_like(root.value)
    tree = Tree(
        edges=room(_fresh_edges(root.logits)),
        child=jnp.full((nodes, *root.logits.shape), UNVISITED, jnp.int32),
        value=room(root.value),
        raw=room(root.value),
        reward=room(nothing),
        discount=room(nothing),
    )
    memory = jax.tree.map(room, embedding)
    ids = jnp.arange(nothing.shape[0])

    def simulate(number: Int[Array, ""], carry: tuple[Tree, Embedding]) -> tuple[Tree, Embedding]:
        tree, memory = carry
        path = _down(tree, legal, rules)
        new = path.child == UNVISITED
        parent = jax.tree.map(lambda x: x.at[path.at, ids].get(mode="promise_in_bounds"), memory)
        ask = lambda action, parent: model(action, parent)  # noqa: E731
        like = jax.eval_shape(ask, path.action, parent)
        taken, after = jax.lax.cond(
            anywhere(new),
            ask,
            lambda action, parent: jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), like),
            path.action,
            parent,
        )
        made = number + 1
        tree = _with_nodes(tree, path, new, made, taken)
        memory = jax.tree.map(lambda x, row: _with_row(x, row, made), memory, after)
        old = jnp.where(path.child < UNVISITED, -2 - path.child, path.child)
        return _up(tree, path, jnp.where(new, made, old)), memory

    return jax.lax.fori_loop(0, rules.simulations, simulate, (tree, memory))[0]


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


def _down(tree: Tree, legal: Bool[Array, "tree action"], rules: Rules) -> Path:
    """The way of every tree to an action not taken before, an end, or the depth limit."""
    nodes, trees, actions = tree.child.shape
    depth = min(rules.depth, rules.simulations)
    ids = jnp.arange(trees)
    children, edges, values = (x.reshape(-1) for x in (tree.child, tree.edges, tree.value))
    numbers = jnp.arange(nodes + 1, dtype=jnp.float32)
    c = rules.init + jnp.log((numbers + rules.base + 1.0) / rules.base)
    factor = jnp.sqrt(numbers) * c

    def step(path: Path, here: Node, root: bool) -> Path:
        node_visits = 1.0 + _total(here.visits)
        urge = factor.at[node_visits.astype(jnp.int32)].get(mode="promise_in_bounds")
        action = _puct(here, urge, legal if root else None, rules)
        edge = (path.at * trees + ids) * actions + action
        child = children.at[edge].get(mode="promise_in_bounds")
        going = path.going

        def noted(rows: Array, row: Array) -> Array:
            return jax.lax.dynamic_update_slice(rows, row[None].astype(rows.dtype), (path.level, 0))

        onward = going & (child >= 0) & (path.level + 1 < depth)
        return Path(
            level=path.level + 1,
            at=jnp.where(onward, child, path.at),
            action=jnp.where(going, action, path.action),
            child=jnp.where(going, child, path.child),
            going=onward,
            node=noted(path.node, jnp.where(going, path.at, nodes)),
            chosen=noted(path.chosen, action),
            node_visits=noted(path.node_visits, node_visits),
            node_value=noted(path.node_value, here.value),
            visits=noted(path.visits, _pick(here.visits, action)),
        )

    def inside(path: Path) -> Path:
        first = (path.at * trees + ids) * (3 * actions)
        numbers = [edges.at[first + k].get(mode="promise_in_bounds") for k in range(3 * actions)]
        value = values.at[path.at * trees + ids].get(mode="promise_in_bounds")
        return step(path, _node(numbers, value), False)

    none = jnp.zeros(trees, jnp.int32)
    empty = jnp.zeros((depth, trees))
    blank = empty.astype(jnp.int32)
    path = Path(jnp.int32(0), none, none, none, none == 0, blank, blank, empty, empty, empty)
    top = [tree.edges[0, :, k] for k in range(3 * actions)]
    path = step(path, _node(top, tree.value[0]), True)
    return jax.lax.while_loop(lambda path: anywhere(path.going), inside, path)


def _node(numbers: list[Array], value: Float[Array, " tree"]) -> Node:
    actions = len(numbers) // 3
    return Node(numbers[:actions], numbers[actions : 2 * actions], numbers[2 * actions :], value)


def _puct(
    here: Node,
    urge: Float[Array, " tree"],
    legal: Bool[Array, "tree action"] | None,
    rules: Rules,
) -> Int[Array, " tree"]:
    """The action with the highest Q + urge * prior / (visits + 1); legal: given at the root."""
    seen = [n > 0 for n in here.visits]
    q = here.q
    if rules.normalise:
        known = [jnp.where(s, x, here.value) for s, x in zip(seen, q, strict=True)]
        low, high = _least([here.value, *known]), _most([here.value, *known])
        span = jnp.maximum(high - low, 1e-8)
        q = [(jnp.where(s, x, low) - low) / span for s, x in zip(seen, q, strict=True)]
    if rules.sweep and legal is not None:
        q = [jnp.where(s, x, FIRST) for s, x in zip(seen, q, strict=True)]
    scores = [
        x + urge * prior / (n + 1.0) for x, prior, n in zip(q, here.prior, here.visits, strict=True)
    ]
    return _best(scores, legal)


def _best(
    scores: list[Float[Array, " tree"]], legal: Bool[Array, "tree action"] | None
) -> Int[Array, " tree"]:
    """The first of the highest scores among the legal actions."""
    if legal is not None:
        scores = [jnp.where(legal[:, a], score, -jnp.inf) for a, score in enumerate(scores)]
    best, action = scores[0], jnp.zeros(scores[0].shape, jnp.int32)
    for number, score in enumerate(scores[1:], 1):
        action = jnp.where(score > best, number, action)
        best = jnp.maximum(best, score)
    return action


def _total(numbers: list[Float[Array, " tree"]]) -> Float[Array, " tree"]:
    return sum(numbers[1:], numbers[0])


def _least(numbers: list[Float[Array, " tree"]]) -> Float[Array, " tree"]:
    return functools.reduce(jnp.minimum, numbers)


def _most(numbers: list[Float[Array, " tree"]]) -> Float[Array, " tree"]:
    return functools.reduce(jnp.maximum, numbers)


def _pick(
    numbers: list[Float[Array, " tree"]], action: Int[Array, " tree"]
) -> Float[Array, " tree"]:
    """The number of the chosen action."""
    found = numbers[0]
    for index, number in enumerate(numbers[1:], 1):
        found = jnp.where(action == index, number, found)
    return found


# --- new nodes, and up ---------------------------------------------------------------------------


def _with_nodes(
    tree: Tree, path: Path, new: Bool[Array, " tree"], made: Int[Array, ""], taken: Taken
) -> Tree:
    """The trees with a node `made` for what the last actions led to; linked where it is new."""
    ids = jnp.arange(new.shape[0])
    name = jnp.where(taken.discount == 0, -2 - made, made)
    where = jnp.where(new, path.at, tree.child.shape[0])
    return Tree(
        edges=_with_row(tree.edges, _fresh_edges(taken.judged.logits), made),
        child=tree.child.at[where, ids, path.action].set(name, mode="drop", unique_indices=True),
        value=_with_row(tree.value, taken.judged.value, made),
        raw=_with_row(tree.raw, taken.judged.value, made),
        reward=_with_row(tree.reward, taken.reward, made),
        discount=_with_row(tree.discount, taken.discount, made),
    )


def _fresh_edges(logits: Float[Array, "tree action"]) -> Float[Array, "tree number"]:
    """Priors; visits and Q are 0."""
    nothing = jnp.zeros_like(logits)
    return jnp.concatenate([jax.nn.softmax(logits), nothing, nothing], axis=-1)


def _with_row(
    rows: Shaped[Array, "node tree *shape"], row: Shaped[Array, "tree *shape"], at: Int[Array, ""]
) -> Shaped[Array, "node tree *shape"]:
    return jax.lax.dynamic_update_slice(rows, row[None], (at, *(0,) * row.ndim))


def _up(tree: Tree, path: Path, leaf: Int[Array, " tree"]) -> Tree:
    """The trees with the returns of one simulation, which ended in the nodes `leaf`."""
    nodes, trees, actions = tree.child.shape
    ids = jnp.arange(trees)
    rewards, discounts = tree.reward.reshape(-1), tree.discount.reshape(-1)
    reached = tree.raw.reshape(-1).at[leaf * trees + ids].get(mode="promise_in_bounds")

    def back(carry: tuple) -> tuple:
        level, below, gained, later, edges, value = carry
        level = level - 1
        row = lambda x: jax.lax.dynamic_index_in_dim(x, level, keepdims=False)  # noqa: E731
        node, action, node_visits, visits = (
            row(x) for x in (path.node, path.chosen, path.node_visits, path.visits)
        )
        on = node < nodes
        reward = rewards.at[below * trees + ids].get(mode="promise_in_bounds")
        discount = discounts.at[below * trees + ids].get(mode="promise_in_bounds")
        returned = reward + discount * gained
        mean = (row(path.node_value) * node_visits + returned) / (node_visits + 1.0)
        q = reward + discount * later
        # Beyond the end of a tree's way node is N: these writes fall outside and are dropped.
        first = (node * trees + ids) * (3 * actions) + action
        how = {"mode": "drop", "unique_indices": True}
        edges = edges.at[first + actions].set(visits + 1.0, **how)
        edges = edges.at[first + 2 * actions].set(q, **how)
        value = value.at[node * trees + ids].set(mean, **how)
        below, gained, later = (
            jnp.where(on, *pair) for pair in ((node, below), (returned, gained), (mean, later))
        )
        return level, below, gained, later, edges, value

    start = (path.level, leaf, reached, reached, tree.edges.reshape(-1), tree.value.reshape(-1))
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
