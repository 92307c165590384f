"""Search that trusts its models of the other side only so far: the restricted Nash response.

The next move is a game of its own. The planner chooses a mixture of actions. With probability
`trust` the other side acts by its model, else it does its worst: whatever hurts that mixture most.
Every tree assumes one joint action of the other side and says what each own action is worth then.
The mixture that is best in this table is played (Johanson, Zinkevich and Bowling, 2007). After the
first step everybody acts by the models.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from coplay.core.game import Game, Observation, State
from coplay.core.player import Plan
from coplay.nn import categorical
from coplay.search.config import SearchConfig
from coplay.search.root import plan_of, search_trees
from coplay.search.simulator import Hypothesis, Simulator, mix_bits

ROUNDS = 300
"""Rounds of regret matching by which a mixture is found."""


class AssumedHypothesis(NamedTuple):
    """What a tree assumes. inner: of the simulator that is wrapped. first: [tree, other] what each
    co-player does next; -1: its model says."""

    inner: Hypothesis
    first: Int[Array, "tree other"]


class AssumedFirst(Simulator):
    """As `inner`, but what co-players do in the first step is part of the hypothesis."""

    inner: Simulator

    def prepared(self, game: Game) -> Simulator:
        return AssumedFirst(self.inner.prepared(game))

    def of_trees(self, trees: Int[Array, " some"]) -> Simulator:
        return AssumedFirst(self.inner.of_trees(trees))

    def others(
        self, game: Game, observation: Observation, state: State, hypothesis: AssumedHypothesis
    ) -> Float[Array, "tree other action"]:
        predicted = self.inner.others(game, observation, state, hypothesis.inner)
        first = hypothesis.first[..., None]
        certain = jnp.where(first == jnp.arange(predicted.shape[-1]), 0.0, categorical.NEVER)
        return jnp.where(first >= 0, certain, predicted)

    def evaluate(
        self, game: Game, observation: Observation, state: State, hypothesis: AssumedHypothesis
    ) -> tuple[Float[Array, "tree action"], Float[Array, " tree"]]:
        return self.inner.evaluate(game, observation, state, hypothesis.inner)

    def planner_reward(
        self, game: Game, state: State, after: State, reward: Float[Array, " tree"]
    ) -> Float[Array, " tree"]:
        return self.inner.planner_reward(game, state, after, reward)

    def update_hypothesis(
        self,
        game: Game,
        uniform: Float[Array, "tree other"],
        state: State,
        after: State,
        hypothesis: AssumedHypothesis,
    ) -> AssumedHypothesis:
        inner = self.inner.update_hypothesis(game, uniform, state, after, hypothesis.inner)
        return AssumedHypothesis(inner, jnp.full_like(hypothesis.first, -1))


def cautious_search(
    simulator: Simulator,
    game: Game,
    config: SearchConfig,
    trust: float,
    state: State,
    hypothesis: Hypothesis,
    seed: UInt32[Array, " tree"],
) -> tuple[Plan, Float[Array, "copy action"]]:
    """Search from states [draw * copy] that have the planner in seat 0, and the mixture of actions
    to play, [copy, action]. The Q of the plan are those of each action alone."""
    trees, other_side = config.trees, opposing(game, state)
    views = jax.vmap(game.observe)(state)
    predicted = simulator.others(game, views, state, hypothesis)
    legal = views.legal[:, 1:]
    first = assumed_actions(seed, legal, trees)
    chance = jnp.where(other_side, categorical.take(predicted, first), 0.0)
    chance = jnp.exp(jnp.sum(chance, axis=-1)).reshape(trees, -1)
    assumed = AssumedHypothesis(hypothesis, jnp.where(other_side, first, -1))
    found, grown = search_trees(AssumedFirst(simulator), game, config, state, assumed, seed)
    own_legal = views.legal[:, 0].reshape(trees, -1, views.legal.shape[-1])[0]
    plan = plan_of(found, grown, own_legal, trees)
    q, visits = (x.reshape(trees, *own_legal.shape) for x in (found.q, found.visits))
    joint = jnp.where(other_side, first, -1).reshape(trees, *own_legal.shape[:1], -1)
    q = by_joint_action(q, visits > 0, joint, plan.q)
    weight = chance / jnp.maximum(jnp.sum(chance, axis=0), 1e-30)
    usual = jnp.sum(weight[..., None] * q, axis=0)
    table = trust * usual + (1.0 - trust) * q
    mixture = jax.vmap(maximin, (1, 0))(table, own_legal)
    return plan._replace(q=jnp.min(table, axis=0)), mixture


def opposing(game: Game, state: State) -> Bool[Array, "tree other"]:
    """Which co-players are not on the planner's side; states [tree] have the planner in seat 0."""
    side = jax.vmap(game.side_of)(state)
    return side[:, 1:] != side[:, :1]


