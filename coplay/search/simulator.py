"""Planning over the game itself: only the planner's own actions branch, the others act by a model.

A `Simulator` says how the others are expected to act and how good a position looks; the rules are
the game's. Everything is batched: [tree] stands for all game copies and samples of goals
together. Two searches share it: `coplay.search.closed_loop` keeps one sampled future per edge, as
the paper does; `coplay.search.open_loop` samples the others' actions at each visit.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from coplay.core.game import Game, Observation, State
from coplay.nn import categorical

Hypothesis = Any
"""What a simulator assumes of the others along a future: a pytree of arrays [tree, ...]."""


class Simulator(eqx.Module):
    """What a planner expects, of trees [tree]. States have the planner in seat 0."""

    def prepared(self, game: Game) -> "Simulator":
        """The same simulator with all that can be computed once for a whole search."""
        return self

    def of_trees(self, trees: Int[Array, " some"]) -> "Simulator":
        """The same simulator for some of the trees: what it keeps per tree, of these trees."""
        return self

    def others(
        self, game: Game, observation: Observation, state: State, hypothesis: Hypothesis
    ) -> Float[Array, "tree other action"]:
        """Log-probabilities of the co-players' actions; `observation` of all seats."""
        raise NotImplementedError

    def evaluate(
        self, game: Game, observation: Observation, state: State, hypothesis: Hypothesis
    ) -> tuple[Float[Array, "tree action"], Float[Array, " tree"]]:
        """Log-probabilities of own actions to be tried, and the value of the state."""
        raise NotImplementedError

    def resample_hypothesis(
        self, uniform: Float[Array, "tree other"], hypothesis: Hypothesis
    ) -> Hypothesis:
        """Another hypothesis of the same root, sampled by `uniform` in [0, 1)."""
        return hypothesis

    def planner_reward(
        self, game: Game, state: State, after: State, reward: Float[Array, " tree"]
    ) -> Float[Array, " tree"]:
        """What a step that brought `reward` is worth to the planner."""
        return reward

    def update_hypothesis(
        self,
        game: Game,
        uniform: Float[Array, "tree other"],
        state: State,
        after: State,
        hypothesis: Hypothesis,
    ) -> Hypothesis:
        """The hypothesis after a step; `uniform` in [0, 1) for what must be sampled."""
        return hypothesis


class Position(NamedTuple):
    """A point of a simulated future, [tree, ...].

    over: the future has ended for the planner.
    seed: of all that is sampled after this point.
    """

    state: State
    hypothesis: Hypothesis
    over: Bool[Array, " tree"]
    seed: UInt32[Array, " tree"]


class SimulatedStep(NamedTuple):
    """What an action led to, [tree, ...]. discount: 0 where the future ends."""

    reward: Float[Array, " tree"]
    discount: Float[Array, " tree"]
    observation: Observation


class RootValues(NamedTuple):
    """What a search found. q, visits: [tree, action] of the root; q of unvisited ones is 0."""

    q: Float[Array, "tree action"]
    visits: Float[Array, "tree action"]


def mix_bits(words: UInt32[Array, "*shape"]) -> UInt32[Array, "*shape"]:
    """Well-mixed words (the last steps of MurmurHash3): cheap randomness for simulated futures."""
    words = (words ^ (words >> 16)) * jnp.uint32(0x85EBCA6B)
    words = (words ^ (words >> 13)) * jnp.uint32(0xC2B2AE35)
    return words ^ (words >> 16)


def begin(
    simulator: Simulator,
    game: Game,
    state: State,
    hypothesis: Hypothesis,
    seed: UInt32[Array, " tree"],
) -> tuple[Position, Observation]:
    """The position from which to search, and the ego views of all seats there."""
    over = ~jax.vmap(game.alive)(state)[:, 0]
    return Position(state, hypothesis, over, seed), jax.vmap(game.observe)(state)


def co_player_cdf(
    simulator: Simulator, game: Game, position: Position
) -> Float[Array, "tree other action"]:
    """What the others are expected to do at a position (`Simulator.others`), as the cdf to sample
    from."""
    state = position.state
    others = simulator.others(game, jax.vmap(game.observe)(state), state, position.hypothesis)
    return categorical.cdf(jnp.exp(others))


def advance(
    simulator: Simulator,
    game: Game,
    discount: float,
    position: Position,
    others: Float[Array, "tree other action"],
    action: Int[Array, " tree"],
    scenarios: bool = False,
) -> tuple[Position, SimulatedStep]:
    """One simulated step. The others' actions are sampled from `others` (`co_player_cdf`), by the
    position's seed and the own action.

    The same action at the same position always has the same outcome, and different positions and
    actions have independent ones. scenarios: the numbers that are sampled by depend on the root's
    seed and the depth alone.
    """
    number = others.shape[1]
    chosen = jnp.zeros_like(action) if scenarios else action
    seed = mix_bits(position.seed * jnp.uint32(0x9E3779B1) + chosen.astype(jnp.uint32) + 1)
    order = jnp.arange(1, 2 * number + 3, dtype=jnp.uint32)
    words = mix_bits(seed[:, None] + order * jnp.uint32(0x9E3779B1))
    uniform = (words[:, 2:] >> 8).astype(jnp.float32) * 2.0**-24
    joint = jnp.concatenate(
        [action[:, None], categorical.sample_cdf(uniform[:, :number], others)], axis=1
    )
    keys = jax.random.wrap_key_data(words[:, :2], impl="threefry2x32")
    after, outcome = jax.vmap(game.step)(keys, position.state, joint)
    hypothesis = simulator.update_hypothesis(
        game, uniform[:, number:], position.state, after, position.hypothesis
    )
    # The horizon is the end for a planner: nothing that would come later is ever received.
    over = position.over | outcome.truncated | ~jax.vmap(game.alive)(after)[:, 0]
    planner_reward = simulator.planner_reward(game, position.state, after, outcome.reward[:, 0])
    reward = jnp.where(position.over, 0.0, planner_reward)
    step = SimulatedStep(reward, jnp.where(over, 0.0, discount), jax.vmap(game.observe)(after))
    return Position(after, hypothesis, over, seed), step


def own_view(observation: Observation) -> Observation:
    """The planner's ego view among those of all seats [tree, seat, ...]."""
    return jax.tree.map(lambda x: x[:, 0], observation)
