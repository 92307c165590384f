"""Games by name, and how to make one."""

import dataclasses
from collections.abc import Callable
from typing import Any

from coplay.core.errors import unknown
from coplay.core.game import Game
from coplay.games.adapters.jaxmarl import jaxmarl_parts, smax_parts
from coplay.games.diagnostic import HiddenTarget, HiddenTargetConfig, Identity, IdentityConfig
from coplay.games.snowdrift import Snowdrift, SnowdriftConfig
from coplay.games.stag_hunt import StagHunt, StagHuntConfig

GAMES: dict[str, tuple[type, type[Game]]] = {
    StagHunt.name: (StagHuntConfig, StagHunt),
    Snowdrift.name: (SnowdriftConfig, Snowdrift),
    Identity.name: (IdentityConfig, Identity),
    HiddenTarget.name: (HiddenTargetConfig, HiddenTarget),
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


FAMILIES: dict[str, Callable[[str], tuple[type, Callable[..., Any]]]] = {
    "jaxmarl": jaxmarl_parts,
    "pettingzoo": _pettingzoo,
    "smac": _smac("smac"),
    "smaclite": _smac("smaclite"),
    "smacv2": _smac("smacv2"),
    "smax": smax_parts,
}
"""prefix -> the parts of the games named `prefix:REST`, as a function of REST: games that come from
other libraries. Their modules import what they need when they are called."""


def register_game(config: type, game: type[Game]) -> None:
    """Make a game of one's own known by its name, to `make_game`, `coplay.train` and seatings.

    config: a frozen dataclass; game: made as `game(config)`.
    """
    GAMES[game.name] = (config, game)


def game_parts(name: str) -> tuple[type, Callable[..., Any]]:
    """The configuration and the maker of a game, or an error with the nearest name."""
    family, colon, rest = name.partition(":")
    if colon and family in FAMILIES:
        return FAMILIES[family](rest)
    if name not in GAMES:
        raise unknown("game", name, [*GAMES, *(f"{family}:…" for family in FAMILIES)])
    return GAMES[name]


def make_game(name: str, **fields: Any) -> Game:
    """A game by name; the keyword arguments are fields of its configuration."""
    config_type, game_type = game_parts(name)
    valid = [field.name for field in dataclasses.fields(config_type)]
    for field in fields:
        if field not in valid:
            raise unknown(f"field of game '{name}'", field, valid)
    return game_type(config_type(**fields))