def assumed_actions(
    seed: UInt32[Array, " tree"], legal: Bool[Array, "tree other action"], trees: int
) -> Int[Array, "tree other"]:
    """A legal action of every co-player for each tree; trees are [draw * copy].

    Over the trees of a copy the actions of a co-player are spread as evenly as can be, in an order
    of its own, so that few trees meet many joint actions.
    """
    others = legal.shape[1]
    seed = seed.reshape(trees, -1)[:, :, None]
    order = jnp.arange(1, others + 1, dtype=jnp.uint32) * jnp.uint32(0x9E3779B1)
    words = mix_bits(seed + order)  # [tree, copy, other]
    rank = jnp.argsort(jnp.argsort(words, axis=0), axis=0)
    share = (rank + 0.5) / trees
    even = jnp.exp(categorical.uniform_policy(legal))
    return categorical.sample_cdf(share.reshape(-1, others), categorical.cdf(even))


def by_joint_action(
    q: Float[Array, "tree copy action"],
    seen: Bool[Array, "tree copy action"],
    joint: Int[Array, "tree copy other"],
    otherwise: Float[Array, "copy action"],
) -> Float[Array, "tree copy action"]:
    """Q as the mean over all trees of a copy that assume the same joint action. What one tree found
    also hangs on the luck of its later steps, and the worst of many would be bad luck. seen: where
    Q means something; `otherwise` is for actions that no such tree has tried."""
    same = jnp.all(joint[:, None] == joint[None], axis=-1).astype(q.dtype)  # [tree, tree, copy]
    number = jnp.einsum("tsc,sca->tca", same, seen.astype(q.dtype))
    total = jnp.einsum("tsc,sca->tca", same, jnp.where(seen, q, 0.0))
    return jnp.where(number > 0, total / jnp.maximum(number, 1.0), otherwise)


def maximin(
    table: Float[Array, "column action"], legal: Bool[Array, " action"]
) -> Float[Array, " action"]:
    """The mixture of legal actions whose expected worth in the worst column is highest.

    By regret matching+ of both sides in turn; the mean of the mixtures, later ones counting more.
    """
    columns, actions = table.shape
    spread = jnp.max(jnp.where(legal, table, -jnp.inf)) - jnp.min(jnp.where(legal, table, jnp.inf))
    table = jnp.where(legal, table, 0.0) / jnp.maximum(spread, 1e-6)

    def mixed(regret: Array, allowed: Array) -> Array:
        positive = jnp.where(allowed, jnp.maximum(regret, 0.0), 0.0)
        total = jnp.sum(positive)
        even = allowed / jnp.sum(allowed)
        return jnp.where(total > 0, positive / jnp.where(total > 0, total, 1.0), even)

    everywhere = jnp.ones(columns, bool)

    def one(number: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        mine, theirs, total = carry
        policy = mixed(mine, legal)
        cost = table @ policy
        theirs = jnp.maximum(theirs + policy @ table.T @ mixed(theirs, everywhere) - cost, 0.0)
        worth = mixed(theirs, everywhere) @ table
        mine = jnp.maximum(mine + jnp.where(legal, worth - policy @ worth, 0.0), 0.0)
        return mine, theirs, total + (number + 1.0) * policy

    start = (jnp.zeros(actions), jnp.zeros(columns), jnp.zeros(actions))
    total = jax.lax.fori_loop(0, ROUNDS, one, start)[2]
    return total / jnp.sum(total)
