"""The HOP player: what it believes of its co-players, and how it plans and acts by it."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from coplay.algorithms.hop.config import HOPConfig
from coplay.algorithms.hop.networks import goal_sizes
from coplay.core.errors import UserError
from coplay.core.game import Game, State
from coplay.core.goals import Goals
from coplay.core.player import SEATS, Candidates, Insight, Memory, Plan, Player, View
from coplay.games.adapters.worker_game import WorkerGame
from coplay.models import action_rates
from coplay.models import belief as beliefs
from coplay.models.goal_simulator import (
    GoalHypothesis,
    GoalSimulator,
    belief_context,
    predict_others,
    sample_goals,
)
from coplay.models.personas import NO_PERSONA, PersonaSeed
from coplay.models.prototype_goals import PrototypeGoals
from coplay.models.random_goal import WithRandomGoal, with_random_goal
from coplay.nn import categorical
from coplay.nn.networks import Network, ViewShape, flatten
from coplay.search.root import boltzmann, for_each_draw, plan_of, search_trees
from coplay.search.worst_case import cautious_search


class HOPMemory(NamedTuple):
    """What a player knows of its co-players, the next seat first; kept across episodes.

    weights: [copy, other, habit] of the habits, see `coplay.models.belief`.
    counts: [copy, other, goal] goals realised so far in the episode.
    belief: [copy, other, goal] probabilities of the goals.
    acted: [copy, other, action] what each did, as far as it had no goal; None: not counted.
    """

    weights: Float[Array, "copy other habit"]
    counts: Integer[Array, "copy other goal"]
    belief: Float[Array, "copy other goal"]
    acted: action_rates.ActionCounts | None


class HOPRecord(NamedTuple):
    """What actor and critic are told of the memory (`belief_context`)."""

    belief: Float[Array, "copy other goal"]
    rates: Float[Array, "copy other action"] | None


class HOPPlayer(Player):
    """Plans by its beliefs, or acts by its actor alone (planner=none). In a group whose seats do
    not share it every array has a leading [seat] axis.

    opponents: a model per co-player, the next seat first, or one for all. persona_seed: of the
    personas it has; [seat of the group] where the seats of a group share the player. learning: it
    has personas (`personas.share`).
    """

    actor: Network
    critic: Network
    opponents: Network
    persona_seed: PersonaSeed
    config: HOPConfig = eqx.field(static=True)
    shape: ViewShape
    game_seats: int = eqx.field(static=True)
    greedy: bool = eqx.field(static=True, default=False)
    learning: bool = eqx.field(static=True, default=False)

    def start(self, copies: int) -> Memory:
        if not self.config.has_goals:
            return ()
        sizes = goal_sizes(self.config, self.shape)
        others, goals = self.game_seats - 1, sizes.goals + self.config.random_goal
        habits = sizes.habits + self.config.random_goal
        belief = self.config.belief
        first = beliefs.first_weights(belief.prior, belief.keep, habits)
        counted = self.config.action_rates
        return HOPMemory(
            weights=jnp.broadcast_to(first, (copies, others, habits)),
            counts=jnp.zeros((copies, others, goals), jnp.int8),
            belief=jnp.full((copies, others, goals), 1.0 / max(goals, 1)),
            acted=action_rates.no_counts((copies, others, self.shape.actions)) if counted else None,
        )

    def goals(self, game: Game) -> Goals:
        return goals_of(game, self.config)

    def habits(self, memory: HOPMemory) -> Float[Array, "copy other habit"]:
        """Probabilities of the co-players' habits."""
        belief = self.config.belief
        return beliefs.habit_prior(belief.prior, belief.concentration, memory.weights)

    def prior(self, game: Game, state: State, memory: HOPMemory) -> Float[Array, "copy other goal"]:
        """Probabilities of the co-players' goals, whatever they did in the episode."""
        goals = self.goals(game)
        open_ = jax.vmap(goals.open)(state)[:, 1:]
        return goals.prior(self.habits(memory), memory.counts, open_)

    def persona(self, view: View) -> Int[Array, " copy"]:
        """Its persona in this episode, see `coplay.models.personas`."""
        if not self.learning:
            return jnp.full_like(view.time, NO_PERSONA)
        return self.config.personas.assign(
            self.own_seed, view.episode, self.shape.personas, self.game_seats
        )

    @property
    def own_seed(self) -> PersonaSeed:
        """Of the personas of the seat that acts."""
        if self.persona_seed.seat.ndim == 0:
            return self.persona_seed
        return jax.tree.map(lambda x: x[jax.lax.axis_index(SEATS)], self.persona_seed)

    # --- deciding ------------------------------------------------------------------------------

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory]:
        return self.decide(game, key, view, memory)[:2]

    def decide(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory, Plan | None]:
        """Logits, the new memory, and the plan if it searches."""
        refuse_partial_views(game)
        config = self.config
        plan = None
        if config.has_goals:
            prior = self.prior(game, view.state, memory)
            fresh = jnp.ones_like(view.alive) if not config.belief.intra else view.time == 0
            memory = memory._replace(belief=jnp.where(fresh[:, None, None], prior, memory.belief))
        persona = self.persona(view)
        if config.planner == "none":
            logits = self.actor(self.situation(game, view, memory, persona))
        else:
            plan, logits = self.plan(game, key, view, memory, persona)
        if self.learning:
            at_random = config.personas.rates(self.own_seed, view.episode, logits.shape[-1])
            logits = jnp.where((persona == self.shape.personas)[:, None], at_random, logits)
        # The best of a mixture is no safer than any action.
        if self.greedy and not (config.planner == "search" and config.search.others == "worst"):
            logits = categorical.greedy(logits, view.observation.legal)
        return logits, memory, plan

    def situation(
        self, game: Game, view: View, memory: Memory, persona: Int[Array, " copy"]
    ) -> Float[Array, "copy input"]:
        """What the actor sees: the ego view, the own persona, and what is believed of the others
        (`belief_context`)."""
        goals = self.goals(game) if self.config.has_goals else None
        belief, rates = self.record(memory) or (jnp.zeros((*view.time.shape, 0, 0)), None)
        context = belief_context(
            game, view.state, goals, belief, rates, persona, self.shape.personas
        )
        return flatten(view.observation, context)

    def plan(
        self,
        game: Game,
        key: PRNGKeyArray,
        view: View,
        memory: Memory,
        persona: Int[Array, " copy"],
    ) -> tuple[Plan, Float[Array, "copy action"]]:
        """Q of every action: the mean of one search per sample of goals, or one search for all
        samples; and logits. Trees are [draw * copy]."""
        config, copies = self.config, view.alive.shape[0]
        trees = config.search.trees
        seed_key, goal_key = jax.random.split(key)
        seeds = jax.random.bits(seed_key, (trees * copies,), jnp.uint32)
        state = for_each_draw(view.state, trees)
        hypothesis: Any = ()
        rates = None
        habits = belief = jnp.zeros((trees * copies, self.game_seats - 1, 0))
        if config.has_goals:
            belief, counts, habits, rates = for_each_draw(
                (memory.belief, memory.counts, self.habits(memory), rates_of(memory)), trees
            )
            uniform = jax.random.uniform(goal_key, (belief.shape[0] * belief.shape[1],))
            hypothesis = GoalHypothesis(
                sample_goals(uniform.reshape(belief.shape[:2]), belief), counts
            )
        simulator = GoalSimulator(
            self.actor,
            self.critic,
            self.opponents,
            habits,
            belief,
            rates,
            persona=for_each_draw(persona, trees),
            personas=self.shape.personas,
            goals=self.goals(game) if config.has_goals else None,
            random_goal=config.random_goal,
            guides=config.personas.guides,
        )
        how, legal = config.search, view.observation.legal
        if how.others == "worst":
            plan, mixture = cautious_search(
                simulator, game, how, how.trust, state, hypothesis, seeds
            )
            return plan, jnp.log(jnp.maximum(mixture, 1e-30))
        found = search_trees(simulator, game, how, state, hypothesis, seeds)
        plan = plan_of(*found, legal, trees)
        beta = jnp.where(persona == NO_PERSONA, how.beta, config.personas.beta)[:, None]
        return plan, boltzmann(plan.q, legal, beta, how.normalise_q)

    # --- believing -----------------------------------------------------------------------------

    def notice(
        self, game: Game, view: View, after: State, over: Bool[Array, " copy"], memory: Memory
    ) -> Memory:
        config = self.config
        if not config.has_goals:
            return memory
        goals = self.goals(game)
        action = jax.vmap(game.last_actions)(after)[:, 1:].astype(jnp.int32)
        alive = jax.vmap(game.alive)(view.state)[:, 1:]
        belief, acted = memory.belief, memory.acted
        if config.belief.intra:
            likelihood = self.likelihood(game, view.state, action, rates_of(memory))
            prior = self.prior(game, view.state, memory)
            updated = beliefs.after_action(belief, likelihood, config.belief.goal_change, prior)
            belief = jnp.where(alive[..., None], updated, belief)
        if acted is not None:
            legal = jax.vmap(game.observe)(view.state).legal[:, 1:]
            acted = action_rates.with_action(acted, action, legal, belief[..., -1] * alive)
        realised = jax.vmap(goals.realised)(view.state, after)[:, 1:]
        kinds = jnp.arange(belief.shape[-1])
        counts = memory.counts + (realised[..., None] == kinds).astype(jnp.int8)
        memory = memory._replace(counts=counts)
        open_ = jax.vmap(goals.open)(after)[:, 1:]
        prior = self.prior(game, after, memory)
        belief = beliefs.after_step(belief, prior, realised >= 0, open_, config.random_goal)
        weights = memory.weights
        if config.belief.inter and config.goals.source == "prototypes":
            believed = beliefs.with_believed(config.belief.keep, weights, belief)
            weights = jnp.where(over[:, None, None], believed, weights)
        elif config.belief.inter:
            shown = jnp.where(over[:, None], goals.habit(counts), -1)
            chance = jnp.where(over[:, None], belief[..., -1], 0.0) if config.random_goal else 0.0
            weights = beliefs.with_episode(config.belief.keep, weights, shown, chance)
        counts = jnp.where(over[:, None, None], 0, counts).astype(jnp.int8)
        # Like habits, what is known of actions fades from episode to episode.
        kept = jnp.where(over, config.belief.keep if config.belief.inter else 0.0, 1.0)
        acted = jax.tree.map(lambda x: x * kept[:, None, None], acted)
        return HOPMemory(weights, counts, belief, acted)

    def record(self, memory: Memory) -> HOPRecord | None:
        """What is believed of the co-players."""
        return HOPRecord(memory.belief, rates_of(memory)) if self.config.has_goals else None

    def insight(self, game: Game, view: View, memory: Memory) -> Insight:
        """Beliefs about goals, and the actions that the models predict, weighted by the beliefs."""
        seen = jax.tree.map(lambda x: x[:, 1:], jax.vmap(game.observe)(view.state))
        if not self.config.has_goals:
            none = jnp.zeros((*seen.legal.shape[:2], 0))
            return Insight(None, jnp.exp(predict_others(self.opponents, seen, none)))
        log_probs = self.predicted(game, view.state, rates_of(memory))
        action = jnp.sum(memory.belief[..., None] * jnp.exp(log_probs), axis=2)
        declared = self.config.goals.source == "declared"
        return Insight(memory.belief[..., : self.shape.goals] if declared else None, action)

    def explain(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory, Insight]:
        logits, memory, plan = self.decide(game, key, view, memory)
        insight = self.insight(game, view, memory)._replace(
            belief=memory.belief if self.config.has_goals else None,
            value=self.critic(self.situation(game, view, memory, self.persona(view)))[..., 0],
            plan=plan,
        )
        return logits, memory, insight

    def candidates(self, game: Game) -> Candidates | None:
        return Candidates(self.goals(game).names) if self.config.has_goals else None

    def predicted(
        self, game: Game, state: State, rates: Float[Array, "copy other action"] | None
    ) -> Float[Array, "copy other goal action"]:
        """Log-probabilities of the actions of each co-player in `state`, for each of its goals;
        rates: of co-players without one."""
        seen = jax.tree.map(lambda x: x[:, 1:], jax.vmap(game.observe)(state))
        goals = goals_without_random(game, self.config)
        features = jax.vmap(goals.features)(state)[:, 1:]  # [copy, other, goal, feature]
        log_probs = jax.vmap(
            lambda goal: predict_others(self.opponents, seen, goal), in_axes=2, out_axes=2
        )(features)
        if not self.config.random_goal:
            return log_probs
        return with_random_goal(log_probs, seen.legal, rates)

    def likelihood(
        self,
        game: Game,
        state: State,
        action: Int[Array, "copy other"],
        rates: Float[Array, "copy other action"] | None,
    ) -> Float[Array, "copy other goal"]:
        """Log-probability of each co-player's action in `state`, for every goal it may have."""
        log_probs = self.predicted(game, state, rates)
        taken = jnp.broadcast_to(action[..., None], log_probs.shape[:-1])
        return categorical.take(log_probs, taken)


