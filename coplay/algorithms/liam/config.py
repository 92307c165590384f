"""The configuration of LIAM."""

from dataclasses import dataclass

from coplay.algorithms.ppo.config import EmbeddedPPOConfig
from coplay.core.config import NonNegativeFloat, PositiveInt


@dataclass(frozen=True)
class LIAMConfig(EmbeddedPPOConfig):
    """LIAM: PPO with an embedding from which others' views and actions can be reconstructed."""

    embedding: PositiveInt = 16
    """Numbers of the embedding."""
    view_weight: NonNegativeFloat = 1.0
    """Weight of the error of others' views in the decoder's loss."""
    action_weight: NonNegativeFloat = 1.0
    """Weight of the error of others' actions in the decoder's loss."""
