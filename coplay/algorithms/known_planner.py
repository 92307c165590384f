"""A planner among co-players whose policies it knows: what search alone can do."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from coplay.core.game import Game, ScriptedPolicy
from coplay.core.player import Insight, Memory, Player, View
from coplay.nn import categorical
from coplay.search.config import SearchConfig
from coplay.search.known_policies import KnownPolicies
from coplay.search.root import for_each_draw, plan_of, search_trees


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
