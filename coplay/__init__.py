"""Multi-agent reinforcement learning with and about others.

    import coplay

    run = coplay.train("ppo", "stag-hunt", steps=200_000)
    coplay.play("stag-hunt", [run["folder"], "ns", "ns", "random"])

Protocols to write one's own: `Game`, `Player`, `Learner`, made known by `register_game`,
`register_player`, `register_learner`. What they speak of: `Observation`, `Outcome`, `EntityList`,
`View`, `ViewShape`, `Insight`, `Group`, `Trajectory`. Everything else is a function;
`help(coplay.train)` explains.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from coplay.core.version import VERSION as __version__

if TYPE_CHECKING:
    from coplay.algorithms.registry import learner_parts as learner_parts
    from coplay.algorithms.registry import register_learner as register_learner
    from coplay.algorithms.registry import register_player as register_player
    from coplay.api.checking import check as check
    from coplay.api.doctor import doctor as doctor
    from coplay.api.evaluating import adapt as adapt
    from coplay.api.evaluating import audit_seats as audit_seats
    from coplay.api.evaluating import audit_wiring as audit_wiring
    from coplay.api.evaluating import compare as compare
    from coplay.api.models import collect as collect
    from coplay.api.models import inspect as inspect
    from coplay.api.models import pretrain as pretrain
    from coplay.api.partners import make_partners as make_partners
    from coplay.api.partners import select_partners as select_partners
    from coplay.api.partners import show_partners as show_partners
    from coplay.api.playing import cross_play as cross_play
    from coplay.api.playing import episodes as episodes
    from coplay.api.playing import play as play
    from coplay.api.playing import replay as replay
    from coplay.api.playing import schelling as schelling
    from coplay.api.reporting import report as report
    from coplay.api.sharing import export_player as export_player
    from coplay.api.sharing import import_player as import_player
    from coplay.api.sweeping import sweep as sweep
    from coplay.api.training import train as train
    from coplay.core.entities import EntityList as EntityList
    from coplay.core.errors import UserError as UserError
    from coplay.core.game import Game as Game
    from coplay.core.game import Observation as Observation
    from coplay.core.game import Outcome as Outcome
    from coplay.core.group import Group as Group
    from coplay.core.learner import Learner as Learner
    from coplay.core.loading import load as load
    from coplay.core.player import Insight as Insight
    from coplay.core.player import Player as Player
    from coplay.core.player import View as View
    from coplay.core.trajectory import Trajectory as Trajectory
    from coplay.core.trajectory import seat_keys as seat_keys
    from coplay.games.adapters.pettingzoo_in import from_pettingzoo as from_pettingzoo
    from coplay.games.adapters.pettingzoo_out import to_pettingzoo as to_pettingzoo
    from coplay.games.check import check_game as check_game
    from coplay.games.registry import make_game as make_game
    from coplay.games.registry import register_game as register_game
    from coplay.nn.networks import ViewShape as ViewShape
    from coplay.training.players import make_player as make_player
    from coplay.training.players import step_player as step_player
    from coplay.training.run import load_run as load_run


_WHERE = {
    "adapt": "coplay.api.evaluating",
    "audit_seats": "coplay.api.evaluating",
    "audit_wiring": "coplay.api.evaluating",
    "check": "coplay.api.checking",
    "doctor": "coplay.api.doctor",
    "check_game": "coplay.games.check",
    "collect": "coplay.api.models",
    "compare": "coplay.api.evaluating",
    "cross_play": "coplay.api.playing",
    "EntityList": "coplay.core.entities",
    "episodes": "coplay.api.playing",
    "export_player": "coplay.api.sharing",
    "from_pettingzoo": "coplay.games.adapters.pettingzoo_in",
    "Game": "coplay.core.game",
    "Group": "coplay.core.group",
    "import_player": "coplay.api.sharing",
    "Insight": "coplay.core.player",
    "inspect": "coplay.api.models",
    "Learner": "coplay.core.learner",
    "learner_parts": "coplay.algorithms.registry",
    "load": "coplay.core.loading",
    "load_run": "coplay.training.run",
    "make_game": "coplay.games.registry",
    "make_partners": "coplay.api.partners",
    "make_player": "coplay.training.players",
    "Observation": "coplay.core.game",
    "Outcome": "coplay.core.game",
    "play": "coplay.api.playing",
    "Player": "coplay.core.player",
    "pretrain": "coplay.api.models",
    "register_game": "coplay.games.registry",
    "register_learner": "coplay.algorithms.registry",
    "register_player": "coplay.algorithms.registry",
    "select_partners": "coplay.api.partners",
    "show_partners": "coplay.api.partners",
    "step_player": "coplay.training.players",
    "replay": "coplay.api.playing",
    "report": "coplay.api.reporting",
    "schelling": "coplay.api.playing",
    "seat_keys": "coplay.core.trajectory",
    "sweep": "coplay.api.sweeping",
    "to_pettingzoo": "coplay.games.adapters.pettingzoo_out",
    "train": "coplay.api.training",
    "Trajectory": "coplay.core.trajectory",
    "UserError": "coplay.core.errors",
    "View": "coplay.core.player",
    "ViewShape": "coplay.nn.networks",
}
"""Public name -> its module."""

__all__ = [*_WHERE, "__version__"]


def __getattr__(name: str) -> Any:
    # JAX takes a second to import: it waits until something needs it, so `coplay --help` is quick.
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'coplay' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
