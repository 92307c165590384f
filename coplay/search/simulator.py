"""Planning over the game itself: only the planner's own actions branch, the others act by a model.

A `Simulator` says how the others are expected to act and how good a position looks; the rules are
the game's. Everything is batched: [tree] stands for all game copies and goal draws together. Two
searches share it: `coplay.search.closed_loop` keeps one sampled future per edge, as the paper does;
`coplay.search.open_loop` draws the others' actions anew at each visit.
"""

from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from coplay.core.game import Game, Observation, State
from coplay.nn import categorical

Hypothesis = (
    Any  # what a world believes of the others along a future: a pytree of arrays [tree, ...]
)


class SearchConfig(NamedTuple):
    """How to search.

    simulations: how many. depth: the longest future, in steps. discount: of future rewards.
    exploration: c of PUCT. method: puct or gumbel. resample: draw the others' actions anew at each
    visit. shared: each simulation begins with a mind of its own (`Simulator.resample_hypothesis`),
    so that one
    tree stands for all that may be on the others' minds (only with `resample`). normalise: Q values
    between 0 and 1 among siblings while searching (PUCT). sweep: PUCT first tries every legal
    action of the root once, so that their Q values can be compared. backup: Q of the root from the
    mean of all simulations, as searches count, or from the best future that was found (not with
    `resample`). backend: whose trees, our own or those of mctx (not with `resample`); both find the
    same.
    """

    simulations: int = 32
    depth: int = 8
    discount: float = 0.95
    exploration: float = 1.25
    method: Literal["puct", "gumbel"] = "puct"
    resample: bool = False
    shared: bool = False
    normalise: bool = True
    sweep: bool = True
    backup: Literal["mean", "best"] = "mean"
    backend: Literal["coplay", "mctx"] = "coplay"


class Simulator(eqx.Module):
    """What a planner expects, of trees [tree]. States have the planner in seat 0."""

    def prepared(self, game: Game) -> "Simulator":
        """The same world with all that can be worked out once for a whole search."""
        return self

    def of_trees(self, trees: Int[Array, " some"]) -> "Simulator":
        """The same world for some of the trees: all that is kept by tree, of these."""
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
        """What the others may have in mind instead of `hypothesis`, drawn by `uniform` in [0,
        1)."""
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
        """What is believed of the others after a step; `uniform` in [0, 1) for what must be
        drawn."""
        return hypothesis


class Position(NamedTuple):
    """A point of an imagined future, [tree, ...].

    over: the future has ended for the planner.
    seed: of all that is drawn after this point.
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
    """Well-mixed words (the last steps of MurmurHash3): cheap randomness for imagined futures."""
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
    """What the others are expected to do at a position (`Simulator.others`), ready to be drawn from
    (`categorical.cdf`)."""
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
) -> tuple[Position, SimulatedStep]:
    """One imagined step: the others act as they are `co_player_cdf` to, their actions drawn by the
    position's seed and the own action.

    The same action at the same position always has the same outcome, and different positions and
    actions have independent ones.
    """
    number = others.shape[1]
    seed = mix_bits(position.seed * jnp.uint32(0x9E3779B1) + action.astype(jnp.uint32) + 1)
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
