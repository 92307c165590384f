"""Worlds a planner can imagine: co-players that are known, or modelled with goals."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Integer

from coplay.games.game import Game, Observation, ScriptedPolicy, State
from coplay.minds import categorical
from coplay.minds.networks import Network, flatten
from coplay.minds.opponent_model import predict
from coplay.minds.planning import Mind, World


class KnownWorld(World):
    """Co-players that act by known policies; own actions tried evenly, positions worth nothing.

    policies: of the co-players in seats 1, 2, … of the states.
    """

    policies: tuple[ScriptedPolicy, ...] = eqx.field(static=True)

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
        self, game: Game, observation: Observation, state: State
    ) -> tuple[Float[Array, "tree action"], Float[Array, " tree"]]:
        even = categorical.log_policy(jnp.zeros(observation.legal.shape), observation.legal)
        return even, jnp.zeros(even.shape[0])


class Believed(NamedTuple):
    """What is imagined of the others. goal: [tree, other] the candidate each is after.
    counts: [tree, other, goal] what each realised so far in the episode."""

    goal: Int[Array, "tree other"]
    counts: Integer[Array, "tree other goal"]


class GoalWorld(World):
    """Co-players modelled by networks, each with a goal; positions judged by actor and critic.

    opponents: models with a leading axis: one per co-player, or one for all of them.
    habits: [tree, other, habit] probabilities, for goals that are taken up along a future.
    Without goals (`direct`) the models see the ego views alone, and minds are empty.
    """

    actor: Network
    critic: Network
    opponents: Network
    habits: Float[Array, "tree other habit"]
    direct: bool = eqx.field(static=True)

    def prepared(self, game: Game) -> World:
        from coplay.minds.marked_world import MarkedWorld  # which builds on this world

        return MarkedWorld.of(self, game) if MarkedWorld.fits(self, game) else self

    def others(
        self, game: Game, observation: Observation, state: State, mind: Mind
    ) -> Float[Array, "tree other action"]:
        seen = jax.tree.map(lambda x: x[:, 1:], observation)
        return predict_others(self.opponents, seen, self.goals_seen(game, state, mind))

    def goals_seen(
        self, game: Game, state: State, mind: Mind
    ) -> Float[Array, "tree other feature"]:
        """The goals of the co-players as their models see them; no features without goals."""
        if self.direct:
            return jnp.zeros((*self.habits.shape[:2], 0))
        features = jax.vmap(game.goals.features)(state)[:, 1:]  # type: ignore[union-attr]
        chosen = mind.goal[..., None] == jnp.arange(features.shape[2])  # [tree, other, goal]
        return jnp.sum(jnp.where(chosen[..., None], features, 0.0), axis=2)

    def judge(
        self, game: Game, observation: Observation, state: State
    ) -> tuple[Float[Array, "tree action"], Float[Array, " tree"]]:
        view = flatten(observation)
        log_policy = categorical.log_policy(self.actor(view), observation.legal)
        return log_policy, self.critic(view)[..., 0]

    def follow(
        self, game: Game, luck: Float[Array, "tree other"], state: State, after: State, mind: Mind
    ) -> Mind:
        """A co-player that realised its goal, or whose goal is gone, takes up a new one by its
        habits."""
        if self.direct:
            return mind
        goals = game.goals
        assert goals is not None
        realised = jax.vmap(goals.realised)(state, after)[:, 1:]
        open_ = jax.vmap(goals.open)(after)[:, 1:]
        kinds = jnp.arange(open_.shape[-1])
        counts = mind.counts + (realised[..., None] == kinds)
        kept = jnp.any((mind.goal[..., None] == kinds) & open_, axis=-1) & (realised < 0)
        prior = goals.prior(self.habits, counts, open_)
        drawn = draw_goals(luck, prior)
        return Believed(jnp.where(kept, mind.goal, drawn), counts)


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
    return categorical.sample(luck, jnp.log(jnp.maximum(belief, 1e-30)))
