"""coplay adapt: a player meets co-players it does not know."""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro

from coplay.core.errors import UserError
from coplay.core.files import write_json
from coplay.evaluation.adaptation.best_response import BestResponseConfig
from coplay.evaluation.adaptation.protocol import AdaptConfig

GameConfig = TypeVar("GameConfig")


@dataclass(frozen=True)
class AdaptArguments(Generic[GameConfig]):
    """Let a player adapt to co-players it does not know, in one game copy at a time."""

    player: Annotated[str, tyro.conf.Positional]
    """The focal player: a run such as runs/hop or runs/hop@planner=none, or a scripted player."""
    game: GameConfig
    against: str = ""
    """Its co-players, one per other seat, in cyclic order after the focal player's: nh,ns,random.
    ppo is one that learns from nothing, learning:runs/ppo a run's that goes on learning."""
    suite: str = ""
    """A suite of co-player sets by name instead: stag-hunt or snowdrift."""
    learners: str = "ppo"
    """What the learning co-players of a suite are: ppo, or learning:runs/ppo."""
    game_name: Annotated[str, tyro.conf.arg(name="game")] = "stag-hunt"
    """The game by name; its own fields are --game.FIELD. Default: the game of the run, else
    stag-hunt."""
    adapt: Annotated[AdaptConfig, tyro.conf.arg(name="")] = field(default_factory=AdaptConfig)
    normalise: bool = True
    """Measure scores by random play and by the best response."""
    best: BestResponseConfig = field(default_factory=BestResponseConfig)
    """How best responses are trained that are not there yet."""
    references: Path = Path("runs/best-responses")
    """Where best responses are kept, for all who ask for them."""
    out: Path | None = None
    """Folder of the results; default: a new one below runs/. One that was interrupted goes on."""
    json: bool = False
    """Print the result as one JSON value on standard output."""


def default_arguments(
    arguments: list[str], game_name: str | None
) -> tuple[type, AdaptArguments[Any]]:
    """The game's configuration class, and the arguments where nothing is said."""
    from coplay.games.registry import game_parts
    from coplay.training.run import RunFolder
    from coplay.training.seating import is_run

    game_config = None
    player = arguments[0] if arguments else ""
    if player.startswith("-") and player not in ("-h", "--help"):
        raise UserError("coplay adapt PLAYER …: the player comes before the options")
    if player and is_run(player):
        config = RunFolder(Path(player.split("@")[0])).read_config()
        if game_name not in (None, config.game_name):
            raise UserError(f"'{player}' plays {config.game_name}: leave out --game {game_name}")
        game_name, game_config = config.game_name, config.game
    game_name = game_name or "stag-hunt"
    kind = game_parts(game_name)[0]
    return kind, AdaptArguments(
        player=tyro.MISSING, game=game_config or kind(), game_name=game_name
    )


def run_adapt(given: AdaptArguments[Any]) -> int:
    """Play, keep, draw and show."""
    from coplay.evaluation.adaptation.meetings import KeptResults, Request, meet_all
    from coplay.evaluation.adaptation.protocol import split_against
    from coplay.evaluation.adaptation.suites import suite_sets
    from coplay.games.registry import game_parts
    from coplay.reports.adaptation import draw_adaptation, draw_suite, print_adaptations
    from coplay.reports.progress import ProgressLine
    from coplay.reports.results import print_json
    from coplay.training.trainer import Interrupted, RunStopped

    if bool(given.against) == bool(given.suite):
        raise UserError("say who the co-players are: either --against A,B,C or --suite NAME")
    game = game_parts(given.game_name)[1](given.game)
    if given.suite:
        sets = suite_sets(given.suite, game, given.learners)
    else:
        sets = [",".join(split_against(given.against, game))]
    request = Request(
        focal=given.player,
        sets=tuple(sets),
        game_name=given.game_name,
        game=given.game,
        adapt=given.adapt,
        normalise=given.normalise,
        best=given.best,
    )
    out = given.out or _new_folder(given.player)

    def finished(kept: KeptResults, result: dict[str, Any]) -> None:
        draw_adaptation(kept.path(result["against"], "png"), result)

    try:
        with ProgressLine() as progress:
            results = meet_all(request, game, out, given.references, progress, finished)
    except RunStopped as error:
        print(f"coplay: {error}", file=sys.stderr)
        return 1
    except Interrupted:
        print("coplay: stopped; the same command goes on where it was", file=sys.stderr)
        return 130
    write_json(out / "adapt.json", results if given.suite else results[0])
    if given.suite:
        draw_suite(out / "suite.png", results)
    if given.json:
        print_json(results if given.suite else results[0])
    else:
        print_adaptations(results)
        print(f"results and pictures are in {out}")
    return 0


def _new_folder(player: str) -> Path:
    """A folder below runs/ that does not exist yet."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", player.split("/")[-1]).strip("-")
    number = 1
    while (path := Path("runs") / f"adapt-{name}-{number}").exists():
        number += 1
    return path
