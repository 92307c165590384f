"""coplay audit wiring: does every declared part of a learner act?"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro

from coplay.cli.arguments import for_game, option, parse
from coplay.core.config import Seed
from coplay.core.files import new_folder

FIRST = ("game", "player", "quick", "seed", "configuration", "out", "json")
"""The options that matter first."""

GameConfig = TypeVar("GameConfig")
LearnerConfig = TypeVar("LearnerConfig")


@dataclass(frozen=True)
class AuditWiringArguments(Generic[GameConfig, LearnerConfig]):
    """Does every declared part of a learner act? Exit code 0: yes, 1: no."""

    game: GameConfig
    learner: Annotated[LearnerConfig, tyro.conf.arg(name="")]
    game_name: Annotated[str, tyro.conf.arg(name="game")] = "stag-hunt"
    """The game by name; its own fields are --game.FIELD."""
    player: str = "ppo"
    """The learner by name; its own fields are options as in coplay train."""
    seed: Seed = 0
    """Seed of all randomness."""
    configuration: bool = True
    """Also look for fields of the configuration without effect, which takes most of the time."""
    quick: bool = False
    """A first answer sooner: leave out the fields of the configuration."""
    out: Path | None = None
    """Folder for the page; default: a new one below runs/."""
    json: bool = False
    """Print the result as one JSON object on standard output."""


def run(arguments: list[str]) -> int:
    """coplay audit wiring …"""
    from coplay.evaluation.audits.wiring import audit_wiring
    from coplay.reports.audit_page import write_audit
    from coplay.reports.progress import ProgressLine
    from coplay.reports.results import print_audit
    from coplay.training.config import RunConfig, TrainConfig

    game_name, player = option(arguments, "game") or "stag-hunt", option(arguments, "player")
    kind, default = for_game(AuditWiringArguments, game_name, player or "ppo")
    given: AuditWiringArguments[Any, Any] = parse(
        kind, arguments, "audit wiring", default, first=FIRST
    )
    out = given.out or new_folder("audit", game_name)
    config = TrainConfig(
        given.player, given.game_name, given.learner, given.game, RunConfig(seed=given.seed)
    )
    with ProgressLine() as progress:
        result = audit_wiring(config, progress, given.configuration and not given.quick)
    print_audit(result, write_audit(out, result, config, "Wiring audit"), given.json)
    return 0 if result.passed else 1
