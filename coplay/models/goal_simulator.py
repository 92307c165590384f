"""A simulator of co-players with goals of the game, and their opponent models."""

import dataclasses
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer

from coplay.core.game import Game, Observation, State
from coplay.core.goals import Goals, restricted
from coplay.core.numerics import sum_in_order
from coplay.models.action_rates import random_policy
from coplay.models.opponent_model import predict
from coplay.models.sparse_inputs import (
    evaluate_sparse,
    others_after_first,
    own_rows,
    sparse_fits,
    sparse_views_of,
    view_inputs,
)
from coplay.nn import categorical
from coplay.nn.networks import Network, flatten
from coplay.nn.sparse_views import rows_of, summed
from coplay.search.simulator import Hypothesis, Simulator


class GoalHypothesis(NamedTuple):
    """What a tree assumes of the others. goal: [tree, other] the candidate that each follows.
    counts: [tree, other, goal] what each realised so far in the episode."""

    goal: Int[Array, "tree other"]
    counts: Integer[Array, "tree other goal"]


class GoalSimulator(Simulator):
    """Co-players act by opponent models, each with a goal; actor and critic evaluate positions.

    opponents: models with a leading axis: one per co-player, or one for all of them.
    habits: [tree, other, habit] probabilities, by which co-players choose new goals.
    belief: [tree, other, goal] about the co-players, the same in all positions of a tree.
    rates: [tree, other, action] by which co-players without a goal act (`log_rates`); None: they
        take all legal actions alike.
    persona: [tree] of the planner; -1: none. personas: how many there are.
    goals: the co-players' candidates; None: opponent models see the ego views alone, and hypotheses
        are empty. random_goal: the last candidate is to act at random.
    guides: a planner without a persona also tries what it would do with each persona, and a
        position has the highest of their values. A persona counts only a part of the rewards, so
        who follows it gets no less than its value.
    """

    actor: Network
    critic: Network
    opponents: Network
    habits: Float[Array, "tree other habit"]
    belief: Float[Array, "tree other goal"]
    rates: Float[Array, "tree other action"] | None
    persona: Int[Array, " tree"]
    personas: int = eqx.field(static=True)
    goals: Goals | None
    random_goal: bool = eqx.field(static=True)
    guides: bool = eqx.field(static=True)

    def prepared(self, game: Game) -> Simulator:
        return SparseGoalSimulator.of(self, game) if SparseGoalSimulator.fits(self, game) else self

    def of_trees(self, trees: Int[Array, " some"]) -> Simulator:
        def per_tree(simulator: GoalSimulator) -> tuple:
            return simulator.habits, simulator.belief, simulator.rates, simulator.persona

        chosen = jax.tree.map(lambda x: x[trees], per_tree(self))
        return eqx.tree_at(per_tree, self, chosen, is_leaf=lambda x: x is None)

    def others(
        self, game: Game, observation: Observation, state: State, hypothesis: Hypothesis
    ) -> Float[Array, "tree other action"]:
        seen = jax.tree.map(lambda x: x[:, 1:], observation)
        goal = self.goals_seen(state, hypothesis)
        known = goal[..., :-1] if self.random_goal else goal
        return self.random_where(predict_others(self.opponents, seen, known), goal, seen.legal)

    def goals_seen(
        self, state: State, hypothesis: Hypothesis
    ) -> Float[Array, "tree other feature"]:
        """The features of the co-players' goals; none without goals."""
        if self.goals is None:
            return jnp.zeros((*self.habits.shape[:2], 0))
        features = jax.vmap(self.goals.features)(state)[:, 1:]
        chosen = hypothesis.goal[..., None] == jnp.arange(features.shape[2])  # [tree, other, goal]
        return sum_in_order(jnp.where(chosen[..., None], features, 0.0), axis=2)

    def random_where(
        self,
        predicted: Float[Array, "tree other action"],
        goal: Float[Array, "tree other feature"],
        legal: Bool[Array, "tree other action"],
    ) -> Float[Array, "tree other action"]:
        """The predictions for co-players with these goals; those without a goal act at random."""
        if not self.random_goal:
            return predicted
        return jnp.where(goal[..., -1:] > 0, random_policy(self.rates, legal), predicted)

    def evaluate(
        self, game: Game, observation: Observation, state: State, hypothesis: Hypothesis
    ) -> tuple[Float[Array, "tree action"], Float[Array, " tree"]]:
        if not self.guides:
            return self.evaluate_as(game, observation, state, self.persona)
        # A planner with a persona follows no other.
        free = self.persona < 0
        personas = jnp.where(free, jnp.arange(self.personas)[:, None], self.persona)
        log_policies, values = jax.vmap(partial(self.evaluate_as, game, observation, state))(
            jnp.concatenate([self.persona[None], personas])
        )
        even = jax.nn.logsumexp(log_policies, axis=0) - jnp.log(len(values))
        return even, jnp.max(values, axis=0)

    def evaluate_as(
        self, game: Game, observation: Observation, state: State, persona: Int[Array, " tree"]
    ) -> tuple[Float[Array, "tree action"], Float[Array, " tree"]]:
        """As `evaluate`, by a planner with this persona."""
        view = flatten(observation, self.context(game, state, persona))
        log_policy = categorical.log_policy(self.actor(view), observation.legal)
        return log_policy, self.critic(view)[..., 0]

    def context(
        self, game: Game, state: State, persona: Int[Array, " tree"]
    ) -> Float[Array, "tree input"]:
        """What actor and critic see beside the ego view."""
        return belief_context(
            game, state, self.goals, self.belief, self.rates, persona, self.personas
        )

    def resample_hypothesis(
        self, uniform: Float[Array, "tree other"], hypothesis: Hypothesis
    ) -> Hypothesis:
        """Other goals, sampled from the beliefs."""
        return (
            hypothesis
            if self.goals is None
            else hypothesis._replace(goal=sample_goals(uniform, self.belief))
        )

    def planner_reward(
        self, game: Game, state: State, after: State, reward: Float[Array, " tree"]
    ) -> Float[Array, " tree"]:
        """With a persona, only a part of the reward."""
        if game.goals is None or self.personas == 0:
            return reward
        realised = jax.vmap(game.goals.realised)(state, after)[:, 0]
        return game.goals.persona_reward(self.persona, reward, realised)

    def update_hypothesis(
        self,
        game: Game,
        uniform: Float[Array, "tree other"],
        state: State,
        after: State,
        hypothesis: Hypothesis,
    ) -> Hypothesis:
        """A co-player that realised its goal, or whose goal is gone, chooses a new one by its
        habits."""
        goals = self.goals
        if goals is None:
            return hypothesis
        realised = jax.vmap(goals.realised)(state, after)[:, 1:]
        open_ = jax.vmap(goals.open)(after)[:, 1:]
        kinds = jnp.arange(open_.shape[-1])
        counts = hypothesis.counts + (realised[..., None] == kinds)
        kept = jnp.any((hypothesis.goal[..., None] == kinds) & open_, axis=-1) & (realised < 0)
        if self.random_goal:
            kept = kept | (hypothesis.goal == kinds[-1])
        prior = goals.prior(self.habits, counts, open_)
        if self.random_goal:  # who had a goal does not begin to act at random
            prior = prior.at[..., -1].set(0.0)
        new = sample_goals(uniform, prior)
        return GoalHypothesis(jnp.where(kept, hypothesis.goal, new), counts)


