"""coplay schelling: what cooperating and defecting bring."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro

from coplay.cli.arguments import option, parse
from coplay.core.config import PositiveInt, Seed

GameConfig = TypeVar("GameConfig")


@dataclass(frozen=True)
class SchellingArguments(Generic[GameConfig]):
    """What cooperating and defecting bring to a player, by how many others cooperate: a Schelling
    diagram."""

    game: GameConfig
    game_name: Annotated[str, tyro.conf.arg(name="game")] = "cleanup"
    """The game by name; its own fields are --game.FIELD."""
    cooperator: str = ""
    """The player that cooperates; default: the game's first scripted player."""
    defector: str = ""
    """The player that defects; default: the game's second scripted player."""
    episodes: PositiveInt = 1000
    """Episodes for each number of cooperators."""
    seed: Seed = 0
    """Seed of all randomness."""
    copies: PositiveInt | None = None
    """Game copies the episodes are spread over (default: up to 1024)."""
    out: Path | None = None
    """Picture (PNG, SVG, PDF) of the diagram."""
    json: bool = False
    """Print the result as one JSON object on standard output."""


def run(arguments: list[str]) -> int:
    """coplay schelling …"""
    from coplay.core.compilation import use_cache
    from coplay.evaluation.schelling import schelling
    from coplay.games.registry import game_parts
    from coplay.reports.cross_play import check_picture
    from coplay.reports.progress import ProgressLine
    from coplay.reports.schelling import draw_schelling, print_schelling

    game_name = option(arguments, "game") or "cleanup"
    config_type, game_type = game_parts(game_name)
    default: SchellingArguments[Any] = SchellingArguments(game=config_type(), game_name=game_name)
    given = parse(SchellingArguments[config_type], arguments, "schelling", default)  # type: ignore
    if given.out is not None:
        check_picture(given.out)
    use_cache()
    with ProgressLine(transient=True) as progress:
        result = schelling(
            game_type(given.game),
            given.cooperator,
            given.defector,
            given.episodes,
            given.seed,
            given.copies,
            progress.say,
            progress.work,
        )
    if given.out is not None:
        draw_schelling(given.out, result)
        print(f"wrote {given.out}", file=sys.stderr)
    print_schelling(result, given.json)
    return 0
