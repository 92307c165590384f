"""Worlds a planner can imagine: co-players modelled with goals."""

import dataclasses
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer

from coplay.core.game import Game, Observation, State
from coplay.core.goals import Goals, restricted
from coplay.core.numerics import sum_in_order
from coplay.models.opponent_model import predict
from coplay.models.sparse_inputs import (
    judged_by_marks,
    marks_fit,
    marks_of,
    others_after_first,
    own_rows,
    rows_of,
    summed,
    view_inputs,
)
from coplay.nn import categorical
from coplay.nn.networks import Network, flatten
from coplay.search.planning import Mind, World


class Believed(NamedTuple):
    """What is imagined of the others. goal: [tree, other] the candidate each is after.
    counts: [tree, other, goal] what each realised so far in the episode."""

    goal: Int[Array, "tree other"]
    counts: Integer[Array, "tree other goal"]


class GoalWorld(World):
    """Co-players modelled by networks, each with a goal; positions judged by actor and critic.

    opponents: models with a leading axis: one per co-player, or one for all of them.
    habits: [tree, other, habit] probabilities, for goals that are taken up along a future.
    belief: [tree, other, goal] what is believed of the co-players, in whatever position is judged.
    drive: [tree] of the planner; -1: none. drives: how many there are.
    goals: what the co-players may be after; None: their models see the ego views alone, and minds
        are empty. aimless: the last candidate is to act by chance.
    guides: a planner without a drive also tries what it would do with each of the drives, and a
        position is worth what the best of them expects of it. A drive counts only a part of the
        rewards, so who follows it gets no less than it expects.
    """

    actor: Network
    critic: Network
    opponents: Network
    habits: Float[Array, "tree other habit"]
    belief: Float[Array, "tree other goal"]
    drive: Int[Array, " tree"]
    drives: int = eqx.field(static=True)
    goals: Goals | None
    aimless: bool = eqx.field(static=True)
    guides: bool = eqx.field(static=True)

    def prepared(self, game: Game) -> World:
        return MarkedWorld.of(self, game) if MarkedWorld.fits(self, game) else self

    def of_trees(self, trees: Int[Array, " some"]) -> World:
        return eqx.tree_at(
            lambda world: (world.habits, world.belief, world.drive),
            self,
            tuple(x[trees] for x in (self.habits, self.belief, self.drive)),
        )

    def others(
        self, game: Game, observation: Observation, state: State, mind: Mind
    ) -> Float[Array, "tree other action"]:
        seen = jax.tree.map(lambda x: x[:, 1:], observation)
        goal = self.goals_seen(state, mind)
        known = goal[..., :-1] if self.aimless else goal
        return self.by_chance(predict_others(self.opponents, seen, known), goal, seen.legal)

    def goals_seen(self, state: State, mind: Mind) -> Float[Array, "tree other feature"]:
        """The features of what the co-players are after; none without goals."""
        if self.goals is None:
            return jnp.zeros((*self.habits.shape[:2], 0))
        features = jax.vmap(self.goals.features)(state)[:, 1:]
        chosen = mind.goal[..., None] == jnp.arange(features.shape[2])  # [tree, other, goal]
        return sum_in_order(jnp.where(chosen[..., None], features, 0.0), axis=2)

    def by_chance(
        self,
        expected: Float[Array, "tree other action"],
        goal: Float[Array, "tree other feature"],
        legal: Bool[Array, "tree other action"],
    ) -> Float[Array, "tree other action"]:
        """What is expected of co-players with these goals, where aimless ones act by chance."""
        if not self.aimless:
            return expected
        return jnp.where(goal[..., -1:] > 0, categorical.even(legal), expected)

    def judge(
        self, game: Game, observation: Observation, state: State, mind: Mind
    ) -> tuple[Float[Array, "tree action"], Float[Array, " tree"]]:
        if not self.guides:
            return self.judged(game, observation, state, self.drive)
        # Who has a drive follows no other.
        free = self.drive < 0
        drives = jnp.where(free, jnp.arange(self.drives)[:, None], self.drive)
        log_policies, values = jax.vmap(partial(self.judged, game, observation, state))(
            jnp.concatenate([self.drive[None], drives])
        )
        even = jax.nn.logsumexp(log_policies, axis=0) - jnp.log(len(values))
        return even, jnp.max(values, axis=0)

    def judged(
        self, game: Game, observation: Observation, state: State, drive: Int[Array, " tree"]
    ) -> tuple[Float[Array, "tree action"], Float[Array, " tree"]]:
        """As `judge`, by a planner with this drive."""
        told = circumstances(game, state, self.goals, self.belief, drive, self.drives)
        view = flatten(observation, told)
        log_policy = categorical.log_policy(self.actor(view), observation.legal)
        return log_policy, self.critic(view)[..., 0]

    def another_mind(self, luck: Float[Array, "tree other"], mind: Mind) -> Mind:
        """Other goals by the beliefs."""
        return mind if self.goals is None else mind._replace(goal=draw_goals(luck, self.belief))

    def worth(
        self, game: Game, state: State, after: State, reward: Float[Array, " tree"]
    ) -> Float[Array, " tree"]:
        """To a planner with a drive, only a part of the reward."""
        if game.goals is None or self.drives == 0:
            return reward
        realised = jax.vmap(game.goals.realised)(state, after)[:, 0]
        return game.goals.driven(self.drive, reward, realised)

    def follow(
        self, game: Game, luck: Float[Array, "tree other"], state: State, after: State, mind: Mind
    ) -> Mind:
        """A co-player that realised its goal, or whose goal is gone, takes up a new one by its
        habits."""
        goals = self.goals
        if goals is None:
            return mind
        realised = jax.vmap(goals.realised)(state, after)[:, 1:]
        open_ = jax.vmap(goals.open)(after)[:, 1:]
        kinds = jnp.arange(open_.shape[-1])
        counts = mind.counts + (realised[..., None] == kinds)
        kept = jnp.any((mind.goal[..., None] == kinds) & open_, axis=-1) & (realised < 0)
        if self.aimless:
            kept = kept | (mind.goal == kinds[-1])
        prior = goals.prior(self.habits, counts, open_)
        if self.aimless:  # who had a goal so far does not become aimless
            prior = prior.at[..., -1].set(0.0)
        drawn = draw_goals(luck, prior)
        return Believed(jnp.where(kept, mind.goal, drawn), counts)