FIELDS = tuple(field.name for field in dataclasses.fields(GoalSimulator))


class SparseGoalSimulator(GoalSimulator):
    """As the `GoalSimulator` it is made of, to rounding.

    own_rows, other_rows: what each input of a view adds to the first layers of actor and critic,
        and of the opponent models; the last row, of what is missing, is 0.
    """

    own_rows: Float[Array, "row own_unit"]
    other_rows: Float[Array, "model row unit"]

    @staticmethod
    def fits(simulator: GoalSimulator, game: Game) -> bool:
        """Whether the game has sparse views and the networks begin with a layer that reads them."""
        return sparse_fits(simulator.actor, game)

    @classmethod
    def of(cls, simulator: GoalSimulator, game: Game) -> "SparseGoalSimulator":
        inputs = view_inputs(simulator.actor, game)
        seen = simulator.opponents.layers[0].weight[..., :inputs]  # [model, unit, input]
        return cls(
            **{name: getattr(simulator, name) for name in FIELDS},
            own_rows=own_rows(simulator.actor, simulator.critic, game),
            other_rows=rows_of(seen),
        )

    def prepared(self, game: Game) -> "SparseGoalSimulator":
        return self

    def others(
        self, game: Game, observation: Observation, state: State, hypothesis: Hypothesis
    ) -> Float[Array, "tree other action"]:
        indices = jnp.swapaxes(sparse_views_of(self.actor, game, state, slice(1, None)), 0, 1)
        models, rows, units = self.other_rows.shape
        # The tables of all models as one: a slice of each would be copied.
        begins = np.arange(game.seats - 1) % models * rows
        first = summed(self.other_rows.reshape(-1, units), indices + begins[:, None, None])
        first = first + observation.features[:, 0, -1:] * self.other_rows[:, None, -2]
        goal = jnp.swapaxes(self.goals_seen(state, hypothesis), 0, 1)  # [other, tree, feature]
        layer = self.opponents.layers[0]
        first = first + layer.bias[:, None]
        for feature in range(layer.weight.shape[-1] - rows + 1):
            first = first + goal[..., feature, None] * layer.weight[:, None, :, rows - 1 + feature]
        logits = others_after_first(self.opponents, first)
        legal = observation.legal[:, 1:]
        predicted = categorical.log_policy(jnp.moveaxis(logits, 0, 1), legal)
        return self.random_where(predicted, jnp.swapaxes(goal, 0, 1), legal)

    def evaluate_as(
        self, game: Game, observation: Observation, state: State, persona: Int[Array, " tree"]
    ) -> tuple[Float[Array, "tree action"], Float[Array, " tree"]]:
        context = (
            persona_flags(persona, self.personas),
            believed_of_others(game, state, self.goals, self.belief, self.rates),
        )
        return evaluate_sparse(
            self.actor, self.critic, self.own_rows, game, observation, state, context
        )


