"""The configuration of Advantage Alignment."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from coplay.algorithms.ppo.config import PPOConfig
from coplay.core.config import NonNegativeFloat, Share


@dataclass(frozen=True)
class AdvantageAlignmentConfig(PPOConfig):
    """PPO whose advantages also count what is good for the others (opponent shaping)."""

    parameters: Literal["separate", "shared", "shared+id"] = "shared"
    """Parameters of the seats: one set each; one for all; one for all with the seat's number as an
    additional input."""
    discount: Share = 0.96
    """Discount of future rewards, and of past advantages."""
    alignment_weight: NonNegativeFloat = 1.0
    """Weight of the others' advantages; 0 is PPO."""

    run_defaults: ClassVar[dict[str, Any]] = {"rollout": 128}
    """Fields of a run whose defaults are others than elsewhere. Past advantages are counted from
    the beginning of a rollout, so it holds long pieces of episodes."""
