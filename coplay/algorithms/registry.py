"""Learners by name. The table imports what it lists, so nothing is registered by a side effect."""

from collections.abc import Callable

from coplay.algorithms.hop.config import HOPConfig
from coplay.algorithms.hop.learner import HOP
from coplay.algorithms.hop_plus.config import HopPlusConfig
from coplay.algorithms.hop_plus.learner import HopPlus
from coplay.algorithms.mappo.config import HyperMAPPOConfig, MAPPOConfig
from coplay.algorithms.mappo.hyper import HyperMAPPO
from coplay.algorithms.mappo.learner import MAPPO
from coplay.algorithms.ppo.config import PPOConfig, RecurrentPPOConfig
from coplay.algorithms.ppo.learner import PPO
from coplay.algorithms.ppo.recurrent import RecurrentPPO
from coplay.core.errors import unknown
from coplay.core.learner import Learner

LEARNERS: dict[str, tuple[type, Callable[..., Learner]]] = {
    "ppo": (PPOConfig, PPO),
    "ppo-gru": (RecurrentPPOConfig, RecurrentPPO),
    "hop": (HOPConfig, HOP),
    "hop-plus": (HopPlusConfig, HopPlus),
    "mappo": (MAPPOConfig, MAPPO),
    "hyper-mappo": (HyperMAPPOConfig, HyperMAPPO),
}
"""name -> (configuration, learner); see `Learner` for how a learner is made."""


def register_learner(name: str, config: type, learner: Callable[..., Learner]) -> None:
    """Make a learner of one's own known by a name, to `coplay.train`, seatings and audits.

    config: a frozen dataclass; learner: made as said in `Learner`.
    """
    LEARNERS[name] = (config, learner)


def learner_parts(name: str) -> tuple[type, Callable[..., Learner]]:
    """The configuration and the class of a learner, or an error with the nearest name."""
    if name not in LEARNERS:
        raise unknown("player to train", name, LEARNERS)
    return LEARNERS[name]