def belief_context(
    game: Game,
    state: State,
    goals: Goals | None,
    belief: Float[Array, "copy other goal"],
    rates: Float[Array, "copy other action"] | None,
    persona: Int[Array, " copy"],
    personas: int,
) -> Float[Array, "copy input"]:
    """What actor and critic see beside the ego view: `persona_flags` and `believed_of_others`."""
    flags = persona_flags(persona, personas)
    known = believed_of_others(game, state, goals, belief, rates)
    return jnp.concatenate([flags, known], axis=-1)


def persona_flags(persona: Int[Array, " copy"], personas: int) -> Float[Array, "copy persona"]:
    """The own persona as flags; none where it is -1."""
    return (persona[..., None] == jnp.arange(personas)).astype(jnp.float32)


def believed_of_others(
    game: Game,
    state: State,
    goals: Goals | None,
    belief: Float[Array, "copy other goal"],
    rates: Float[Array, "copy other action"] | None,
) -> Float[Array, "copy input"]:
    """Of each co-player in the game, in states [copy] with the own seat first, the features of its
    goals, averaged over the belief, and the `log_rates` of its actions, as far as it is believed to
    have no goal (the last candidate).

    Values must rest on what the player can know, and not on the goals that others turn out to have.
    """
    if goals is None:
        return jnp.zeros((belief.shape[0], 0))
    features = jax.vmap(goals.features)(state)[:, 1:]
    # Inside a tree goals are gone that were open when the belief was formed.
    belief = restricted(belief, jax.vmap(goals.open)(state)[:, 1:])
    mean = sum_in_order(belief[..., None] * features, axis=2)
    if rates is not None:
        mean = jnp.concatenate([mean, belief[..., -1:] * rates], axis=-1)
    there = jax.vmap(game.alive)(state)[:, 1:]
    known = jnp.where(there[..., None], mean, 0.0)
    return known.reshape(belief.shape[0], -1)


def predict_others(
    models: Network,
    observation: Observation,
    goal: Float[Array, "*batch other feature"],
) -> Float[Array, "*batch other action"]:
    """Log-probabilities of co-players [..., other, ...] by models [other or 1, ...]."""
    number = jax.tree.leaves(models)[0].shape[0]
    if number == 1:
        return predict(jax.tree.map(lambda x: x[0], models), observation, goal)
    axis = observation.legal.ndim - 2
    return jax.vmap(predict, in_axes=(0, axis, axis), out_axes=axis)(models, observation, goal)


def sample_goals(
    uniform: Float[Array, "*batch"], belief: Float[Array, "*batch goal"]
) -> Int[Array, "*batch"]:
    """A candidate sampled by its probability; `uniform` in [0, 1)."""
    return categorical.sample_cdf(uniform, categorical.cdf(jnp.maximum(belief, 1e-30)))
