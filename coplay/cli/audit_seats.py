"""coplay audit seats: is every seat treated alike?"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro

from coplay.cli.arguments import for_game, option, parse
from coplay.core.config import PositiveFloat, PositiveInt, Seed
from coplay.core.files import new_folder

FIRST = ("game", "player", "quick", "steps", "seeds", "seed", "training", "out", "json")
"""The options that matter first."""

QUICK_EPISODES = 100_000
"""Episodes at most for each player, of a quick audit."""

GameConfig = TypeVar("GameConfig")
LearnerConfig = TypeVar("LearnerConfig")


@dataclass(frozen=True)
class AuditSeatsArguments(Generic[GameConfig, LearnerConfig]):
    """Is every seat treated alike, by the game and by the learner? Exit code 0: yes, 1: no."""

    game: GameConfig
    learner: Annotated[LearnerConfig, tyro.conf.arg(name="")]
    game_name: Annotated[str, tyro.conf.arg(name="game")] = "stag-hunt"
    """The game by name; its own fields are --game.FIELD."""
    player: str = "ppo"
    """The learner by name; its own fields are options as in coplay train."""
    steps: PositiveInt = 300_000
    """Game steps of each training run."""
    seeds: PositiveInt = 8
    """Seeds of each training run."""
    seed: Seed = 0
    """First seed of all randomness."""
    copies: PositiveInt = 256
    """Game copies played at once."""
    rollout: PositiveInt = 32
    """Steps every copy plays between two updates."""
    among: str = ""
    """Player of the other seats while one learner moves through all of them; default: the game's
    first scripted player."""
    advantage: PositiveFloat = 0.02
    """Smallest advantage of one seat, as a share of the reward, that must not be missed."""
    episodes: PositiveInt = 2_000_000
    """Episodes at most, for each player in the test of the seats' worth."""
    keep_going: bool = False
    """Train also if a fault is found before."""
    training: bool = True
    """Also compare the seats in training runs, which takes most of the time."""
    quick: bool = False
    """A first answer sooner: no training runs, and at most 100,000 episodes for each player. Small
    advantages of a seat can be missed; the audit says which would have been found."""
    out: Path | None = None
    """Folder for the page, the pictures and the training runs; default: a new one below runs/."""
    json: bool = False
    """Print the result as one JSON object on standard output."""


def run(arguments: list[str]) -> int:
    """coplay audit seats …"""
    from coplay.api.evaluating import audit_config
    from coplay.evaluation.audits.seats import audit_seats
    from coplay.reports.audit_page import write_audit
    from coplay.reports.progress import ProgressLine
    from coplay.reports.results import print_audit
    from coplay.training.config import RunConfig

    game_name, player = option(arguments, "game") or "stag-hunt", option(arguments, "player")
    kind, default = for_game(AuditSeatsArguments, game_name, player or "ppo")
    given: AuditSeatsArguments[Any, Any] = parse(
        kind, arguments, "audit seats", default, first=FIRST
    )
    out = given.out or new_folder("audit", game_name)
    settings = RunConfig(
        steps=given.steps,
        seed=given.seed,
        seeds=given.seeds,
        copies=given.copies,
        rollout=given.rollout,
    )
    config = audit_config(given.player, given.game_name, given.learner, given.game, settings)
    with ProgressLine() as progress:
        result = audit_seats(
            config,
            out,
            given.among,
            given.advantage,
            min(given.episodes, QUICK_EPISODES) if given.quick else given.episodes,
            given.keep_going,
            given.training and not given.quick,
            progress,
        )
    print_audit(result, write_audit(out, result, config), given.json)
    return 0 if result.passed else 1
