"""coplay serve: runs in the browser, live, and people in the seats of a game."""

import importlib.util
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro

from coplay.cli.arguments import option, parse
from coplay.cli.play import game_of_runs
from coplay.core.config import Seed
from coplay.core.errors import UserError, how_to_install

GameConfig = TypeVar("GameConfig")
NEEDED = ("starlette", "uvicorn", "websockets")


@dataclass(frozen=True)
class ServeArguments(Generic[GameConfig]):
    """Show all runs of a folder in the browser, live while they train; or let people take seats in
    a game (--seat, or human in --seating)."""

    game: GameConfig
    folder: Annotated[Path, tyro.conf.Positional] = Path("runs")
    """Folder with runs; with --seat the folder of the run whose players play."""
    seat: tuple[int, ...] = ()
    """Seats that people take, among the players of the run."""
    seating: str = ""
    """Who plays, with human for each person, e.g. human,ns,nh,runs/hopp."""
    game_name: Annotated[str, tyro.conf.arg(name="game")] = "stag-hunt"
    """The game of --seating by name; its own fields are --game.FIELD. Default: the game of the
    first run that is named, else stag-hunt."""
    record: bool = True
    """Keep what people play as a dataset, as coplay collect does."""
    out: Path | None = None
    """Folder of that dataset (default: data/human- and the time)."""
    thinking: bool = True
    """People may look at what the other players think."""
    greedy: bool = False
    """Trained players take their most probable action instead of sampling."""
    seed: Seed = 0
    """Seed of the games that people play."""
    host: str = "127.0.0.1"
    """Address to listen on. On any other than this machine's own, browsers need a token."""
    port: Annotated[int, tyro.conf.arg(metavar="0-65535")] = 8642
    """Port to listen on; 0: any that is free."""
    token: str = ""
    """The token that browsers need (default: on another --host a fresh one, which is printed)."""


def run(arguments: list[str]) -> int:
    """coplay serve [FOLDER] …"""
    from coplay.games.registry import game_parts

    name, config = option(arguments, "game"), None
    if name is None:
        name, config = game_of_runs(arguments)
    kind, maker = game_parts(name)
    default: ServeArguments[Any] = ServeArguments(game=config or kind(), game_name=name)
    given = parse(ServeArguments[kind], arguments, "serve", default, computes=False)  # type: ignore
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(
            f"coplay serve needs {missing[0]}, which is not installed: {how_to_install('web')}"
        )
    if not 0 <= given.port <= 65535:
        raise UserError(f"--port {given.port}: a port is a number from 0 to 65535")
    if given.seat and given.seating:
        raise UserError("give --seat, among the players of a run, or --seating, not both")
    if given.seat or given.seating:
        serve_game(given, maker)
    else:
        serve_folder(given)
    return 0


def serve_folder(given: ServeArguments) -> None:
    """Show the runs of a folder."""
    from coplay.serve.server import serve
    from coplay.serve.watching import watching_app

    if not given.folder.is_dir():
        raise UserError(f"there is no folder {given.folder}")
    serve(watching_app(given.folder.resolve()), given.host, given.port, given.token, tell)


def serve_game(given: ServeArguments, maker: Any) -> None:
    """Let people play."""
    from coplay.core.compilation import use_cache
    from coplay.serve.references import HUMAN
    from coplay.serve.server import serve
    from coplay.serve.start import game_app
    from coplay.training.run import load_run
    from coplay.training.seating import split_seating

    use_cache()
    if given.seat:
        played = load_run(given.folder)
        game, config = played.game, played.config
        name, fields, entries = config.game_name, config.game, list(played.entries)
        for seat in given.seat:
            if not 0 <= seat < game.seats:
                raise UserError(f"--seat {seat}: {game.name} has the seats 0 to {game.seats - 1}")
            entries[seat] = HUMAN
    else:
        name, fields = given.game_name, given.game
        game = maker(given.game)
        entries = split_seating(given.seating, game)
        if HUMAN not in entries:
            raise UserError(f"--seating {given.seating}: write {HUMAN} for each seat of a person")
    out = None
    if given.record:
        out = given.out or Path("data") / time.strftime("human-%Y%m%d-%H%M%S")
    tell("the players get ready …")
    app = game_app(game, name, fields, entries, given.seed, out, given.greedy, given.thinking)
    words = "nothing is recorded" if out is None else f"whole games are recorded in {out}"
    tell(f"{game.name}: {', '.join(entries)}; {words}")
    serve(app, given.host, given.port, given.token, tell)


def tell(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
