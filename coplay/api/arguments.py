"""What the functions of the library are given: games, seatings, fields by their names."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from coplay.algorithms.registry import entry_of
from coplay.core.config import leaves, with_fields
from coplay.core.errors import UserError, unknown
from coplay.core.game import Game, ScriptedPolicy
from coplay.core.loading import name_game
from coplay.core.player import Player
from coplay.games.registry import game_parts
from coplay.reports.progress import ProgressLine
from coplay.training.trainer import Watcher

Entry = str | Player | type[Player] | ScriptedPolicy
"""One player of a seating: an entry as on the command line, or what `coplay.register_player`
takes."""


def seating_text(seating: str | Sequence[Entry]) -> str:
    """A seating as the command line writes it."""
    return seating if isinstance(seating, str) else ",".join(map(entry_of, seating))


def game_and_config(
    game: str | Game, fields: Mapping[str, Any] | None, from_file: bool = False
) -> tuple[str, Any]:
    """The name and the configuration of a game, from which a run can make it again.

    game: a name, or a game that is known by its name. from_file: the name is not the user's.
    """
    if isinstance(game, str):
        if not from_file:
            name_game(game, (fields or {}).get("options", ()))
        return game, with_fields(game_parts(game)[0](), fields or {}, f"game '{game}'")
    config = getattr(game, "config", None)
    if type(config) is not game_parts(game.name)[0]:
        raise UserError(f"{game!r} is not known by its name: see coplay.register_game")
    if fields:
        raise UserError("game_fields go with a game by name; this one has its configuration")
    return game.name, config


def share_fields(fields: Mapping[str, Any], *configs: Any) -> list[Any]:
    """The configurations with fields set, each in the one that has it; fields are named by their
    paths, or given as nested dictionaries."""
    heads = [{leaf.path.partition(".")[0] for leaf in leaves(config)} for config in configs]
    mine: list[dict[str, Any]] = [{} for _ in configs]
    for path, value in fields.items():
        head = path.partition(".")[0]
        place = next((index for index, known in enumerate(heads) if head in known), None)
        if place is None:
            raise unknown(
                "field", path, [leaf.path for config in configs for leaf in leaves(config)]
            )
        mine[place][path] = value
    return [with_fields(config, own) for config, own in zip(configs, mine, strict=True)]


def game_fields_of(
    fields: dict[str, Any], game_fields: Mapping[str, Any] | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields without those called `game.FIELD`, and all fields of the game."""
    inside = {path: value for path, value in fields.items() if path.startswith("game.")}
    rest = {path: value for path, value in fields.items() if path not in inside}
    own = {path.removeprefix("game."): value for path, value in inside.items()}
    return rest, {**(game_fields or {}), **own}


@contextmanager
def watching(watcher: Watcher | None, quiet: bool) -> Iterator[Watcher]:
    """Who is told how work goes: the one that is given, nobody, or the user by a live line."""
    if watcher is not None or quiet:
        yield watcher or Watcher()
    else:
        with ProgressLine() as progress:
            yield progress
