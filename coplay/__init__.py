"""Multi-agent reinforcement learning with and about others."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from coplay.core.version import VERSION as __version__

if TYPE_CHECKING:
    from coplay.algorithms.registry import register_learner as register_learner
    from coplay.api import cross_play as cross_play
    from coplay.api import play as play
    from coplay.api import train as train
    from coplay.core.errors import UserError as UserError
    from coplay.core.game import Game as Game
    from coplay.core.game import Observation as Observation
    from coplay.core.game import Outcome as Outcome
    from coplay.games.adapters.pettingzoo_in import from_pettingzoo as from_pettingzoo
    from coplay.games.adapters.pettingzoo_out import to_pettingzoo as to_pettingzoo
    from coplay.games.check import check_game as check_game
    from coplay.games.registry import make_game as make_game
    from coplay.games.registry import register_game as register_game
    from coplay.training.players import make_player as make_player


_WHERE = {
    "Game": "coplay.core.game",
    "Observation": "coplay.core.game",
    "Outcome": "coplay.core.game",
    "check_game": "coplay.games.check",
    "cross_play": "coplay.api",
    "from_pettingzoo": "coplay.games.adapters.pettingzoo_in",
    "make_game": "coplay.games.registry",
    "make_player": "coplay.training.players",
    "play": "coplay.api",
    "register_game": "coplay.games.registry",
    "register_learner": "coplay.algorithms.registry",
    "to_pettingzoo": "coplay.games.adapters.pettingzoo_out",
    "train": "coplay.api",
    "UserError": "coplay.core.errors",
}

__all__ = [*_WHERE, "__version__"]


def __getattr__(name: str) -> Any:
    # JAX takes a second to import: it waits until something needs it, so `coplay --help` is quick.
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'coplay' has no attribute '{name}'")
