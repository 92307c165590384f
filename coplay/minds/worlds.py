"""Worlds a planner can imagine: co-players that are known, or modelled with goals."""

import dataclasses
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer

from coplay.games.game import Game, Observation, ScriptedPolicy, State
from coplay.games.goals import Goals, restricted
from coplay.minds import categorical
from coplay.minds.networks import Network, flatten
from coplay.minds.opponent_model import predict
from coplay.minds.planning import Mind, World, advance, begin, expected, mixed
from coplay.sums import sum_in_order

EVEN = 0.2
"""How much of the prior is spread over all actions where some are tried first."""


class KnownWorld(World):
    """Co-players that act by known policies.

    policies: of the co-players in seats 1, 2, … of the states.
    habits: policies whose actions are tried first, each as often; none: all actions evenly.
    playouts: a position is worth what the best of the habits brings if it is played so many steps
        from there; 0: nothing. discount: of rewards in playouts.
    trees: which trees these are, each with luck of its own in playouts; None: all, in order.
    """

    policies: tuple[ScriptedPolicy, ...] = eqx.field(static=True)
    habits: tuple[ScriptedPolicy, ...] = eqx.field(static=True, default=())
    playouts: int = eqx.field(static=True, default=0)
    discount: float = eqx.field(static=True, default=1.0)
    trees: Int[Array, " tree"] | None = None

    def of_trees(self, trees: Int[Array, " some"]) -> World:
        return dataclasses.replace(self, trees=trees)

    def others(
        self, game: Game, observation: Observation, state: State, mind: Mind
    ) -> Float[Array, "tree other action"]:
        probs = []
        for seat, policy in enumerate(self.policies, 1):
            ego = jax.vmap(game.ego_state, in_axes=(0, None))(state, seat)
            probs.append(jax.vmap(policy, in_axes=(None, 0))(game, ego))
        stacked = jnp.stack(probs, axis=1)
        return jnp.where(stacked > 0, jnp.log(jnp.maximum(stacked, 1e-30)), categorical.NEVER)

    def judge(
        self, game: Game, observation: Observation, state: State, mind: Mind
    ) -> tuple[Float[Array, "tree action"], Float[Array, " tree"]]:
        prior = categorical.even(observation.legal)
        if self.habits:
            even = jnp.exp(prior)
            usual = sum(jax.vmap(policy, in_axes=(None, 0))(game, state) for policy in self.habits)
            mixture = EVEN * even + (1.0 - EVEN) * usual / len(self.habits)
            prior = jnp.where(observation.legal, jnp.log(jnp.maximum(mixture, 1e-30)), prior)
        value = jnp.zeros(prior.shape[0])
        if self.playouts and self.habits:
            brought = [self._played_out(game, state, habit) for habit in self.habits]
            value = jnp.max(jnp.stack(brought), axis=0)
        return prior, value

    def _played_out(self, game: Game, state: State, habit: ScriptedPolicy) -> Float[Array, " tree"]:
        """The return of one game by this policy, with the same luck at every position."""
        number = jax.tree.leaves(state)[0].shape[0]
        trees = jnp.arange(number) if self.trees is None else self.trees
        seed = mixed(trees.astype(jnp.uint32))
        order = jnp.arange(1, self.playouts + 1, dtype=jnp.uint32)[:, None]
        luck = (mixed(seed + order * jnp.uint32(0x9E3779B1)) >> 8).astype(jnp.float32) * 2.0**-24

        def one(carry: tuple, luck: Float[Array, " tree"]) -> tuple[tuple, None]:
            position, gained, factor = carry
            mine = jax.vmap(habit, in_axes=(None, 0))(game, position.state)
            action = categorical.drawn(luck, categorical.stretches(mine))
            others = expected(self, game, position)
            position, step = advance(self, game, self.discount, position, others, action)
            return (position, gained + factor * step.reward, factor * step.discount), None

        position, _ = begin(self, game, state, (), mixed(seed))
        start = (position, jnp.zeros(number), jnp.ones(number))
        return jax.lax.scan(one, start, luck)[0][1]


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
        from coplay.minds.marked_world import MarkedWorld  # which builds on this world

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
