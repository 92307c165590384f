"""The configuration of social influence."""

from dataclasses import dataclass, field

from coplay.algorithms.ppo.config import PPOConfig
from coplay.core.config import NonNegativeFloat, PositiveInt
from coplay.rl.optimisers import OptimiserConfig


@dataclass(frozen=True)
class InfluenceConfig(PPOConfig):
    """PPO with an additional reward for influence on what others do next."""

    influence_weight: NonNegativeFloat = 0.1
    """Weight of the influence, in nats, beside the game's reward; 0 is PPO."""
    model_hidden: PositiveInt = 64
    """Width of the hidden layer of the model of others."""
    model_optimiser: OptimiserConfig = field(default_factory=lambda: OptimiserConfig(epsilon=1e-8))
    """Optimiser of the model of others."""
    model_epochs: PositiveInt = 4
    """Passes of the model of others over each rollout."""
