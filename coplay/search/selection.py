"""How a search chooses actions: the rules of PUCT and of Gumbel search, as mctx has them.

Everything is [action, tree]: reductions over actions then run along whole vectors of trees.
"""

import math
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

FIRST = 1e6  # a score above all others
SAFE = "promise_in_bounds"  # indices need no check
LEAST = float(np.finfo(np.float32).min)


class Rules(NamedTuple):
    """How to search.

    simulations: how many. depth: the longest path, in actions.
    kind: PUCT, or Gumbel search without Gumbel noise.
    Of PUCT: normalise: Q between 0 and 1 among a node, its value and its children; else as it is.
    sweep: every legal action of the root is tried once before all else.
    init, base: c is init + log((visits + base + 1) / base).
    """

    simulations: int
    depth: int
    kind: Literal["puct", "gumbel"] = "puct"
    normalise: bool = True
    sweep: bool = False
    init: float = 1.25
    base: float = 19652.0


class Node(NamedTuple):
    """What a choice is made by, of one node per tree.

    prior: probabilities of the actions by the model (PUCT), or their logits (Gumbel).
    visits, q: of the actions; q is 0 without visits. node_visits: 1 + all visits of its actions.
    value: the mean of the returns from here. raw: the value by the model.
    """

    prior: Float[Array, "action tree"]
    visits: Float[Array, "action tree"]
    q: Float[Array, "action tree"]
    node_visits: Float[Array, " tree"]
    value: Float[Array, " tree"]
    raw: Float[Array, " tree"]


def priors(logits: Float[Array, "tree action"], rules: Rules) -> Float[Array, "tree action"]:
    """The model's logits as `Node.prior` has them."""
    return jax.nn.softmax(logits.T, axis=0).T if rules.kind == "puct" else logits


def root_logits(
    logits: Float[Array, "tree action"], legal: Bool[Array, "tree action"], rules: Rules
) -> Float[Array, "tree action"]:
    """Logits of the root; Gumbel search leaves the illegal actions out of them."""
    if rules.kind == "puct":
        return logits
    return jnp.where(legal, logits - jnp.max(logits, axis=-1, keepdims=True), LEAST)


def choose_at_root(
    here: Node, legal: Bool[Array, "tree action"], number: Int[Array, ""], rules: Rules
) -> Int[Array, " tree"]:
    """The action of simulation `number` at the root, among the legal ones."""
    if rules.kind == "gumbel":
        scores = _halving(here, legal, number, rules)
    else:
        q = _normalised(here) if rules.normalise else here.q
        if rules.sweep:
            q = jnp.where(here.visits > 0, q, FIRST)
        scores = q + _urge(here, rules)
    return _best(jnp.where(legal.T, scores, -jnp.inf))


def choose_inside(here: Node, rules: Rules) -> Int[Array, " tree"]:
    """The action below the root. Illegal ones are not left out: their prior is 0."""
    if rules.kind == "gumbel":
        improved = jax.nn.softmax(here.prior + completed_q(here), axis=0)
        return _best(improved - here.visits / here.node_visits)
    q = _normalised(here) if rules.normalise else here.q
    return _best(q + _urge(here, rules))


def _best(scores: Float[Array, "action tree"]) -> Int[Array, " tree"]:
    """The first of the highest scores."""
    return jnp.argmax(scores, axis=0).astype(jnp.int32)


# --- PUCT ----------------------------------------------------------------------------------------


def _urge(here: Node, rules: Rules) -> Float[Array, "action tree"]:
    """c * prior * sqrt(node visits) / (visits + 1)."""
    # A table, because logarithms and roots of whole numbers are wanted at every level.
    every = jnp.arange(rules.simulations + 2, dtype=jnp.float32)
    table = jnp.sqrt(every) * (rules.init + jnp.log((every + rules.base + 1.0) / rules.base))
    factor = table.at[here.node_visits.astype(jnp.int32)].get(mode=SAFE)
    return factor * here.prior / (here.visits + 1.0)


def _normalised(here: Node) -> Float[Array, "action tree"]:
    """Q between 0 and 1 among the actions taken and the node itself; 0 of actions not taken."""
    seen = here.visits > 0
    known = jnp.where(seen, here.q, here.value)
    low = jnp.minimum(here.value, jnp.min(known, axis=0))
    high = jnp.maximum(here.value, jnp.max(known, axis=0))
    return (jnp.where(seen, here.q, low) - low) / jnp.maximum(high - low, 1e-8)


# --- Gumbel search -------------------------------------------------------------------------------


def completed_q(here: Node) -> Float[Array, "action tree"]:
    """Q between 0 and 1, scaled up with the visits. Actions not taken count as the mix of the
    model's value and the Q of those taken, weighted by their priors."""
    seen = here.visits > 0
    visits = here.node_visits - 1.0
    probs = jnp.maximum(jax.nn.softmax(here.prior, axis=0), jnp.finfo(jnp.float32).tiny)
    taken = jnp.sum(jnp.where(seen, probs, 0.0), axis=0)
    weighted = jnp.sum(jnp.where(seen, probs * here.q / jnp.where(seen, taken, 1.0), 0.0), axis=0)
    mix_bits = (here.raw + visits * weighted) / (visits + 1.0)
    q = jnp.where(seen, here.q, mix_bits)
    low, high = jnp.min(q, axis=0), jnp.max(q, axis=0)
    scale = (50.0 + jnp.max(here.visits, axis=0)) * 0.1
    return scale * ((q - low) / jnp.maximum(high - low, 1e-8))


def _halving(
    here: Node, legal: Bool[Array, "tree action"], number: Int[Array, ""], rules: Rules
) -> Float[Array, "action tree"]:
    """Scores of sequential halving: of the actions with as many visits as are due, logit + Q."""
    actions = legal.shape[1]
    table = np.array(
        [halving_visits(count, rules.simulations) for count in range(actions + 1)], np.float32
    )
    due = jnp.asarray(table)[jnp.sum(legal, axis=1), number]
    logits = here.prior - jnp.max(here.prior, axis=0)
    scores = jnp.maximum(-1e9, logits + completed_q(here))
    return jnp.where(here.visits == due, scores, -jnp.inf)


def halving_visits(actions: int, simulations: int) -> list[int]:
    """How often the action that each simulation tries was tried before, in sequential halving:
    all actions get the same number of visits, then the better half of them, and so on."""
    if actions <= 1:
        return list(range(simulations))
    rounds = math.ceil(math.log2(actions))
    due: list[int] = []
    visits, left = 0, actions
    while len(due) < simulations:
        for _ in range(max(1, simulations // (rounds * left))):
            due += [visits] * left
            visits += 1
        left = max(2, left // 2)
    return due[:simulations]
