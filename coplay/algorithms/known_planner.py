"""A planner among co-players whose policies it is told: what search alone can do."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from coplay.core.game import Game, ScriptedPolicy
from coplay.core.player import Memory, Player, View
from coplay.nn import categorical
from coplay.search.known_policies import KnownPolicies
from coplay.search.root import mean_over_draws, search
from coplay.search.simulator import SearchConfig


class KnownPlanner(Player):
    """Searches `draws` times, each with other luck, and takes the action of the best mean value.

    policies: of its co-players, the next seat first. habits: policies whose actions it tries first.
    playouts: steps for which habits are played from a position to judge it (`KnownPolicies`).
    """

    policies: tuple[ScriptedPolicy, ...] = eqx.field(static=True)
    search: SearchConfig = eqx.field(static=True, default=SearchConfig())
    draws: int = eqx.field(static=True, default=4)
    prior_policies: tuple[ScriptedPolicy, ...] = eqx.field(static=True, default=())
    playouts: int = eqx.field(static=True, default=0)

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory]:
        copies, legal = view.alive.shape[0], view.observation.legal
        state = jax.tree.map(
            lambda x: jnp.broadcast_to(x, (self.draws, *x.shape)).reshape(-1, *x.shape[1:]),
            view.state,
        )
        seeds = jax.random.bits(key, (self.draws * copies,), jnp.uint32)
        simulator = KnownPolicies(
            self.policies, self.prior_policies, self.playouts, self.search.discount
        )
        found = search(simulator, game, self.search, state, (), seeds)
        return categorical.greedy(mean_over_draws(found, legal, self.draws), legal), memory
