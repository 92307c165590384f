"""The HOP player: what it believes of its co-players, and how it plans and acts by it."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from coplay.errors import UserError
from coplay.games.game import Game, State
from coplay.minds import belief as beliefs
from coplay.minds import categorical
from coplay.minds.networks import Network, ViewShape, flatten
from coplay.minds.planning import boltzmann, mean_over_draws, search
from coplay.minds.worlds import Believed, GoalWorld, draw_goals, predict_others
from coplay.players.hop_config import HOPConfig
from coplay.players.player import Insight, Memory, Player, View


class HOPMemory(NamedTuple):
    """What a player knows of its co-players, the next seat first; kept across episodes.

    weights: [copy, other, habit] of the habits, see `coplay.minds.belief`.
    counts: [copy, other, goal] goals realised so far in the episode.
    belief: [copy, other, goal] probabilities of the goals.
    """

    weights: Float[Array, "copy other habit"]
    counts: Integer[Array, "copy other goal"]
    belief: Float[Array, "copy other goal"]


class HOPPlayer(Player):
    """Plans by its beliefs, or acts by its actor alone (planner=off). In a group every array has a
    leading [seat] axis. opponents: a model per co-player, the next seat first, or one for all."""

    actor: Network
    critic: Network
    opponents: Network
    config: HOPConfig = eqx.field(static=True)
    shape: ViewShape
    game_seats: int = eqx.field(static=True)
    greedy: bool = eqx.field(static=True, default=False)

    def start(self, copies: int) -> Memory:
        if self.config.direct_om:
            return ()
        others, goals = self.game_seats - 1, self.shape.goals
        first = beliefs.first_weights(self.config.prior, self.config.remember, self.shape.habits)
        return HOPMemory(
            weights=jnp.broadcast_to(first, (copies, others, self.shape.habits)),
            counts=jnp.zeros((copies, others, goals), jnp.int8),
            belief=jnp.full((copies, others, goals), 1.0 / max(goals, 1)),
        )

    def habits(self, memory: HOPMemory) -> Float[Array, "copy other habit"]:
        """Probabilities of the co-players' habits."""
        return beliefs.habit_prior(self.config.prior, self.config.concentration, memory.weights)

    def prior(self, game: Game, state: State, memory: HOPMemory) -> Float[Array, "copy other goal"]:
        """Probabilities of the co-players' goals, whatever they did in the episode."""
        assert game.goals is not None
        open_ = jax.vmap(game.goals.open)(state)[:, 1:]
        return game.goals.prior(self.habits(memory), memory.counts, open_)

    # --- deciding ------------------------------------------------------------------------------

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory]:
        refuse_partial_views(game)
        config = self.config
        if not config.direct_om:
            prior = self.prior(game, view.state, memory)
            fresh = jnp.ones_like(view.alive) if not config.intra else view.time == 0
            memory = memory._replace(belief=jnp.where(fresh[:, None, None], prior, memory.belief))
        if config.planner == "off":
            logits = self.actor(flatten(view.observation))
        else:
            q = self.plan(game, key, view, memory)
            logits = boltzmann(
                q, view.observation.legal, config.beta, config.normalise_q, config.q_range
            )
        if self.greedy:
            logits = categorical.only_best(logits, view.observation.legal)
        return logits, memory

    def plan(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> Float[Array, "copy action"]:
        """Q of every action: one search per draw of goals, averaged. Trees are [draw * copy]."""
        config, copies = self.config, view.alive.shape[0]
        seed_key, goal_key = jax.random.split(key)
        seeds = jax.random.bits(seed_key, (config.draws * copies,), jnp.uint32)

        def repeated(x: Array) -> Array:
            return jnp.broadcast_to(x, (config.draws, *x.shape)).reshape(-1, *x.shape[1:])

        state = jax.tree.map(repeated, view.state)
        mind: Any = ()
        habits = jnp.zeros((config.draws * copies, self.game_seats - 1, 0))
        if not config.direct_om:
            belief, counts, habits = (
                repeated(x) for x in (memory.belief, memory.counts, self.habits(memory))
            )
            luck = jax.random.uniform(goal_key, (belief.shape[0] * belief.shape[1],))
            mind = Believed(draw_goals(luck.reshape(belief.shape[:2]), belief), counts)
        world = GoalWorld(self.actor, self.critic, self.opponents, habits, config.direct_om)
        found = search(world, game, config.search_config, state, mind, seeds)
        return mean_over_draws(found, view.observation.legal, config.draws)

    # --- believing -----------------------------------------------------------------------------

    def notice(
        self, game: Game, view: View, after: State, over: Bool[Array, " copy"], memory: Memory
    ) -> Memory:
        config, goals = self.config, game.goals
        if config.direct_om:
            return memory
        assert goals is not None
        action = jax.vmap(game.last_actions)(after)[:, 1:].astype(jnp.int32)
        alive = jax.vmap(game.alive)(view.state)[:, 1:]
        belief = memory.belief
        if config.intra:
            likelihood = self.likelihood(game, view.state, action)
            prior = self.prior(game, view.state, memory)
            updated = beliefs.after_action(belief, likelihood, config.goal_change, prior)
            belief = jnp.where(alive[..., None], updated, belief)
        realised = jax.vmap(goals.realised)(view.state, after)[:, 1:]
        kinds = jnp.arange(self.shape.goals)
        counts = memory.counts + (realised[..., None] == kinds).astype(jnp.int8)
        memory = memory._replace(counts=counts)
        open_ = jax.vmap(goals.open)(after)[:, 1:]
        belief = beliefs.after_step(belief, self.prior(game, after, memory), realised >= 0, open_)
        weights = memory.weights
        if config.inter:
            shown = jnp.where(over[:, None], goals.habit(counts), -1)
            weights = beliefs.with_episode(config.remember, weights, shown)
        counts = jnp.where(over[:, None, None], 0, counts).astype(jnp.int8)
        return HOPMemory(weights, counts, belief)

    def insight(self, game: Game, view: View, memory: Memory) -> Insight:
        """Beliefs about goals, and actions foreseen by the models, weighted by the beliefs."""
        seen = jax.tree.map(lambda x: x[:, 1:], jax.vmap(game.observe)(view.state))
        if self.config.direct_om:
            none = jnp.zeros((*seen.legal.shape[:2], 0))
            return Insight(None, jnp.exp(predict_others(self.opponents, seen, none)))
        log_probs = self.foreseen(game, view.state)
        action = jnp.sum(memory.belief[..., None] * jnp.exp(log_probs), axis=2)
        return Insight(memory.belief, action)

    def foreseen(self, game: Game, state: State) -> Float[Array, "copy other goal action"]:
        """Log-probabilities of what each co-player does in `state`, for every goal it may have."""
        assert game.goals is not None
        seen = jax.tree.map(lambda x: x[:, 1:], jax.vmap(game.observe)(state))
        features = jax.vmap(game.goals.features)(state)[:, 1:]  # [copy, other, goal, feature]
        return jax.vmap(
            lambda goal: predict_others(self.opponents, seen, goal), in_axes=2, out_axes=2
        )(features)

    def likelihood(
        self, game: Game, state: State, action: Int[Array, "copy other"]
    ) -> Float[Array, "copy other goal"]:
        """Log-probability of each co-player's action in `state`, for every goal it may have."""
        log_probs = self.foreseen(game, state)
        taken = jnp.broadcast_to(action[..., None], log_probs.shape[:-1])
        return categorical.take(log_probs, taken)


def refuse_partial_views(game: Game) -> None:
    """HOP plans on states: it may only where its seat sees all of them."""
    if not game.full_view:
        raise UserError(
            f"HOP plans over the whole state of '{game.name}', but players here see only a part of "
            "it: leave out game.view, or train ppo"
        )
