"""Search where views do not show everything: over sampled states that agree with what was seen.

The player keeps a belief of particles (`coplay.models.particles`): full states that its own views
allow. A search starts from some of them, and the values of actions are averaged:

    Q(a) = mean over draws (state s, goals z) of Q(a | s, z)

In a tree co-players act by the opponent model, each by its own view in the imagined state. The own
actor and critic are given the own view there, and the codes that the history tells, as in training.
The true state is never read.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, PRNGKeyArray

from coplay.algorithms.hop_plus.config import HopPlusConfig
from coplay.algorithms.ppo.embedded import EmbeddedPlayer
from coplay.core.game import Game, Observation, State
from coplay.core.numerics import where_rows
from coplay.core.player import Candidates, Insight, Memory, Plan, View
from coplay.models.code_simulator import CodeSimulator
from coplay.models.goal_codes import GoalModel
from coplay.models.goal_inference import Code, Prototypes
from coplay.models.particles import CoPlayers, Particles, begin, draw, follow, hidden_states
from coplay.nn import categorical
from coplay.nn.networks import Network, flatten
from coplay.search.root import boltzmann, plan_of, search_trees
from coplay.search.simulator import Hypothesis, Simulator


class PlannerMemory(NamedTuple):
    """history: of the encoder of the own history. imagined: the arrays of the imagined states,
    [copy, particle, ...]. log_weight, goals, agreeing: see `Particles`."""

    history: Float[Array, "copy units"]
    imagined: tuple[Array, ...]
    log_weight: Float[Array, "copy particle"]
    goals: Float[Array, "copy particle other memory"]
    agreeing: Float[Array, " copy"]


class PrototypeCoPlayers(CoPlayers):
    """Co-players with unknown prototypes: each particle remembers what they did in it."""

    goals: GoalModel

    def judge(
        self,
        views: Observation,
        joint: Integer[Array, "row other seat"],
        memory: Float[Array, "row other memory"],
    ) -> tuple[Float[Array, "row other"], Float[Array, "row other memory"]]:
        """The mean over the prototypes of a player, by how well they have predicted it so far."""
        inference = self.goals.inference
        assert isinstance(inference, Prototypes)
        evidence = self.goals.evidence(self.goals.see(views), joint)
        weights = jnp.log(jnp.maximum(inference.weights(memory), 1e-30))
        likelihood = jax.nn.logsumexp(evidence + weights, axis=-1)
        return likelihood, inference.update(memory, evidence)

    def expected(
        self, views: Observation, memory: Float[Array, "row other memory"]
    ) -> Float[Array, "row other action"]:
        """Probabilities of their actions, on average over the prototypes."""
        inference, seen = self.goals.inference, self.goals.see(views)
        assert isinstance(inference, Prototypes)
        each = [
            self.goals.predict_actions(
                seen, jnp.broadcast_to(code, (*seen.shape[:-1], *code.shape)), views.legal
            )
            for code in inference.codes
        ]
        return jnp.einsum("rok,kroa->roa", inference.weights(memory), jnp.exp(jnp.stack(each)))


class CodedCoPlayers(CoPlayers):
    """Co-players with the codes that the own history tells; particles remember nothing of them.

    z: [copy, other, code].
    """

    goals: GoalModel
    z: Float[Array, "copy other code"]

    def judge(
        self,
        views: Observation,
        joint: Integer[Array, "row other seat"],
        memory: Float[Array, "row other memory"],
    ) -> tuple[Float[Array, "row other"], Float[Array, "row other memory"]]:
        """By their codes."""
        log_probs = jnp.log(jnp.maximum(self.expected(views, memory), 1e-30))
        return categorical.take(log_probs, joint[..., 0]), memory

    def expected(
        self, views: Observation, memory: Float[Array, "row other memory"]
    ) -> Float[Array, "row other action"]:
        """Probabilities of their actions."""
        z = jnp.repeat(self.z, views.legal.shape[0] // self.z.shape[0], axis=0)
        return jnp.exp(self.goals.predict_actions(self.goals.see(views), z, views.legal))


class ParticleSimulator(CodeSimulator):
    """As `CodeSimulator`; actor and critic are given the codes behind the own view, of all."""

    def prepared(self, game: Game) -> Simulator:
        return self

    def evaluate(
        self, game: Game, observation: Observation, state: State, hypothesis: Hypothesis
    ) -> tuple[Float[Array, "tree action"], Float[Array, " tree"]]:
        codes = self.told.reshape(self.told.shape[0], -1)
        view = jnp.concatenate([flatten(observation, self.identity), codes], axis=-1)
        log_policy = categorical.log_policy(self.actor(view), observation.legal)
        return log_policy, self.critic(view)[..., 0]


class PartialPlanner(EmbeddedPlayer):
    """See the module docstring. arrays: shapes and types of the arrays of an imagined state."""

    critic: Network | None = None
    goals: GoalModel | None = None
    config: HopPlusConfig = eqx.field(static=True, default=HopPlusConfig())
    arrays: tuple[tuple[tuple[int, ...], str], ...] = eqx.field(static=True, default=())
    others: int = eqx.field(static=True, default=1)

    @property
    def number(self) -> int:
        """How many particles it has."""
        return self.config.particles.number

    @property
    def by_prototypes(self) -> bool:
        """Whether particles tell the goals of co-players."""
        return self.config.particles.goals == "particle"

    def start(self, copies: int) -> Memory:
        assert self.goals is not None
        size = (copies, self.number)
        return PlannerMemory(
            super().start(copies),
            tuple(jnp.zeros((*size, *shape), dtype) for shape, dtype in self.arrays),
            jnp.zeros(size),
            jnp.zeros((*size, self.others, self.goals.memory_size)),
            jnp.zeros(copies),
        )

    # --- the belief ----------------------------------------------------------------------------

    def held(self, game: Game, view: View, memory: PlannerMemory) -> Particles:
        """The belief that a memory holds."""
        some = jax.tree.map(lambda x: x[0], view.observation)
        kind = jax.eval_shape(hidden_states(game).begin, jax.random.key(0), some)
        imagined = jax.tree.unflatten(jax.tree.structure(kind), memory.imagined)
        return Particles(imagined, memory.log_weight, memory.goals, memory.agreeing)

    def believe(
        self,
        game: Game,
        key: PRNGKeyArray,
        view: View,
        memory: PlannerMemory,
        known: Float[Array, "copy other code"],
    ) -> Particles:
        """The belief with the current view. known: the codes when it decided last."""
        begin_key, follow_key, keep_key = jax.random.split(key, 3)
        old, seen = self.held(game, view, memory), view.observation
        followed = follow(game, self.co_players(known), follow_key, old, seen, view.last_reward)
        first = view.time == 0

        def fresh() -> Particles:
            kept = jnp.zeros_like(old.memory)
            if self.keep:
                kept = jnp.swapaxes(draw(keep_key, old, self.number)[1], 0, 1)
            return begin(game, begin_key, seen, kept, self.number)

        # Of many game copies some begin in most steps; a single one hardly ever does.
        begun = jax.lax.cond(jnp.any(first), fresh, lambda: followed)
        return where_rows(first, begun, where_rows(view.alive, followed, old))

    def co_players(
        self, known: Float[Array, "copy other code"]
    ) -> PrototypeCoPlayers | CodedCoPlayers:
        """How co-players are expected to act."""
        assert self.goals is not None
        return (
            PrototypeCoPlayers(self.goals)
            if self.by_prototypes
            else CodedCoPlayers(self.goals, known)
        )

    # --- deciding ------------------------------------------------------------------------------

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory]:
        return self.decide(game, key, view, memory)[:2]

    def decide(
        self, game: Game, key: PRNGKeyArray, view: View, memory: PlannerMemory
    ) -> tuple[Float[Array, "copy action"], PlannerMemory, Plan]:
        """Logits, the new memory, and the plan."""
        belief_key, draw_key, seed_key = jax.random.split(key, 3)
        before = self.codes(self.encoder.head(memory.history))
        embedding, history = self.embed(view, memory.history)
        belief = self.believe(game, belief_key, view, memory, before)
        plan = self.plan(game, draw_key, seed_key, view, belief, self.codes(embedding))
        legal, how = view.observation.legal, self.config.search
        logits = boltzmann(plan.q, legal, how.beta, how.normalise_q)
        if self.greedy:
            logits = categorical.greedy(logits, legal)
        leaves = tuple(jax.tree.leaves(belief.imagined))
        memory = PlannerMemory(history, leaves, belief.log_weight, belief.memory, belief.agreeing)
        return logits, memory, plan

    def codes(self, embedding: Float[Array, "copy all"]) -> Float[Array, "copy other code"]:
        """The code of each co-player, the next seat first."""
        return embedding.reshape(embedding.shape[0], self.others, -1)

    def plan(
        self,
        game: Game,
        draw_key: PRNGKeyArray,
        seed_key: PRNGKeyArray,
        view: View,
        belief: Particles,
        known: Float[Array, "copy other code"],
    ) -> Plan:
        """Q of every action: the mean of one search per state and codes drawn."""
        config, copies, draws = self.config, view.alive.shape[0], self.config.search.draws
        goals, (actor, critic) = self.goals, (self.actor, self.critic)
        assert goals is not None and critic is not None
        state_key, code_key = jax.random.split(draw_key)
        state, memory = draw(state_key, belief, draws)
        known = jnp.tile(known, (draws, 1, 1))
        z = known
        if self.by_prototypes:
            nothing = Code(known, jnp.zeros_like(known))
            memory = memory.reshape(-1, *memory.shape[2:])
            z = goals.inference.sample(code_key, 1, memory, nothing)[0]
        simulator = ParticleSimulator(actor, critic, goals, self.identity, z, known, None, True)
        seeds = jax.random.bits(seed_key, (draws * copies,), jnp.uint32)
        state = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), state)
        how = config.search_config(game.actions)
        found = search_trees(simulator, game, how, state, (), seeds)
        return plan_of(*found, view.observation.legal, draws)

    # --- telling -------------------------------------------------------------------------------

    def insight(self, game: Game, view: View, memory: Memory) -> Insight:
        """What the others do, on average over the particles; how good the belief is."""
        belief, known = self.held(game, view, memory), self.encoder.head(memory.history)
        copies, number = belief.log_weight.shape
        rows = jax.tree.map(
            lambda x: x.reshape(copies * number, *x.shape[2:]),
            (belief.imagined.state, belief.memory),
        )
        views = jax.tree.map(lambda x: x[:, 1:], jax.vmap(game.observe)(rows[0]))
        expected = self.co_players(self.codes(known)).expected(views, rows[1])
        expected = expected.reshape(copies, number, *expected.shape[1:])
        action = jnp.einsum("cp,cpoa->coa", belief.weights, expected)
        figures = {"particles agreeing": belief.agreeing, "particles worth": belief.effective}
        return Insight(action=action, figures=figures)

    def explain(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory, Insight]:
        logits, after, plan = self.decide(game, key, view, memory)
        about = self.insight(game, view, after)
        embedding = self.encoder.head(after.history)
        assert self.critic is not None and self.goals is not None
        seen = jnp.concatenate([flatten(view.observation, self.identity), embedding], axis=-1)
        belief = None
        if self.candidates(game) is not None:
            assert isinstance(self.goals.inference, Prototypes)
            held = self.held(game, view, after)
            each = self.goals.inference.weights(held.memory)
            belief = jnp.einsum("cp,cpok->cok", held.weights, each)
        return (
            logits,
            after,
            about._replace(belief=belief, value=self.critic(seen)[..., 0], plan=plan),
        )

    def candidates(self, game: Game) -> Candidates | None:
        """The prototypes, if particles tell goals."""
        if not self.by_prototypes or self.goals is None:
            return None
        inference = self.goals.inference
        assert isinstance(inference, Prototypes)
        names = tuple(f"prototype {index}" for index in range(inference.numbers.shape[-2]))
        return Candidates(names, inference.codes)
