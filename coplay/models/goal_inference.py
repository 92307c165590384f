"""Goal codes as normal distributions, and how they are inferred from the past.

`GoalInference` is what a goal model asks. It has two forms: `Prototypes` (a Bayes filter over a few
learned codes) and `RecurrentInference` (a GRU).
"""

import math
from abc import abstractmethod
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from coplay.core.numerics import masked_mean
from coplay.nn import categorical
from coplay.nn.conditioned import GatedPolicy
from coplay.nn.equivariant import EquivariantPolicy
from coplay.nn.networks import Network
from coplay.nn.recurrent import GRUNetwork

OpponentModel = EquivariantPolicy | GatedPolicy


class Code(NamedTuple):
    """A normal distribution of codes with independent numbers."""

    mean: Float[Array, "*batch code"]
    log_variance: Float[Array, "*batch code"]

    @property
    def deviation(self) -> Float[Array, "*batch code"]:
        """The standard deviations."""
        return jnp.exp(0.5 * self.log_variance)

    def sample(self, noise: Float[Array, "*batch code"]) -> Float[Array, "*batch code"]:
        """A code, from standard normal noise."""
        return self.mean + self.deviation * noise


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


class ChunkMemory(NamedTuple):
    """Which steps of chunks belong to which memory.

    start: the memory before the first slot. first: a segment begins, the memory before it is given
    up. alive: the slot holds a step of a player in the game; other slots leave the memory as it is.
    begin: with which memory the segment begins, where one does; None: without any.
    """

    start: Float[Array, "chunk memory"]
    first: Bool[Array, "chunk slot"]
    alive: Bool[Array, "chunk slot"]
    begin: Float[Array, "chunk slot memory"] | None = None

    def begun(self, memory: Float[Array, "chunk slot memory"]) -> Float[Array, "chunk slot memory"]:
        """Memories before steps, where segments begin those with which they do."""
        return jnp.where(self.first[..., None], 0.0 if self.begin is None else self.begin, memory)


class GoalInference(eqx.Module):
    """Infers the code of a player's goal from its past.

    The memory of a player is a vector, of zeros before its first step. Every step gives `evidence`,
    which does not depend on the memory, so it is computed for many steps at once.
    """

    predicts_later: eqx.AbstractClassVar[bool]
    """Whether inferred codes also learn from the actions of later steps."""

    @property
    @abstractmethod
    def memory_size(self) -> int:
        """How many numbers are remembered of a player."""

    @abstractmethod
    def evidence(
        self,
        opponent: OpponentModel,
        seen: Float[Array, "*batch inputs"],
        joint: Integer[Array, "*batch seat"],
    ) -> Float[Array, "*batch evidence"]:
        """What steps show of players. opponent: the opponent model. seen: the players' views, as
        `GoalModel.see` gives them. joint: what all did, ego-first."""

    @abstractmethod
    def update(
        self, memory: Float[Array, "*batch memory"], evidence: Float[Array, "*batch evidence"]
    ) -> Float[Array, "*batch memory"]:
        """The memory after a step."""

    @abstractmethod
    def unroll(
        self, evidence: Float[Array, "chunk slot evidence"], past: ChunkMemory
    ) -> Float[Array, "chunk slot memory"]:
        """The memory after each step of chunks."""

    @abstractmethod
    def infer(
        self, memory: Float[Array, "*batch memory"], seen: Float[Array, "*batch inputs"]
    ) -> Code:
        """The code of a player's goal, from its memory and its current view."""

    @abstractmethod
    def sample(
        self, key: PRNGKeyArray, number: int, memory: Float[Array, "copy other memory"], code: Code
    ) -> Float[Array, "number copy other code"]:
        """Codes that players may have, to plan with. code: as `infer` gave it."""

    @abstractmethod
    def sample_groups(
        self, key: PRNGKeyArray, shape: tuple[int, int], players: int
    ) -> Float[Array, "time copy player code"]:
        """Codes of groups of so many unknown players, to imagine games with."""

    @abstractmethod
    def training_code(
        self, code: Code, noise: Float[Array, "*batch code"]
    ) -> Float[Array, "*batch code"]:
        """The code by which the opponent model learns, from an inferred one and normal noise."""

    def loss(
        self, evidence: Float[Array, "chunk slot evidence"], past: ChunkMemory
    ) -> dict[str, Float[Array, ""]]:
        """Losses of the inference alone, by their names."""
        return {}


FORGET = 5.0  # a prototype never falls farther behind the best one than this, in nats
SURPRISE = 8.0  # no single action counts more than this against a prototype