def rates_of(memory: HOPMemory) -> Float[Array, "copy other action"] | None:
    """The `log_rates` at which co-players without a goal act; None: they were not counted."""
    return None if memory.acted is None else action_rates.log_rates(memory.acted)


def goals_of(game: Game, config: HOPConfig) -> Goals:
    """What co-players may be after."""
    known = goals_without_random(game, config)
    return WithRandomGoal(known) if config.random_goal else known


def goals_without_random(game: Game, config: HOPConfig) -> Goals:
    """The goals that the game declares, or prototypes; config: resolved, with goals."""
    if config.goals.source == "prototypes":
        return PrototypeGoals(game.seats, config.goals.prototypes)
    assert game.goals is not None
    return game.goals


def check_game_for_hop(game: Game, config: HOPConfig) -> None:
    """An error if HOP cannot learn this game; config: resolved."""
    if isinstance(game, WorkerGame):
        raise UserError(
            f"HOP plans by trying actions on copies of a state, and '{game.name}' runs in worker "
            "processes: train ppo-gru or mappo"
        )
    refuse_partial_views(game)
    if game.seats < 2:
        raise UserError("HOP thinks about co-players: the game needs at least two seats")
    if not game.can_renumber:
        raise UserError(
            f"HOP plans on copies of '{game.name}' with its own seat first, and the seats of this "
            "game cannot be renumbered: give the game `permute_seats` and `can_renumber`, or train "
            "ppo"
        )
    if not game.tells(game.last_actions):
        raise UserError(
            f"HOP learns from what co-players did, and '{game.name}' does not tell: give the game "
            "`last_actions`, or train ppo"
        )
    asks_sides = config.planner == "search" and config.search.others == "worst"
    if asks_sides and not game.tells(game.side_of):
        raise UserError(
            f"search.others worst needs to know who is against whom, and '{game.name}' has teams "
            "but does not tell: give the game `side_of`, or take --search.others model"
        )
    if config.goals.source == "declared" and game.goals is None:
        raise UserError(
            f"'{game.name}' declares no goals: find them by --goals.source prototypes, model "
            "co-players without goals by --goals.source none, or give the game a property `goals`"
        )


def refuse_partial_views(game: Game) -> None:
    """HOP plans on states: it may only where its seat sees all of them."""
    if not game.full_view:
        narrowed = getattr(getattr(game, "config", None), "view", None) is not None
        whole = "show all of it by --game.view None, or " if narrowed else ""
        raise UserError(
            f"HOP plans over the whole state of '{game.name}', but players here see only a part of "
            f"it: {whole}train hop-plus, which learns from what its seat sees and plans by it, or "
            "ppo-gru"
        )
