"""A belief about what is out of sight: full states that agree with what a seat saw (particles).

Bayes' rule by sampling, as in POMCP. A particle is a full state with the own seat first, and what
the goal model remembers of each co-player if that was what it saw. In every step:

    weight *= Π_j π(a_j | what j saw in the particle, goal of j)     what the co-players did
    state = game.step(state, what all did)
    weight *= [the own view and reward are those that were seen]

What was seen is mended into particles that do not agree with it, or rejection would leave none.
Such a particle counts `MENDED` nats less: it matters only where hardly any other agrees. If few
particles have all the weight, particles are drawn anew by their weights.

Nothing is read but the own view, the own reward, and the rules.
"""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray, Shaped

from coplay.core.game import Game, Observation, State
from coplay.core.hidden import HiddenStates, Imagined

MENDED = 8.0  # nats by which a particle counts less that had to be mended
SURPRISE = 5.0  # no single action counts more nats than this against a particle
CLOSE = 1e-4  # rewards and numbers of views this close are the same
FEWEST = 0.5  # drawn anew if the weights are worth less than this share of all particles

Memory = Any
"""What is remembered of co-players: a pytree of arrays [row, other, ...]."""


class Particles(NamedTuple):
    """A belief, [copy, particle, ...].

    imagined: the states. log_weight: up to a constant. memory: of the co-players, in each state.
    agreeing: [copy] the share of particles that agreed with what was seen last.
    """

    imagined: Imagined
    log_weight: Float[Array, "copy particle"]
    memory: Memory
    agreeing: Float[Array, " copy"]

    @property
    def weights(self) -> Float[Array, "copy particle"]:
        """Probabilities of the particles."""
        return jax.nn.softmax(self.log_weight, axis=1)

    @property
    def effective(self) -> Float[Array, " copy"]:
        """How many particles of equal weight the belief is worth."""
        return 1.0 / jnp.sum(jnp.square(self.weights), axis=1)


class CoPlayers(eqx.Module):
    """How co-players are expected to act, by what they see in a state."""

    def judge(
        self, views: Observation, joint: Integer[Array, "row other seat"], memory: Memory
    ) -> tuple[Float[Array, "row other"], Memory]:
        """Log-probabilities of what they did, and the memory after it. views: [row, other, ...]
        before the step. joint: what all did, each co-player itself first."""
        raise NotImplementedError


def hidden_states(game: Game) -> HiddenStates:
    """How the game imagines what a seat does not see; only for games that say it."""
    found: HiddenStates | None = game.hidden
    assert found is not None
    return found


def begin(
    game: Game, key: PRNGKeyArray, seen: Observation, memory: Memory, number: int
) -> Particles:
    """A belief about the first states of episodes. seen: own views [copy, ...]. memory: [copy,
    particle, other, ...] to begin with."""
    copies = seen.legal.shape[0]
    keys = jax.random.split(key, copies * number).reshape(copies, number)
    start = jax.vmap(jax.vmap(hidden_states(game).begin, (0, None)))
    return Particles(start(keys, seen), jnp.zeros((copies, number)), memory, jnp.ones(copies))


