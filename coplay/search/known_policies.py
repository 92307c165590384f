"""Search among co-players whose policies are known."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from coplay.core.game import Game, Observation, ScriptedPolicy, State
from coplay.nn import categorical
from coplay.search.simulator import Hypothesis, Simulator, advance, begin, co_player_cdf, mix_bits

UNIFORM_SHARE = 0.2
"""How much of the prior is spread over all actions where some are tried first."""


class KnownPolicies(Simulator):
    """Co-players that act by known policies.

    policies: of the co-players in seats 1, 2, … of the states.
    prior_policies: policies whose actions are tried first, each as often; none: all actions evenly.
    playouts: the value of a position is the return of the best of these policies, if it is played
        so many steps from there; 0: values are 0. discount: of rewards in playouts.
    trees: which trees these are, each with a seed of its own in playouts; None: all, in order.
    """

    policies: tuple[ScriptedPolicy, ...] = eqx.field(static=True)
    prior_policies: tuple[ScriptedPolicy, ...] = eqx.field(static=True, default=())
    playouts: int = eqx.field(static=True, default=0)
    discount: float = eqx.field(static=True, default=1.0)
    trees: Int[Array, " tree"] | None = None

    def of_trees(self, trees: Int[Array, " some"]) -> Simulator:
        return dataclasses.replace(self, trees=trees)

    def others(
        self, game: Game, observation: Observation, state: State, hypothesis: Hypothesis
    ) -> Float[Array, "tree other action"]:
        probs = []
        for seat, policy in enumerate(self.policies, 1):
            ego = jax.vmap(game.ego_state, in_axes=(0, None))(state, seat)
            probs.append(jax.vmap(policy, in_axes=(None, 0))(game, ego))
        stacked = jnp.stack(probs, axis=1)
        return jnp.where(stacked > 0, jnp.log(jnp.maximum(stacked, 1e-30)), categorical.NEVER)

    def evaluate(
        self, game: Game, observation: Observation, state: State, hypothesis: Hypothesis
    ) -> tuple[Float[Array, "tree action"], Float[Array, " tree"]]:
        prior = categorical.uniform_policy(observation.legal)
        if self.prior_policies:
            even = jnp.exp(prior)
            usual = sum(
                jax.vmap(policy, in_axes=(None, 0))(game, state) for policy in self.prior_policies
            )
            mixture = UNIFORM_SHARE * even + (1.0 - UNIFORM_SHARE) * usual / len(
                self.prior_policies
            )
            prior = jnp.where(observation.legal, jnp.log(jnp.maximum(mixture, 1e-30)), prior)
        value = jnp.zeros(prior.shape[0])
        if self.playouts and self.prior_policies:
            brought = [self._played_out(game, state, policy) for policy in self.prior_policies]
            value = jnp.max(jnp.stack(brought), axis=0)
        return prior, value

    def _played_out(
        self, game: Game, state: State, policy: ScriptedPolicy
    ) -> Float[Array, " tree"]:
        """The return of one game by this policy, with the same seeds at every position."""
        number = jax.tree.leaves(state)[0].shape[0]
        trees = jnp.arange(number) if self.trees is None else self.trees
        seed = mix_bits(trees.astype(jnp.uint32))
        order = jnp.arange(1, self.playouts + 1, dtype=jnp.uint32)[:, None]
        uniform = (mix_bits(seed + order * jnp.uint32(0x9E3779B1)) >> 8).astype(
            jnp.float32
        ) * 2.0**-24

        def one(carry: tuple, uniform: Float[Array, " tree"]) -> tuple[tuple, None]:
            position, gained, factor = carry
            mine = jax.vmap(policy, in_axes=(None, 0))(game, position.state)
            action = categorical.sample_cdf(uniform, categorical.cdf(mine))
            others = co_player_cdf(self, game, position)
            position, step = advance(self, game, self.discount, position, others, action)
            return (position, gained + factor * step.reward, factor * step.discount), None

        position, _ = begin(self, game, state, (), mix_bits(seed))
        start = (position, jnp.zeros(number), jnp.ones(number))
        return jax.lax.scan(one, start, uniform)[0][1]
