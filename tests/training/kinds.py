"""A pack of three partners for the game hidden-kind, each of which always does the same."""

from pathlib import Path

import numpy as np

from coplay.algorithms.rules import RuleParameters
from coplay.games.diagnostic import HiddenKindConfig
from coplay.training.partner_packs import FamilyData, Pack, write_pack

CHOICES = 3
CONFIG = HiddenKindConfig(choices=CHOICES)


def kinds_pack(folder: Path, seed: int = 0) -> Pack:
    none = np.zeros(CHOICES, np.float32)
    arrays = RuleParameters(
        preference=100 * np.eye(CHOICES, dtype=np.float32),
        reciprocity=none,
        patience=np.full(CHOICES, np.inf, np.float32),
        change=none,
        laziness=none,
        noise=none,
    )
    hows = [{"always": choice} for choice in range(CHOICES)]
    return write_pack(folder, "hidden-kind", CONFIG, seed, {"rules": FamilyData(arrays, hows)})