class Prototypes(GoalInference):
    """Codes of which one explains all actions of a segment. The memory of a player holds, for each
    of them, by how many nats it has predicted the player's actions worse than the best one.

    numbers: the codes, in units of √code. prior: log-probabilities up to a constant. spread: of
    every prototype, as `log_variance` takes it.
    """

    numbers: Float[Array, "prototype code"]
    prior: Float[Array, " prototype"]
    spread: Float[Array, " code"]

    predicts_later = False

    def __init__(self, count: int, code: int, key: PRNGKeyArray):
        self.numbers = jax.random.normal(key, (count * code,)).reshape(count, code) / math.sqrt(
            code
        )
        self.prior, self.spread = jnp.zeros(count), jnp.zeros(code)

    @property
    def memory_size(self) -> int:
        return self.numbers.shape[-2]

    @property
    def codes(self) -> Float[Array, "prototype code"]:
        return self.numbers * math.sqrt(self.numbers.shape[1])

    def evidence(
        self,
        opponent: OpponentModel,
        seen: Float[Array, "*batch inputs"],
        joint: Integer[Array, "*batch seat"],
    ) -> Float[Array, "*batch prototype"]:
        """Log-probability of the player's action by the opponent model, with each prototype."""
        actions = opponent.actions
        logits = opponent.given(opponent.view(seen)[..., None, :], self.codes)
        legal = seen[..., None, -actions:] > 0.5
        log_probs = categorical.log_policy(logits, jnp.broadcast_to(legal, logits.shape))
        taken = joint[..., 0][..., None, None] == jnp.arange(actions)
        return jnp.sum(jnp.where(taken, log_probs, 0.0), axis=-1)

    def update(
        self,
        memory: Float[Array, "*batch prototype"],
        evidence: Float[Array, "*batch prototype"],
    ) -> Float[Array, "*batch prototype"]:
        """The memory after a step. New evidence can outweigh old: players may change."""
        after = memory + jnp.maximum(evidence, -SURPRISE)
        return jnp.maximum(after - jnp.max(after, axis=-1, keepdims=True), -FORGET)

    def unroll(
        self, evidence: Float[Array, "chunk slot prototype"], past: ChunkMemory
    ) -> Float[Array, "chunk slot prototype"]:
        def one(memory: Array, row: tuple[Array, Array, Array, Array]) -> tuple[Array, Array]:
            evidence, first, alive, begin = row
            memory = jnp.where(first, begin, memory)
            memory = jnp.where(alive, self.update(memory, evidence), memory)
            return memory, memory

        begin = past.begun(jnp.zeros_like(evidence))
        rows = (evidence, past.first[..., None], past.alive[..., None], begin)
        rows = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), rows)
        return jnp.swapaxes(jax.lax.scan(one, past.start, rows)[1], 0, 1)

    def weights(self, memory: Float[Array, "*batch prototype"]) -> Float[Array, "*batch prototype"]:
        """The probability of each prototype. It is learned by how well prototypes predict, and not
        by where they lie."""
        return jax.nn.softmax(jax.lax.stop_gradient(self.prior + memory), axis=-1)

    def expecting(
        self, weights: Float[Array, "*batch prototype"]
    ) -> Float[Array, "*batch prototype"]:
        """The memory of a player of whom prototypes are expected with these probabilities, as far
        as nothing is forgotten."""
        gained = jnp.log(jnp.maximum(weights, 1e-30)) - jax.lax.stop_gradient(self.prior)
        return jnp.maximum(gained - jnp.max(gained, axis=-1, keepdims=True), -FORGET)

    def infer(
        self, memory: Float[Array, "*batch prototype"], seen: Float[Array, "*batch inputs"]
    ) -> Code:
        """Mean and variances of the mixture."""
        weight = self.weights(memory)
        mean = weight @ self.codes
        apart = weight @ jnp.square(self.codes) - jnp.square(mean)
        own = jnp.exp(log_variance(self.spread))
        return Code(mean, jnp.log(own + jnp.maximum(apart, 0.0)))

    def sample_by(
        self, uniform: Float[Array, "*batch"], memory: Float[Array, "*#batch prototype"]
    ) -> Float[Array, "*batch code"]:
        """Prototypes by their probabilities, sampled by `uniform` in [0, 1)."""
        cdf = categorical.cdf(self.weights(memory))
        cdf = jnp.broadcast_to(cdf, (*uniform.shape, cdf.shape[-1]))
        return self.codes[categorical.sample_cdf(uniform, cdf)]

    def sample(
        self,
        key: PRNGKeyArray,
        number: int,
        memory: Float[Array, "copy other prototype"],
        code: Code,
    ) -> Float[Array, "number copy other code"]:
        """Prototypes by their probabilities: a code between prototypes is nobody's goal."""
        shape = (number, *memory.shape[:2])
        return self.sample_by(jax.random.uniform(key, (math.prod(shape),)).reshape(shape), memory)

    def sample_groups(
        self, key: PRNGKeyArray, shape: tuple[int, int], players: int
    ) -> Float[Array, "time copy player code"]:
        """Prototypes by their prior. In half of the groups all players have the same one:
        independent samples would rarely be equal."""
        alike_key, uniform_key = jax.random.split(key)
        number = math.prod(shape)
        alike = jax.random.bernoulli(alike_key, 0.5, (number,)).reshape(*shape, 1)
        uniform = jax.random.uniform(uniform_key, (number * players,)).reshape(*shape, players)
        uniform = jnp.where(alike, uniform[..., :1], uniform)
        return self.sample_by(uniform, jnp.zeros(self.memory_size))

    def training_code(
        self, code: Code, noise: Float[Array, "*batch code"]
    ) -> Float[Array, "*batch code"]:
        """The mean, which players act by. A mixture of prototypes is no normal distribution."""
        return code.mean

    def loss(
        self, evidence: Float[Array, "chunk slot prototype"], past: ChunkMemory
    ) -> dict[str, Float[Array, ""]]:
        """-log Σ_k P(k) Π π(a | s, t, z_k) of every segment, or of its part within a chunk, over
        all steps. It is a mixture over segments and not over steps: one prototype has to explain a
        segment as a whole."""
        alive = past.alive
        segment = jnp.cumsum(past.first, axis=1)
        same = (segment[:, :, None] == segment[:, None]) & alive[:, :, None] & alive[:, None]
        whole = jnp.einsum("lst,ltk->lsk", same.astype(jnp.float32), evidence)
        # A segment that began before its chunk goes on with what was remembered.
        slot = jnp.arange(alive.shape[1])
        latest = jax.lax.cummax(jnp.where(past.first, slot, 0), axis=1)[..., None]
        begun = jnp.take_along_axis(past.begun(jnp.zeros_like(evidence)), latest, axis=1)
        begun = jnp.where((segment == 0)[..., None], past.start[:, None], begun)
        prior = jax.nn.log_softmax(self.prior + begun, axis=-1)
        length = jnp.maximum(jnp.sum(same, axis=2), 1)
        loss = -jax.nn.logsumexp(prior + whole, axis=-1) / length
        return {"prototype_loss": masked_mean(loss, alive, None)}