def follow(
    game: Game,
    co_players: CoPlayers,
    key: PRNGKeyArray,
    particles: Particles,
    seen: Observation,
    own_reward: Float[Array, " copy"],
) -> Particles:
    """The belief after a step. seen: the own views after it. own_reward: what it brought."""
    hidden = hidden_states(game)
    copies, number = particles.log_weight.shape
    step_key, draw_key = jax.random.split(key)
    keys = jax.random.split(step_key, 3 * copies * number).reshape(3, copies, number)

    def by_row(x: Shaped[Array, "copy particle *rest"]) -> Shaped[Array, "row *rest"]:
        return x.reshape(copies * number, *x.shape[2:])

    def by_particle(x: Shaped[Array, "row *rest"]) -> Shaped[Array, "copy particle *rest"]:
        return x.reshape(copies, number, *x.shape[1:])

    joint = jax.vmap(hidden.told)(seen)
    possible = jax.vmap(jax.vmap(hidden.allow, (0, 0, None)))(keys[0], particles.imagined, joint)
    changed = _differ(possible, particles.imagined)

    state = jax.tree.map(by_row, possible.state)
    views = jax.tree.map(lambda x: x[:, 1:], jax.vmap(game.observe)(state))
    memory = jax.tree.map(by_row, particles.memory)
    rows = jnp.repeat(joint, number, axis=0)
    seats = game.seats
    theirs = rows[:, (np.arange(1, seats)[:, None] + np.arange(seats)) % seats]
    likelihood, new_memory = co_players.judge(views, theirs, memory)
    acted = jax.vmap(game.alive)(state)[:, 1:]
    likelihood = jnp.where(acted, jnp.maximum(likelihood, -SURPRISE), 0.0)
    new_memory = jax.tree.map(
        lambda new, old: jnp.where(acted.reshape(*acted.shape, *(1,) * (new.ndim - 2)), new, old),
        new_memory,
        memory,
    )

    after, outcome = jax.vmap(game.step)(keys[1].reshape(-1), state, rows)
    stepped = possible._replace(state=jax.tree.map(by_particle, after))
    agrees = ~changed & _sees(game, stepped.state, seen)
    agrees &= jnp.abs(by_particle(outcome.reward[:, 0]) - own_reward[:, None]) < CLOSE
    mended = jax.vmap(jax.vmap(hidden.mend, (0, 0, None)))(keys[2], stepped, seen)
    log_weight = (
        particles.log_weight
        + by_particle(jnp.sum(likelihood, axis=1))
        - jnp.where(agrees, 0.0, MENDED)
    )
    found = Particles(
        mended,
        log_weight - jax.nn.logsumexp(log_weight, axis=1, keepdims=True),
        jax.tree.map(by_particle, new_memory),
        jnp.mean(agrees, axis=1),
    )
    return _drawn_anew(draw_key, found)


def draw(key: PRNGKeyArray, particles: Particles, number: int) -> tuple[State, Memory]:
    """States and memories [draw, copy, ...] by their weights, as evenly as they can be drawn."""
    chosen = _by_weight(key, particles.weights, number)
    found = _picked((particles.imagined.state, particles.memory), chosen)
    return jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), found)


def _drawn_anew(key: PRNGKeyArray, particles: Particles) -> Particles:
    """With equal weights again, in game copies in which they are worth few particles."""
    copies, number = particles.log_weight.shape
    few = (particles.effective < FEWEST * number)[:, None]
    chosen = jnp.where(few, _by_weight(key, particles.weights, number), jnp.arange(number))
    imagined, memory = _picked((particles.imagined, particles.memory), chosen)
    even = jnp.full((copies, number), -math.log(number))
    return particles._replace(
        imagined=imagined, memory=memory, log_weight=jnp.where(few, even, particles.log_weight)
    )


def _by_weight(
    key: PRNGKeyArray, weights: Float[Array, "copy particle"], number: int
) -> Int[Array, "copy drawn"]:
    """So many particles of each copy by their weights: systematic resampling."""
    copies, particles = weights.shape
    start = jax.random.uniform(key, (copies,))
    target = (jnp.arange(number) + start[:, None]) / number
    ends = jnp.cumsum(weights, axis=1)
    ends = ends / ends[:, -1:]
    found = jnp.sum(ends[:, None, :] <= target[:, :, None], axis=2)
    return jnp.minimum(found, particles - 1)


def _picked(tree: Any, chosen: Int[Array, "copy drawn"]) -> Any:
    return jax.tree.map(lambda x: jax.vmap(lambda row, index: row[index])(x, chosen), tree)


def _differ(one: Imagined, other: Imagined) -> Bool[Array, "copy particle"]:
    """Which particles differ in anything."""
    parts = [
        jnp.any((x != y).reshape(*x.shape[:2], -1), axis=2)
        for x, y in zip(jax.tree.leaves(one.state), jax.tree.leaves(other.state), strict=True)
    ]
    return jnp.any(jnp.stack(parts), axis=0)


def _sees(game: Game, state: State, seen: Observation) -> Bool[Array, "copy particle"]:
    """In which states [copy, particle, ...] the own view is `seen` [copy, ...]."""
    views = jax.vmap(jax.vmap(game.observe))(state)

    def alike(mine: Array, wanted: Array) -> Bool[Array, "copy particle"]:
        apart = jnp.abs(mine[:, :, 0].astype(jnp.float32) - wanted[:, None].astype(jnp.float32))
        return jnp.max(apart.reshape(*apart.shape[:2], -1), axis=2, initial=0.0) < CLOSE

    agrees = alike(views.planes, seen.planes) & alike(views.features, seen.features)
    return agrees & alike(views.legal, seen.legal)
