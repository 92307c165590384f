"""coplay audit seats: is every seat treated alike?"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro

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
    steps: int = 300_000
    """Game steps of each training run."""
    seeds: int = 8
    """Seeds of each training run."""
    seed: int = 0
    """First seed of all randomness."""
    copies: int = 256
    """Game copies played at once."""
    rollout: int = 32
    """Steps every copy plays between two updates."""
    among: str = ""
    """Player of the other seats while one learner moves through all of them; default: the game's
    first scripted player."""
    advantage: float = 0.02
    """Smallest advantage of one seat, as a share of the reward, that must not be missed."""
    episodes: int = 2_000_000
    """Episodes at most, for each player in the test of the seats' worth."""
    keep_going: bool = False
    """Train also if a fault is found before."""
    out: Path | None = None
    """Folder for the page, the pictures and the training runs; default: a new one below runs/."""
    json: bool = False
    """Print the result as one JSON object on standard output."""


def run_audit_seats(given: AuditSeatsArguments[Any, Any], out: Path) -> int:
    """Audit, write the page, show the verdict."""
    from coplay.evaluation.audits.seats import audit_seats as run_audit
    from coplay.reports.audit_page import write_audit
    from coplay.reports.progress import ProgressLine
    from coplay.reports.results import print_audit
    from coplay.training.config import RunConfig, TrainConfig
    from coplay.training.trainer import Interrupted, RunStopped

    run = RunConfig(
        steps=given.steps,
        seed=given.seed,
        seeds=given.seeds,
        copies=given.copies,
        rollout=given.rollout,
        checkpoint_every=given.steps,
        keep=1,
    )
    config = TrainConfig(given.player, given.game_name, given.learner, given.game, run)
    try:
        with ProgressLine() as progress:
            result = run_audit(
                config,
                out,
                given.among,
                given.advantage,
                given.episodes,
                given.keep_going,
                progress,
            )
    except RunStopped as error:
        print(f"coplay: {error}", file=sys.stderr)
        return 1
    except Interrupted:
        print("coplay: stopped; the same command goes on where it was", file=sys.stderr)
        return 130
    print_audit(result, write_audit(out, result), given.json)
    return 0 if result.passed else 1
