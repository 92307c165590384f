"""Multi-agent reinforcement learning with and about others."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coplay.api import cross_play as cross_play
    from coplay.api import play as play
    from coplay.api import train as train
    from coplay.errors import UserError as UserError
    from coplay.games import make_game as make_game
    from coplay.games import register_game as register_game
    from coplay.games.check import check_game as check_game
    from coplay.games.pettingzoo_in import from_pettingzoo as from_pettingzoo
    from coplay.games.pettingzoo_out import to_pettingzoo as to_pettingzoo
    from coplay.players.seating import make_player as make_player
    from coplay.players.seating import register_learner as register_learner

__version__ = "0.1.0"

_WHERE = {
    "check_game": "coplay.games.check",
    "cross_play": "coplay.api",
    "from_pettingzoo": "coplay.games.pettingzoo_in",
    "make_game": "coplay.games",
    "make_player": "coplay.players.seating",
    "play": "coplay.api",
    "register_game": "coplay.games",
    "register_learner": "coplay.players.seating",
    "to_pettingzoo": "coplay.games.pettingzoo_out",
    "train": "coplay.api",
    "UserError": "coplay.errors",
}

__all__ = [*_WHERE]


def __getattr__(name: str) -> Any:
    # JAX takes a second to import: it waits until something needs it, so `coplay --help` is quick.
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'coplay' has no attribute '{name}'")
