"""Games by name, and how to make one."""

import dataclasses
from typing import Any

from coplay.errors import UserError, unknown
from coplay.games.game import Game, Observation, Outcome
from coplay.games.stag_hunt import StagHunt, StagHuntConfig

GAMES: dict[str, tuple[type, type[Game]]] = {StagHunt.name: (StagHuntConfig, StagHunt)}
"""name -> (configuration, game): `GAMES[name][1](GAMES[name][0](...))` makes the game."""


def register_game(config: type, game: type[Game]) -> None:
    """Make a game of one's own known by its name, to `make_game`, `coplay.train` and seatings.

    config: a frozen dataclass; game: made as `game(config)`.
    """
    GAMES[game.name] = (config, game)


def game_parts(name: str) -> tuple[type, type[Game]]:
    """The configuration and the class of a game, or an error with the nearest name."""
    if name not in GAMES:
        raise unknown("game", name, GAMES)
    return GAMES[name]


def make_game(name: str, **fields: Any) -> Game:
    """A game by name; the keyword arguments are fields of its configuration."""
    config_type, game_type = game_parts(name)
    valid = [field.name for field in dataclasses.fields(config_type)]
    for field in fields:
        if field not in valid:
            raise unknown(f"field of game '{name}'", field, valid)
    return game_type(config_type(**fields))


__all__ = [
    "GAMES",
    "Game",
    "Observation",
    "Outcome",
    "StagHunt",
    "StagHuntConfig",
    "UserError",
    "game_parts",
    "make_game",
    "register_game",
]
