"""Batched tree search: PUCT and Gumbel, many trees at once.

The meaning is mctx's: the same selection rules, Q transforms, masks and depth limit, for a model
whose outcomes depend on position and action alone. What differs is how trees are kept (see
`docs/explanation/planning.md`):

- Nodes come first, [node, tree, ...]: simulation i of every tree makes node i + 1, so new nodes are
  written as one slice.
- All numbers of a node lie together, one row per node and tree.
- The way down notes all that the way up needs; that only writes, two numbers per edge and one per
  node.
- Of many trees, the few with the longest ways go on without the others.
- A path ends where the future does (discount 0), and the model is called only for the trees that
  need it, if these are few.
- What the model must know of a node before an action can be taken there is worked out when the
  first one is: most nodes stay leaves.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped

from coplay.core.numerics import sum_in_order
from coplay.core.player import SearchTrees
from coplay.search.partial_batch import any_in_batch, call_where
from coplay.search.selection import (
    SAFE,
    Node,
    Rules,
    choose_at_root,
    choose_inside,
    priors,
    root_logits,
)

Embedding = Any  # what the model needs to know of a node: a pytree of arrays [tree, ...]
Observed = Any  # what the model gives for a node before actions: a pytree of arrays [tree, ...]

UNVISITED = -1
NOTED = 7
"""How many numbers are noted of each level, see `Notes`."""
CROWD = 512
"""From so many trees on, those with the longest ways go on without the others."""
FEW = 4
"""One in so many of a crowd goes on."""
OBSERVE_SHARES, STEP_SHARES = (0.25, 0.625), (0.25,)
"""For which shares of all trees the model is called, if no more of them need it (`call_where`)."""


class Evaluation(NamedTuple):
    """How the model sees nodes [tree]: logits of the actions, and the value."""

    logits: Float[Array, "tree action"]
    value: Float[Array, " tree"]


class StepOutput(NamedTuple):
    """What an action leads to, [tree]. discount: of what follows; 0: nothing follows."""

    reward: Float[Array, " tree"]
    discount: Float[Array, " tree"]
    evaluation: Evaluation


class Model(NamedTuple):
    """What actions lead to. Both functions are called for some trees; their last argument says
    which (None: all, in order).

    observe: what must be known of nodes before an action is taken there; called once per node.
    step_model: where an action leads: (action, node, what `observe` gave for the node, trees).
    """

    observe: Callable[[Embedding, Int[Array, " some"] | None], Observed]
    step_model: Callable[
        [Int[Array, " some"], Embedding, Observed, Int[Array, " some"] | None],
        tuple[StepOutput, Embedding],
    ]


class Tree(NamedTuple):
    """Trees with the nodes made so far; N nodes, node 0 is the root.

    numbers: of each node, as one vector [node * tree * (3 * action + 4)]: the priors of its actions
        (`Node.prior`), how often each was taken, its Q, then value, raw, reward and discount.
    child: where an action leads: a node, `UNVISITED`, or -2 - node if nothing follows there.
    """

    numbers: Float[Array, " number"]
    child: Int[Array, "node tree action"]

    @property
    def actions(self) -> int:
        return self.child.shape[-1]

    @property
    def rows(self) -> Float[Array, "node tree number"]:
        """The numbers of every node."""
        return self.numbers.reshape(*self.child.shape[:2], -1)

    @property
    def visits(self) -> Float[Array, "node tree action"]:
        return self.rows[..., self.actions : 2 * self.actions]

    @property
    def q(self) -> Float[Array, "node tree action"]:
        """Q of every action; 0 where it was not taken."""
        return self.rows[..., 2 * self.actions : 3 * self.actions]

    @property
    def value(self) -> Float[Array, "node tree"]:
        """The mean of the returns seen from a node on."""
        return self.rows[..., -4]

    @property
    def raw(self) -> Float[Array, "node tree"]:
        """The value of a node by the model."""
        return self.rows[..., -3]

    @property
    def reward(self) -> Float[Array, "node tree"]:
        """Of the action that led to the node."""
        return self.rows[..., -2]

    @property
    def discount(self) -> Float[Array, "node tree"]:
        """Of what follows the action that led to the node."""
        return self.rows[..., -1]


class Notes(NamedTuple):
    """What ways pass, [level, 7, tree]: the node, the action chosen there and how often that was
    taken so far; the visits and the value of the node so far; reward and discount of the action
    that led to the node. Beyond the end of a tree's way node is N. late: of the trees that go on
    while the others are done."""

    all: Float[Array, "level 7 tree"]
    late: Float[Array, "level 7 few"]


class Way(NamedTuple):
    """The ways down of one simulation.

    levels: how long the longest is. early: how many of these levels all trees went together.
    late: the trees that went on from there; the number of trees where there are fewer.
    edge: the last action of each tree's way, as node * A + action of A actions.
    child: what that leads to (see `Tree`).
    """

    levels: Int[Array, ""]
    early: Int[Array, ""]
    late: Int[Array, " few"]
    edge: Int[Array, " tree"]
    child: Int[Array, " tree"]
    notes: Notes


def grow(
    model: Model,
    root: Evaluation,
    embedding: Embedding,
    legal: Bool[Array, "tree action"],
    rules: Rules,
) -> Tree:
    """Trees after all simulations, from roots with these embeddings.

    The model must give the same outcome whenever it is called for the same action at the same node,
    whatever other trees it is called for.
    """
    trees, actions = root.logits.shape
    nodes = rules.simulations + 1
    levels = min(rules.depth, rules.simulations)
    ids = jnp.arange(trees)

    def room(first: Shaped[Array, "tree *shape"]) -> Shaped[Array, "node tree *shape"]:
        return jnp.zeros((nodes, *first.shape), first.dtype).at[0].set(first)

    nothing = jnp.zeros_like(root.value)
    first = Evaluation(root_logits(root.logits, legal, rules), root.value)
    tree = Tree(
        numbers=room(_fresh_rows(StepOutput(nothing, nothing, first), rules)).reshape(-1),
        child=jnp.full((nodes, trees, actions), UNVISITED, jnp.int32),
    )
    few = trees // FEW if trees >= CROWD else 0
    notes = Notes(jnp.zeros((levels, NOTED, trees)), jnp.zeros((levels, NOTED, few)))
    Carry = tuple[Tree, Embedding, Observed, Notes]

    def simulate(number: Int[Array, ""], carry: Carry) -> Carry:
        tree, memory, known, notes = carry
        way = _down(tree, notes, number, legal, rules)
        new = way.child == UNVISITED
        node, action = way.edge // actions, way.edge % actions
        parent = jax.tree.map(lambda x: x.at[node, ids].get(mode=SAFE), memory)
        # A node was looked at when its first child was made: in which simulation, children say.
        children = tree.child.at[node, ids].get(mode=SAFE)
        children = jnp.where(children < UNVISITED, -2 - children, children)
        since = jnp.min(jnp.where(children == UNVISITED, number + 1, children), axis=-1) - 1
        found = call_where(model.observe, new & (since == number), OBSERVE_SHARES, parent)
        known = jax.tree.map(lambda x, row: _with_row(x, row, number), known, found)
        seen = jax.tree.map(lambda x: x.at[since, ids].get(mode=SAFE), known)
        taken, after = call_where(model.step_model, new, STEP_SHARES, action, parent, seen)
        made = number + 1
        tree = _with_nodes(tree, way.edge, new, made, taken, rules)
        memory = jax.tree.map(lambda x, row: _with_row(x, row, made), memory, after)
        old = jnp.where(way.child < UNVISITED, -2 - way.child, way.child)
        return _up(tree, way, jnp.where(new, made, old)), memory, known, way.notes

    seen = jax.eval_shape(lambda node: model.observe(node, None), embedding)
    known = jax.tree.map(lambda x: jnp.zeros((rules.simulations, *x.shape), x.dtype), seen)
    start = (tree, jax.tree.map(room, embedding), known, notes)
    return jax.lax.fori_loop(0, rules.simulations, simulate, start)[0]


def best_q(tree: Tree) -> Float[Array, "tree action"]:
    """Q of the root if every node has the value of its best visited action, and leaves have the
    model's.

    The mean over simulations counts the futures that were tried and found worse; this does not.
    """
    nodes, trees, _ = tree.child.shape
    visited, rewards, discounts = tree.visits > 0, tree.reward, tree.discount
    ids = jnp.arange(trees)[:, None]

    def q_of(node: Int[Array, ""], value: Float[Array, "node tree"]) -> Float[Array, "tree action"]:
        child = tree.child[node]
        child = jnp.where(child < UNVISITED, -2 - child, jnp.maximum(child, 0))
        later, reward, discount = (
            x.at[child, ids].get(mode="promise_in_bounds") for x in (value, rewards, discounts)
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


def as_search_trees(tree: Tree, rules: Rules) -> SearchTrees:
    """The trees as others see them, [tree, node, ...]."""
    child = jnp.where(tree.child < UNVISITED, -2 - tree.child, tree.child)
    prior = tree.rows[..., : tree.actions]
    if rules.kind == "gumbel":
        prior = jax.nn.softmax(prior, axis=-1)
    parts = (tree.visits, tree.q, prior, child)
    return SearchTrees(*(jnp.swapaxes(x, 0, 1) for x in parts))


# --- down ----------------------------------------------------------------------------------------


class Going(NamedTuple):
    """Ways of some trees, see `Way`. notes: of these trees."""

    levels: Int[Array, ""]
    edge: Int[Array, " some"]
    child: Int[Array, " some"]
    notes: Float[Array, "level 7 some"]


def _down(
    tree: Tree,
    notes: Notes,
    number: Int[Array, ""],
    legal: Bool[Array, "tree action"],
    rules: Rules,
) -> Way:
    """The way of every tree to an action not taken before, an end, or the depth limit.

    A loop lasts as long as its longest way, and most are much shorter. In a crowd it stops when
    only a few still go on, and these go on by themselves.
    """
    trees, few = notes.all.shape[-1], notes.late.shape[-1]
    here, led = _node(tree.rows[0])
    action = choose_at_root(here, legal, number, rules)
    root = jnp.zeros_like(action)
    child = tree.child[0].reshape(-1)
    child = child.at[jnp.arange(trees) * tree.actions + action].get(mode=SAFE)
    first = _noted(notes.all, jnp.int32(0), root, action, here, led)
    everyone = Going(jnp.int32(1), action, child, first)
    everyone = _follow(tree, everyone, jnp.arange(trees), few, rules)
    levels, edge, child, recorded = everyone
    late = jnp.zeros(0, jnp.int32)
    last = Going(levels, late, late, notes.late)
    if few:
        going = child >= 0
        place = jnp.where(going, jnp.cumsum(going) - 1, few)
        late = jnp.full(few, trees, jnp.int32)
        late = late.at[place].set(jnp.arange(trees, dtype=jnp.int32), mode="drop")
        there = jnp.minimum(late, trees - 1)
        onward = jnp.where(late < trees, child.at[there].get(mode=SAFE), UNVISITED)
        last = Going(levels, edge.at[there].get(mode=SAFE), onward, notes.late)
        last = _follow(tree, last, there, 0, rules)
        edge = edge.at[late].set(last.edge, mode="drop", unique_indices=True)
        child = child.at[late].set(last.child, mode="drop", unique_indices=True)
    return Way(last.levels, levels, late, edge, child, Notes(recorded, last.notes))


def _follow(tree: Tree, way: Going, ids: Int[Array, " some"], enough: int, rules: Rules) -> Going:
    """The ways of the trees `ids` until no more than `enough` go on."""
    nodes, trees, actions = tree.child.shape
    children = tree.child.reshape(-1)

    def onward(way: Going) -> Going:
        going = way.child >= 0
        at = jnp.maximum(way.child, 0)
        here, led = _node(tree.rows.at[at, ids].get(mode=SAFE))
        action = choose_inside(here, rules)
        child = children.at[(at * trees + ids) * actions + action].get(mode=SAFE)
        return Going(
            levels=way.levels + 1,
            edge=jnp.where(going, at * actions + action, way.edge),
            child=jnp.where(going, child, way.child),
            notes=_noted(way.notes, way.levels, jnp.where(going, at, nodes), action, here, led),
        )

    def unfinished(way: Going) -> Bool[Array, ""]:
        return any_in_batch(jnp.sum(way.child >= 0) > enough) & (way.levels < rules.depth)

    return jax.lax.while_loop(unfinished, onward, way)


Led = tuple[Float[Array, " tree"], Float[Array, " tree"]]
"""Reward and discount of the action that led to a node."""


def _noted(
    notes: Float[Array, "level 7 some"],
    level: Int[Array, ""],
    passed: Int[Array, " some"],
    action: Int[Array, " some"],
    here: Node,
    led: Led,
) -> Float[Array, "level 7 some"]:
    """The notes with one level more."""
    taken = action == jnp.arange(here.visits.shape[0])[:, None]
    visits = sum_in_order(jnp.where(taken, here.visits, 0.0), axis=0)
    which = (passed.astype(jnp.float32), action.astype(jnp.float32))
    row = (*which, visits, here.node_visits, here.value, *led)
    return jax.lax.dynamic_update_slice(notes, jnp.stack(row)[None], (level, 0, 0))


def _node(rows: Float[Array, "tree number"]) -> tuple[Node, Led]:
    numbers = rows.T
    prior, visits, q = numbers[:-4].reshape(3, -1, rows.shape[0])
    value, raw, *led = numbers[-4:]
    return Node(prior, visits, q, 1.0 + sum_in_order(visits, axis=0), value, raw), (*led,)


# --- new nodes, and up ---------------------------------------------------------------------------


def _with_nodes(
    tree: Tree,
    edge: Int[Array, " tree"],
    new: Bool[Array, " tree"],
    made: Int[Array, ""],
    taken: StepOutput,
    rules: Rules,
) -> Tree:
    """The trees with a node `made` for what the last actions led to; linked where it is new."""
    nodes, trees, actions = tree.child.shape
    name = jnp.where(taken.discount == 0, -2 - made, made)
    node = jnp.where(new, edge // actions, nodes)  # beyond the last node: dropped
    where = (node * trees + jnp.arange(trees)) * actions + edge % actions
    child = tree.child.reshape(-1).at[where].set(name, mode="drop", unique_indices=True)
    fresh = _fresh_rows(taken, rules).reshape(-1)
    numbers = jax.lax.dynamic_update_slice(tree.numbers, fresh, (made * fresh.shape[0],))
    return Tree(numbers, child.reshape(tree.child.shape))


def _fresh_rows(taken: StepOutput, rules: Rules) -> Float[Array, "tree number"]:
    """The rows of new nodes (`Tree.rows`): visits and Q are 0."""
    logits, value = taken.evaluation
    nothing = jnp.zeros_like(logits)
    last = jnp.stack([value, value, taken.reward, taken.discount], axis=-1)
    return jnp.concatenate([priors(logits, rules), nothing, nothing, last], axis=-1)


def _with_row(
    rows: Shaped[Array, "node tree *shape"], row: Shaped[Array, "tree *shape"], at: Int[Array, ""]
) -> Shaped[Array, "node tree *shape"]:
    return jax.lax.dynamic_update_slice(rows, row[None], (at, *(0,) * row.ndim))


class Brought(NamedTuple):
    """What is brought up from a node, of some trees. reward, discount: of the action that led to
    the node. gained: the return from there. later: its value."""

    reward: Float[Array, " some"]
    discount: Float[Array, " some"]
    gained: Float[Array, " some"]
    later: Float[Array, " some"]


class Climb(NamedTuple):
    """The way up. level: how many levels are still to go. numbers: of all trees, see `Tree`."""

    level: Int[Array, ""]
    brought: Brought
    numbers: Float[Array, " number"]


def _up(tree: Tree, way: Way, leaf: Int[Array, " tree"]) -> Tree:
    """The trees with the returns of one simulation, which ended in the nodes `leaf`."""
    trees, few = leaf.shape[0], way.late.shape[0]
    ids = jnp.arange(trees)
    flat, size = tree.numbers, tree.rows.shape[-1]
    end = (leaf * trees + ids) * size + size
    raw, reward, discount = (flat.at[end - back].get(mode=SAFE) for back in (3, 2, 1))
    climb = Climb(way.levels, Brought(reward, discount, raw, raw), flat)
    if few:  # who went on comes back first
        there = jnp.minimum(way.late, trees - 1)
        brought = jax.tree.map(lambda x: x.at[there].get(mode=SAFE), climb.brought)
        last = climb._replace(brought=brought)
        last = _climb(tree, last, way.notes.late, there, way.early)
        brought = jax.tree.map(
            lambda x, new: x.at[way.late].set(new, mode="drop", unique_indices=True),
            climb.brought,
            last.brought,
        )
        climb = last._replace(brought=brought)
    climb = _climb(tree, climb, way.notes.all, ids, jnp.int32(0))
    return tree._replace(numbers=climb.numbers)


def _climb(
    tree: Tree,
    climb: Climb,
    notes: Float[Array, "level 7 some"],
    ids: Int[Array, " some"],
    top: Int[Array, ""],
) -> Climb:
    """Up to level `top`, the trees `ids`."""
    nodes, trees, actions = tree.child.shape
    size = tree.rows.shape[-1]
    how: dict[str, Any] = {"mode": "drop", "unique_indices": True}

    def back(climb: Climb) -> Climb:
        level = climb.level - 1
        passed, chosen, visits, node_visits, value, led_by, discounted = notes[level]
        node = passed.astype(jnp.int32)
        reward, discount, gained, later = climb.brought
        returned = reward + discount * gained
        mean = (value * node_visits + returned) / (node_visits + 1.0)
        q = reward + discount * later
        # Beyond the end of a tree's way node is N: these writes fall outside and are dropped.
        place = (node * trees + ids) * size
        first = place + chosen.astype(jnp.int32)
        numbers = climb.numbers.at[first + actions].set(visits + 1.0, **how)
        numbers = numbers.at[first + 2 * actions].set(q, **how)
        numbers = numbers.at[place + 3 * actions].set(mean, **how)
        on = node < nodes
        new = Brought(led_by, discounted, returned, mean)
        brought = jax.tree.map(lambda new, old: jnp.where(on, new, old), new, climb.brought)
        return Climb(level, brought, numbers)

    return jax.lax.while_loop(lambda climb: climb.level > top, back, climb)
