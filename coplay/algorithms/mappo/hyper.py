"""HyperMAPPO: MAPPO whose actor's weights a hypernetwork makes from what agents saw, did and got.

See `Hypernetwork` for what it adds to MAPPO's networks, losses and metrics. It is an optimiser
group of its own, clipped by itself. With `parameters` other than hyper the program is MAPPO's.
"""

import equinox as eqx

from coplay.algorithms.mappo.config import HyperMAPPOConfig
from coplay.algorithms.mappo.hypernetwork import Hypernetwork
from coplay.algorithms.mappo.learner import MAPPO


class HyperMAPPO(MAPPO):
    """See the module docstring."""

    config: HyperMAPPOConfig = eqx.field(static=True)

    @property
    def hypernetwork(self) -> Hypernetwork | None:
        if self.config.parameters != "hyper":
            return None
        return Hypernetwork(self.config, self.shape, self.game_seats)
