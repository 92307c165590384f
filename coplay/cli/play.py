"""coplay play: matches and cross-play."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro

from coplay.cli.arguments import option, parse, values
from coplay.core.config import PositiveInt, Seed
from coplay.core.errors import UserError

GameConfig = TypeVar("GameConfig")


@dataclass(frozen=True)
class PlayArguments(Generic[GameConfig]):
    """Let players play whole episodes and count what every seat gets; or every player among every
    other (--cross)."""

    game: GameConfig
    seating: str = ""
    """One player per seat, e.g. ns,ns,nh,random or runs/ppo,runs/ppo@seat=2,ns,nh."""
    cross: tuple[str, ...] = ()
    """Cross-play instead of one seating: runs, each of whose seeds is a player, or other players.
    Each sits in every seat in turn, with each of them in all the other seats."""
    game_name: Annotated[str, tyro.conf.arg(name="game")] = "stag-hunt"
    """The game by name; its own fields are --game.FIELD. Default: the game of the first run that
    is named, else stag-hunt."""
    episodes: PositiveInt = 1000
    """How many episodes; in cross-play, for each pair."""
    seed: Seed = 0
    """Seed of all randomness."""
    copies: PositiveInt | None = None
    """Game copies the episodes are spread over (default: up to 1024, of environments in worker
    processes up to 64); each plays its share one episode after the other, which matters for
    players that remember."""
    greedy: bool = False
    """Trained players take their most probable action instead of sampling."""
    exploitability: bool = False
    """Of a matrix game: also what the players' policies are worth in a round, by their
    probabilities, and what a best answer to them would bring; and the best plan for whole episodes
    beside a scripted player."""
    out: Path | None = None
    """Picture (PNG, SVG, PDF) of a cross-play."""
    json: bool = False
    """Print the result as one JSON object on standard output."""


def run(arguments: list[str]) -> int:
    """coplay play …"""
    from coplay.api.playing import play
    from coplay.games.registry import game_parts
    from coplay.reports.results import print_match

    game_name, game_config = option(arguments, "game"), None
    if game_name is None:
        game_name, game_config = game_of_runs(arguments)
    config_type, game_type = game_parts(game_name)
    default: PlayArguments[Any] = PlayArguments(
        game=game_config or config_type(), game_name=game_name
    )
    given = parse(PlayArguments[config_type], arguments, "play", default)  # type: ignore
    if bool(given.seating) == bool(given.cross):
        raise UserError("give either --seating, one player per seat, or --cross, players to meet")
    game = game_type(given.game)
    for note in game.notes:
        print(f"note: {note}", file=sys.stderr)
    if given.cross:
        if given.exploitability:
            raise UserError("--exploitability is of one seating: give --seating instead of --cross")
        return play_cross(given, game)
    if given.out is not None:
        raise UserError("--out is the picture of a cross-play (--cross)")
    record = play(
        game,
        given.seating,
        given.episodes,
        given.seed,
        given.copies,
        given.greedy,
        given.exploitability,
    )
    print_match(record, given.json)
    return 0


def game_of_runs(arguments: list[str]) -> tuple[str, Any]:
    """The game of the first run that is named, and its configuration; else stag-hunt and None."""
    from coplay.training.run import RunFolder

    named = [*values(arguments, "seating"), *values(arguments, "cross")]
    for entry in (part for text in named for part in re.split("[,:]", text)):
        folder = RunFolder(Path(entry.split("@")[0]))
        if folder.exists():
            config = folder.read_config()
            return config.game_name, config.game
    return "stag-hunt", None


def play_cross(given: PlayArguments, game: Any) -> int:
    """coplay play --cross …"""
    from coplay.core.compilation import use_cache
    from coplay.evaluation.cross_play import cross_play
    from coplay.reports.cross_play import check_picture, print_cross_play, write_heat_map
    from coplay.reports.progress import ProgressLine

    if given.out is not None:
        check_picture(given.out)
    use_cache()
    with ProgressLine(transient=True) as progress:
        result = cross_play(
            game,
            given.cross,
            given.episodes,
            given.seed,
            given.copies,
            given.greedy,
            progress.say,
            progress.work,
        )
    if given.out is not None:
        write_heat_map(given.out, result)
        print(f"wrote {given.out}", file=sys.stderr)
    print_cross_play(result, given.json)
    return 0
