"""Games by name, and how to make one."""

from collections.abc import Callable
from typing import Any

from coplay.core.config import with_fields
from coplay.core.errors import UserError, own, unknown
from coplay.core.game import Game
from coplay.core.loading import name_game
from coplay.core.reading import short
from coplay.games.adapters.jaxmarl import jaxmarl_parts, smax_parts
from coplay.games.cleanup import Cleanup, CleanupConfig
from coplay.games.coin_game import CoinGame, CoinGameConfig
from coplay.games.diagnostic import (
    HiddenKind,
    HiddenKindConfig,
    HiddenTarget,
    HiddenTargetConfig,
    Identity,
    IdentityConfig,
)
from coplay.games.dispersion import Dispersion, DispersionConfig
from coplay.games.foraging import Foraging, ForagingConfig, foraging_parts
from coplay.games.harvest import Harvest, HarvestConfig
from coplay.games.matrix import matrix_parts
from coplay.games.predator_prey import PredatorPrey, PredatorPreyConfig
from coplay.games.snowdrift import Snowdrift, SnowdriftConfig
from coplay.games.stag_hunt import StagHunt, StagHuntConfig

GAMES: dict[str, tuple[type, type[Game]]] = {
    StagHunt.name: (StagHuntConfig, StagHunt),
    Snowdrift.name: (SnowdriftConfig, Snowdrift),
    CoinGame.name: (CoinGameConfig, CoinGame),
    Foraging.name: (ForagingConfig, Foraging),
    PredatorPrey.name: (PredatorPreyConfig, PredatorPrey),
    Harvest.name: (HarvestConfig, Harvest),
    Cleanup.name: (CleanupConfig, Cleanup),
    Identity.name: (IdentityConfig, Identity),
    HiddenTarget.name: (HiddenTargetConfig, HiddenTarget),
    HiddenKind.name: (HiddenKindConfig, HiddenKind),
    Dispersion.name: (DispersionConfig, Dispersion),
}
"""name -> (configuration, game): `GAMES[name][1](GAMES[name][0](...))` makes the game."""


def _pettingzoo(rest: str) -> tuple[type, Callable[..., Any]]:
    from coplay.games.adapters.pettingzoo_in import parts

    return parts(rest)


def _smac(library: str) -> Callable[[str], tuple[type, Callable[..., Any]]]:
    def made(rest: str) -> tuple[type, Callable[..., Any]]:
        from coplay.games.adapters.smac import smac_parts

        return smac_parts(library, rest)

    return made


def _meltingpot(rest: str) -> tuple[type, Callable[..., Any]]:
    from coplay.games.adapters.meltingpot import meltingpot_parts

    return meltingpot_parts(rest)


FAMILIES: dict[str, Callable[[str], tuple[type, Callable[..., Any]]]] = {
    "foraging": foraging_parts,
    "jaxmarl": jaxmarl_parts,
    "matrix": matrix_parts,
    "meltingpot": _meltingpot,
    "pettingzoo": _pettingzoo,
    "smac": _smac("smac"),
    "smaclite": _smac("smaclite"),
    "smacv2": _smac("smacv2"),
    "smax": smax_parts,
}
"""prefix -> the parts of the games named `prefix:REST`, as a function of REST. Modules of
games that come from other libraries import what they need when they are called."""


def register_game(config: type, game: type[Game]) -> None:
    """Make a game of one's own known by its name, wherever a game is named.

    config: a frozen dataclass; its fields are options `--game.FIELD` of the command line. game:
        made as `game(config)`.

        coplay.register_game(RendezvousConfig, Rendezvous)
        coplay.train("ppo", "rendezvous")
    """
    GAMES[game.name] = (config, game)


def game_parts(name: str) -> tuple[type, Callable[..., Any]]:
    """The configuration and the maker of a game, or an error with the nearest name."""
    if not isinstance(name, str):
        raise UserError(f"a game is named by a text, not by {short(name)}")
    family, colon, rest = name.partition(":")
    if colon and family in FAMILIES:
        return FAMILIES[family](rest)
    if name not in GAMES:
        error = unknown("game", name, [*GAMES, *(f"{family}:…" for family in FAMILIES)])
        raise UserError(f"{error}; {own('game')}")
    return GAMES[name]


def make_game(name: str, **fields: Any) -> Game:
    """A game by name; the keyword arguments are fields of its configuration.

    game = coplay.make_game("stag-hunt", height=8, width=8, walls=5)
    """
    name_game(name, fields.get("options", ()))
    config_type, game_type = game_parts(name)
    return game_type(with_fields(config_type(), fields, f"game '{name}'"))
