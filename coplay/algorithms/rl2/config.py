"""The configuration of RL²."""

from dataclasses import dataclass
from typing import Any, ClassVar

from coplay.algorithms.ppo.config import RecurrentPPOConfig


@dataclass(frozen=True)
class RL2Config(RecurrentPPOConfig):
    """RL²: recurrent PPO whose memory and whose return go on over the episodes of a meeting."""

    run_defaults: ClassVar[dict[str, Any]] = {"copies": 128, "rollout": 128}
    """Fields of a run whose defaults are others than elsewhere. Gradients go back to the beginning
    of a rollout, so it holds several episodes."""
