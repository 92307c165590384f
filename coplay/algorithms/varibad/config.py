"""The configuration of VariBAD."""

from dataclasses import dataclass

from coplay.algorithms.ppo.config import EmbeddedPPOConfig
from coplay.core.config import NonNegativeFloat, PositiveInt


@dataclass(frozen=True)
class VariBADConfig(EmbeddedPPOConfig):
    """VariBAD: PPO with a belief about the partners, trained by variational inference."""

    latent: PositiveInt = 5
    """Numbers of the latent. The policy is given its mean and the logarithm of its variance."""
    elbo_terms: PositiveInt = 4
    """Beliefs of each rollout for which the lower bound is worked out, at steps drawn at random."""
    kl_weight: NonNegativeFloat = 0.1
    """Weight of the KL of a belief to the one before it, in the lower bound."""
