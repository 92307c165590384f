"""coplay adapt: a player meets co-players it does not know."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro

from coplay.cli.arguments import option, parse
from coplay.cli.help import HELP
from coplay.core.errors import UserError
from coplay.core.files import new_folder
from coplay.evaluation.adaptation.best_response import BestResponseConfig
from coplay.evaluation.adaptation.protocol import AdaptConfig

FIRST = (
    "against",
    "side",
    "suite",
    "partners",
    "steps",
    "seeds",
    "learn",
    "normalise",
    "out",
    "json",
)
"""The options that matter first."""

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
    side: str = ""
    """On which side the player is, in a game with sides: predators or prey. It takes all seats of
    that side, and --against names the other side; or one seat in turn, if --against names its
    companions first."""
    suite: str = ""
    """A suite of co-player sets by name instead: stag-hunt, snowdrift, predators or prey."""
    partners: str = ""
    """A pack of partners instead (coplay partners make), or several with commas between them: each
    partner in all other seats."""
    mixed: int = 0
    """With --partners: so many companies of different partners besides."""
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
    on: str = ""
    """Meet several sets of co-players at a time, with the best responses to them: local:K (K worker
    processes), ray (the Ray cluster that is there, or one on this machine), or ray:ADDRESS."""
    json: bool = False
    """Print the result as one JSON value on standard output."""


@dataclass(frozen=True)
class SetArguments:
    """Meet one set of co-players, for a process that meets several with --on."""

    order: Path
    """Who meets whom."""
    out: Path
    """Folder of the results."""


def default_arguments(
    arguments: list[str], game_name: str | None
) -> tuple[type, AdaptArguments[Any]]:
    """The game's configuration class, and the arguments where nothing is said."""
    from coplay.api.evaluating import game_of_entry
    from coplay.games.registry import game_parts
    from coplay.training.seating import is_run

    game_config = None
    player = arguments[0] if arguments else ""
    if player.startswith("-") and player not in HELP:
        raise UserError("coplay adapt PLAYER …: the player comes before the options")
    if player and is_run(player):
        own, game_config = game_of_entry(player)
        if game_name not in (None, own):
            raise UserError(f"'{player}' plays {own}: leave out --game {game_name}")
        game_name = own
    game_name = game_name or "stag-hunt"
    kind = game_parts(game_name)[0]
    return kind, AdaptArguments(
        player=tyro.MISSING, game=game_config or kind(), game_name=game_name
    )


def run(arguments: list[str]) -> int:
    """coplay adapt PLAYER …"""
    from coplay.api.evaluating import make_request, run_adaptation
    from coplay.reports.adaptation import print_adaptations, print_by_episode
    from coplay.reports.adaptation_page import verdict
    from coplay.reports.partners import print_companies
    from coplay.reports.progress import ProgressLine
    from coplay.reports.results import print_json

    if option(arguments, "order") is not None:
        return _do_order(parse(SetArguments, arguments, "adapt"))
    kind, default = default_arguments(arguments, option(arguments, "game"))
    given = parse(AdaptArguments[kind], arguments, "adapt", default, first=FIRST)  # type: ignore
    request = make_request(
        given.player,
        given.against,
        given.suite,
        given.partners,
        given.mixed,
        given.learners,
        given.game_name,
        given.game,
        given.adapt,
        given.normalise,
        given.best,
        given.side,
    )
    out = given.out or new_folder("adapt", given.player.split("/")[-1])
    with ProgressLine() as progress:
        found = run_adaptation(request, out, given.references, progress, given.on)
    if given.json:
        print_json(found)
    elif given.partners:
        print_companies(found, request.families)
    else:
        if not given.suite:
            print_by_episode(found)
        print_adaptations(found if given.suite else [found])
        print(verdict(found if given.suite else [found]))
    if not given.json:
        print(f"all of it with pictures: {out / 'index.html'}")
    return 0


def _do_order(given: SetArguments) -> int:
    from coplay.api.evaluating import run_adaptation
    from coplay.reports.progress import ProgressLine
    from coplay.sweeps.adapt_parts import read_order

    request, references = read_order(given.order)
    with ProgressLine() as progress:
        run_adaptation(request, given.out, references, progress)
    return 0
