"""Codes as normal distributions, and two ways to infer them from the past: prototypes and a GRU."""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from coplay.nn import categorical
from coplay.nn.networks import Network
from coplay.nn.recurrent import GRUNetwork


class Code(NamedTuple):
    """A normal distribution of codes with independent numbers."""

    mean: Float[Array, "*batch code"]
    log_variance: Float[Array, "*batch code"]

    def draw(self, noise: Float[Array, "*batch code"]) -> Float[Array, "*batch code"]:
        """A code, from standard normal noise."""
        return self.mean + jnp.exp(0.5 * self.log_variance) * noise


def split_code(numbers: Float[Array, "*batch both"]) -> Code:
    """A network's output as a code."""
    mean, spread = jnp.split(numbers, 2, axis=-1)
    return Code(mean, log_variance(spread))


def log_variance(spread: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Variances are kept between e⁻¹⁰ and e⁴."""
    return -3.0 + 7.0 * jnp.tanh(spread / 7.0)


def kl_codes(code: Code, other: Code | None = None) -> Float[Array, "*batch"]:
    """KL(code || other); without another: KL(code || N(0, 1))."""
    if other is None:
        other = Code(jnp.zeros_like(code.mean), jnp.zeros_like(code.mean))
    ratio = jnp.exp(code.log_variance - other.log_variance)
    apart = jnp.square(code.mean - other.mean) * jnp.exp(-other.log_variance)
    each = ratio + apart - 1.0 - (code.log_variance - other.log_variance)
    return 0.5 * jnp.sum(each, axis=-1)


FORGET = 8.0  # a prototype never falls farther behind the best one than this, in nats
SURPRISE = 8.0  # no single action speaks louder than this against a prototype


class Prototypes(eqx.Module):
    """Codes of which one explains a whole life. What is remembered of a player is, for each of
    them, by how many nats it has foreseen the player's actions worse than the best one.

    numbers: the codes, in units of √code. prior: log-probabilities but for a constant. spread: of
    every prototype, as `log_variance` takes it.
    """

    numbers: Float[Array, "prototype code"]
    prior: Float[Array, " prototype"]
    spread: Float[Array, " code"]

    def __init__(self, count: int, code: int, key: PRNGKeyArray):
        self.numbers = jax.random.normal(key, (count * code,)).reshape(count, code) / math.sqrt(
            code
        )
        self.prior, self.spread = jnp.zeros(count), jnp.zeros(code)

    @property
    def codes(self) -> Float[Array, "prototype code"]:
        return self.numbers * math.sqrt(self.numbers.shape[1])

    def weigh(
        self,
        memory: Float[Array, "*batch prototype"],
        likely: Float[Array, "*batch prototype"],
    ) -> Float[Array, "*batch prototype"]:
        """The memory after an action that each prototype gave this log-probability. What was seen
        long ago can be outweighed: players may change."""
        after = memory + jnp.maximum(likely, -SURPRISE)
        return jnp.maximum(after - jnp.max(after, axis=-1, keepdims=True), -FORGET)

    def weights(self, memory: Float[Array, "*batch prototype"]) -> Float[Array, "*batch prototype"]:
        """How probable each prototype is. Learned by how well it foresees, and not by where it
        lies."""
        return jax.nn.softmax(jax.lax.stop_gradient(self.prior + memory), axis=-1)

    def sample(
        self, uniform: Float[Array, "*batch"], memory: Float[Array, "*#batch prototype"]
    ) -> Float[Array, "*batch code"]:
        """Prototypes as probable as they are, by `uniform` in [0, 1)."""
        ends = categorical.cdf(self.weights(memory))
        ends = jnp.broadcast_to(ends, (*uniform.shape, ends.shape[-1]))
        return self.codes[categorical.sample_cdf(uniform, ends)]

    def infer(self, memory: Float[Array, "*batch prototype"]) -> Code:
        """Mean and variances of the mixture."""
        weight = self.weights(memory)
        mean = weight @ self.codes
        apart = weight @ jnp.square(self.codes) - jnp.square(mean)
        own = jnp.exp(log_variance(self.spread))
        return Code(mean, jnp.log(own + jnp.maximum(apart, 0.0)))


TELLS = 16  # numbers that the board says of each action


class Recurrent(eqx.Module):
    """A GRU over (board, joint action). What an action says about a player depends on the board, so
    a network gives `TELLS` numbers for each action, and the memory takes in those of the action
    that was taken."""

    telling: Network
    memory: GRUNetwork
    inferred: Network
