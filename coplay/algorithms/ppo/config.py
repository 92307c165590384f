"""The configuration of PPO, of recurrent PPO and of PPO with an embedding of its history."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from coplay.core.config import (
    Config,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    Share,
)
from coplay.nn.config import NetworkConfig
from coplay.rl.optimisers import OptimiserConfig


@dataclass(frozen=True)
class PPOConfig(Config):
    """Proximal policy optimisation, one learner per seat."""

    parameters: Literal["separate", "shared", "shared+id"] = "separate"
    """Parameters of the seats: one set each; one for all; one for all with the seat's number as an
    additional input."""
    network: NetworkConfig = field(default_factory=NetworkConfig)
    """Actor and critic."""
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    """Optimiser of the actor and of the critic, each with its own gradient norm."""
    discount: Share = 0.99
    """Discount of future rewards."""
    gae_lambda: Share = 0.95
    """Lambda of the generalised advantage estimation."""
    epochs: PositiveInt = 4
    """Passes over each rollout."""
    minibatches: PositiveInt = 8
    """Parts into which each pass is split, made of whole game copies; must divide their number."""
    clip: PositiveFloat = 0.2
    """Limit of the probability ratio in the policy loss."""
    value_clip: PositiveFloat | None = None
    """If v: the critic may gain from moving at most v away from its old value; none: no limit."""
    value_weight: NonNegativeFloat = 0.5
    """Weight of the value loss."""
    entropy_weight: NonNegativeFloat = 0.01
    """Weight of the entropy bonus."""

    adapt_defaults: ClassVar[dict[str, Any]] = {"minibatches": 1, "optimiser.schedule": "constant"}
    """Fields whose defaults are others while it adapts in a single game copy."""


@dataclass(frozen=True)
class GRUConfig(Config):
    """A memory of gated recurrent units."""

    units: PositiveInt = 64
    """Width of the memory of actor and critic, after the hidden layers."""
    keep: bool = True
    """Keep the memory from one episode to the next; off: every episode begins with an empty one."""


@dataclass(frozen=True)
class RecurrentMemoryConfig(GRUConfig):
    """The memory of recurrent PPO."""

    kind: Literal["gru", "lstm"] = "gru"
    """A gated recurrent unit, or a long short-term memory."""
    sequence_length: NonNegativeInt = 0
    """Steps through which gradients go back; 0: to the beginning of the rollout. The memory itself
    goes back further either way."""


@dataclass(frozen=True)
class RecurrentPPOConfig(PPOConfig):
    """Proximal policy optimisation with a recurrent memory, one learner per seat."""

    memory: RecurrentMemoryConfig = field(default_factory=RecurrentMemoryConfig)
    """Memory of actor and critic."""


@dataclass(frozen=True)
class EmbeddedPPOConfig(PPOConfig):
    """Proximal policy optimisation that is given an embedding of the own history."""

    memory: GRUConfig = field(default_factory=GRUConfig)
    """Memory of the encoder."""
    decoder_hidden: PositiveInt = 64
    """Width of the decoder's hidden layer."""
    model_optimiser: OptimiserConfig = field(default_factory=lambda: OptimiserConfig(epsilon=1e-8))
    """Optimiser of encoder and decoder."""
    model_epochs: PositiveInt = 4
    """Passes of encoder and decoder over each rollout."""