FIELDS = tuple(field.name for field in dataclasses.fields(GoalWorld))


class MarkedWorld(GoalWorld):
    """As the `GoalWorld` it is made of, to rounding.

    own_rows, other_rows: what each input of a view adds to the first layers of actor and critic,
        and of the co-players' models; the last row, of marks that are missing, is 0.
    """

    own_rows: Float[Array, "row own_unit"]
    other_rows: Float[Array, "other row unit"]

    @staticmethod
    def fits(world: GoalWorld, game: Game) -> bool:
        """Whether the game gives marks and the networks begin with a layer that reads them."""
        return marks_fit(world.actor, game)

    @classmethod
    def of(cls, world: GoalWorld, game: Game) -> "MarkedWorld":
        inputs = view_inputs(world.actor, game)
        seen = world.opponents.layers[0].weight[..., :inputs]  # [other or 1, unit, input]
        seen = jnp.broadcast_to(seen, (game.seats - 1, *seen.shape[1:]))
        return cls(
            **{name: getattr(world, name) for name in FIELDS},
            own_rows=own_rows(world.actor, world.critic, game),
            other_rows=rows_of(seen),
        )

    def prepared(self, game: Game) -> "MarkedWorld":
        return self

    def others(
        self, game: Game, observation: Observation, state: State, mind: Mind
    ) -> Float[Array, "tree other action"]:
        marks = marks_of(self.actor, game, state, slice(1, None))
        time = observation.features[:, 0, -1]
        rows = self.other_rows.shape[1]
        goal, layer = self.goals_seen(state, mind), self.opponents.layers[0]
        weight = layer.weight[..., rows - 1 :]  # [other or 1, unit, feature]
        parts = []
        # One co-player after the other: on CPU quicker than lookups [tree, other].
        for other, table in enumerate(self.other_rows):
            first = time[:, None] * table[-2] + summed(table, marks[:, other])
            model = min(other, len(weight) - 1)
            for feature in range(weight.shape[-1]):
                first = first + goal[:, other, feature, None] * weight[model, :, feature]
            parts.append(first + layer.bias[model])
        logits = others_after_first(self.opponents, jnp.stack(parts))
        legal = observation.legal[:, 1:]
        expected = categorical.log_policy(jnp.moveaxis(logits, 0, 1), legal)
        return self.by_chance(expected, goal, legal)

    def judged(
        self, game: Game, observation: Observation, state: State, drive: Int[Array, " tree"]
    ) -> tuple[Float[Array, "tree action"], Float[Array, " tree"]]:
        told = circumstances(game, state, self.goals, self.belief, drive, self.drives)
        return judged_by_marks(
            self.actor, self.critic, self.own_rows, game, observation, state, told
        )


def circumstances(
    game: Game,
    state: State,
    goals: Goals | None,
    belief: Float[Array, "copy other goal"],
    drive: Int[Array, " copy"],
    drives: int,
) -> Float[Array, "copy input"]:
    """What actor and critic are told beside the ego view, in states [copy] with the own seat first:
    the own drive as flags (none where it is -1), and what the co-players in the game are believed
    to be after, as the mean of the features of their goals.

    Values must rest on what can be known: given the goals that others really turn out to have, a
    player would see its own hopes fail by every second draw.
    """
    flags = (drive[..., None] == jnp.arange(drives)).astype(jnp.float32)
    if goals is None:
        return flags
    features = jax.vmap(goals.features)(state)[:, 1:]
    open_ = jax.vmap(goals.open)(state)[:, 1:]
    mean = sum_in_order(restricted(belief, open_)[..., None] * features, axis=2)
    there = jax.vmap(game.alive)(state)[:, 1:]
    known = jnp.where(there[..., None], mean, 0.0)
    return jnp.concatenate([flags, known.reshape(*drive.shape, -1)], axis=-1)


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


def draw_goals(
    luck: Float[Array, "*batch"], belief: Float[Array, "*batch goal"]
) -> Int[Array, "*batch"]:
    """A candidate by its probability; `luck` in [0, 1)."""
    return categorical.drawn(luck, categorical.stretches(jnp.maximum(belief, 1e-30)))