ACTION_FEATURES = 16  # numbers that a board gives for each action


class RecurrentInference(GoalInference):
    """A GRU over (board, joint action). What an action says about a player depends on the board. So
    a network gives features of each action, and the memory takes in those of the action taken.

    numbers: how many numbers beside the board, and before the legal actions, views have.
    """

    action_features: Network
    memory: GRUNetwork
    inferred: Network
    numbers: int = eqx.field(static=True)

    predicts_later = True

    @property
    def memory_size(self) -> int:
        return self.memory.head.weight.shape[-1]

    def evidence(
        self,
        opponent: OpponentModel,
        seen: Float[Array, "*batch inputs"],
        joint: Integer[Array, "*batch seat"],
    ) -> Float[Array, "*batch more"]:
        """Features of the action taken, time, and what all players did, ego-first."""
        actions = opponent.actions
        done = (joint[..., None] == jnp.arange(actions)).astype(jnp.float32)
        features = self.action_features(seen).reshape(*joint.shape[:-1], actions, ACTION_FEATURES)
        features = jnp.sum(features * done[..., 0, :, None], axis=-2)
        now = seen[..., seen.shape[-1] - actions - self.numbers : -actions]
        flat = done.reshape(*joint.shape[:-1], -1)
        return jnp.concatenate([features, now, flat], axis=-1)

    def update(
        self, memory: Float[Array, "*batch unit"], evidence: Float[Array, "*batch more"]
    ) -> Float[Array, "*batch unit"]:
        return self.memory.step(evidence, memory)[1]

    def unroll(
        self, evidence: Float[Array, "chunk slot more"], past: ChunkMemory
    ) -> Float[Array, "chunk slot unit"]:
        first, alive = past.first[..., None], past.alive[..., None]
        x, start = evidence[:, :, None], past.start[:, None]
        return self.memory.unroll(x, start, first, alive)[1][:, :, 0]

    def infer(
        self, memory: Float[Array, "*batch unit"], seen: Float[Array, "*batch inputs"]
    ) -> Code:
        context = self.memory.head(memory)
        return split_code(self.inferred(jnp.concatenate([seen, context], axis=-1)))

    def sample(
        self, key: PRNGKeyArray, number: int, memory: Float[Array, "copy other unit"], code: Code
    ) -> Float[Array, "number copy other code"]:
        noise = jax.random.normal(key, (number * code.mean.size,))
        return code.sample(noise.reshape(number, *code.mean.shape))

    def sample_groups(
        self, key: PRNGKeyArray, shape: tuple[int, int], players: int
    ) -> Float[Array, "time copy player code"]:
        """Zeros: the configuration refuses unknown players without prototypes."""
        return jnp.zeros((*shape, players, self.inferred.head.bias.shape[-1] // 2))

    def training_code(
        self, code: Code, noise: Float[Array, "*batch code"]
    ) -> Float[Array, "*batch code"]:
        return code.sample(noise)
