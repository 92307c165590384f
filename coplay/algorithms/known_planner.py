"""Planners among co-players whose policies they know: what search can do."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from coplay.algorithms.ppo.player import PPOPlayer
from coplay.algorithms.rules import RulePartner
from coplay.core.game import Game, Observation, ScriptedPolicy, State
from coplay.core.player import Insight, Memory, Player, View
from coplay.nn import categorical
from coplay.nn.networks import Network, flatten
from coplay.search.config import SearchConfig
from coplay.search.known_policies import KnownPolicies
from coplay.search.root import for_each_draw, mean_over_draws, plan_of, search, search_trees
from coplay.search.simulator import Hypothesis, Simulator


class KnownPlanner(Player):
    """Searches `search.draws` times, with independent seeds, and takes the action of the best mean
    value.

    policies: of its co-players, the next seat first. prior_policies: policies whose actions it
    tries first. playouts: steps for which these are played from a position to judge it
    (`KnownPolicies`).
    """

    policies: tuple[ScriptedPolicy, ...] = eqx.field(static=True)
    search: SearchConfig = eqx.field(static=True, default=SearchConfig(simulations=32, draws=4))
    prior_policies: tuple[ScriptedPolicy, ...] = eqx.field(static=True, default=())
    playouts: int = eqx.field(static=True, default=0)

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory]:
        return self.explain(game, key, view, memory)[:2]

    def explain(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory, Insight]:
        copies, legal = view.alive.shape[0], view.observation.legal
        trees = self.search.trees
        state = for_each_draw(view.state, trees)
        seeds = jax.random.bits(key, (trees * copies,), jnp.uint32)
        simulator = KnownPolicies(
            self.policies, self.prior_policies, self.playouts, self.search.discount
        )
        found = search_trees(simulator, game, self.search, state, (), seeds)
        plan = plan_of(*found, legal, trees)
        return categorical.greedy(plan.q, legal), memory, Insight(plan=plan)


class KnownPartner(Simulator):
    """Co-players that are one known partner. Own actions and values are those of PPO among them.

    partner: without memory, or one made of rules, of which only the preference is known.
    """

    partner: PPOPlayer | RulePartner
    actor: Network
    critic: Network

    def others(
        self, game: Game, observation: Observation, state: State, hypothesis: Hypothesis
    ) -> Float[Array, "tree other action"]:
        theirs = jax.tree.map(lambda x: x[:, 1:], observation)
        if isinstance(self.partner, PPOPlayer):
            return categorical.log_policy(self.partner.actor(flatten(theirs)), theirs.legal)
        expected = []
        for seat in range(1, game.seats):
            ego = jax.vmap(game.ego_state, in_axes=(0, None))(state, seat)
            expected.append(self.partner.usual(game, ego, theirs.legal[:, seat - 1]))
        return categorical.log_policy(jnp.stack(expected, axis=1), theirs.legal)

    def evaluate(
        self, game: Game, observation: Observation, state: State, hypothesis: Hypothesis
    ) -> tuple[Float[Array, "tree action"], Float[Array, " tree"]]:
        view = flatten(observation)
        return categorical.log_policy(self.actor(view), observation.legal), self.critic(view)[:, 0]


class PartnerPlanner(Player):
    """Searches among co-players that are one known partner, and takes the action of the best mean
    value over the draws."""

    known: KnownPartner
    search: SearchConfig = eqx.field(static=True)

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory]:
        copies, legal = view.alive.shape[0], view.observation.legal
        trees = self.search.trees
        seeds = jax.random.bits(key, (trees * copies,), jnp.uint32)
        state = for_each_draw(view.state, trees)
        found = search(self.known, game, self.search, state, (), seeds)
        return categorical.greedy(mean_over_draws(found, legal, trees), legal), memory
