"""The seat audit: is every seat of a game, and every seat of a learner, treated alike?

The chain a careful researcher would go: what can be decided exactly first (seconds), then the same
player in every seat, then real training. See docs/explanation/audits.md.
"""

from collections.abc import Iterator
from pathlib import Path

from coplay.core.compilation import use_cache
from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.evaluation.audits.checks import Audit, Check
from coplay.evaluation.audits.seat_fairness import fairness_checks
from coplay.evaluation.audits.seat_learning import learning_checks, plan_runs
from coplay.evaluation.audits.seat_rotation import game_checks, learner_checks
from coplay.training.config import TrainConfig
from coplay.training.phases import plan_phases
from coplay.training.players import make_player
from coplay.training.run import RunFolder, make_game_of
from coplay.training.trainer import Watcher

STAGES = {
    "game": "rules, legal actions, who is alive, and how positions are drawn",
    "reward bookkeeping": "which seat a reward is credited to",
    "ego view": "what each seat is shown, itself first and the others in cyclic order",
    "initialisation": "parameters before learning",
    "acting": "from ego views to actions",
    "batch": "which steps of whom are learned from",
    "advantages": "values, advantages and targets",
    "loss": "losses and gradients",
    "update": "from gradients to new parameters",
}


def audit_seats(
    config: TrainConfig,
    out: Path,
    among: str = "",
    advantage: float = 0.02,
    episodes: int = 2_000_000,
    keep_going: bool = False,
    training: bool = True,
    watcher: Watcher | None = None,
) -> Audit:
    """Audit a game and a learner; the training runs go into the folder `out`.

    config: what is audited: game, learner, and the steps, seeds and copies of its training runs.
    among: the player of the other seats while one learner moves through all of them; default: the
        game's first scripted player.
    advantage: of one seat over the others, as a share of the reward, that must not be missed.
    episodes: at most, for each player in the test of the seats' worth.
    keep_going: train also if a fault was found before. training: False ends the audit before the
        checks that train, which take most of the time.
    """
    use_cache()
    watcher = watcher or Watcher()
    game = make_game_of(config)
    if config.run.seating or config.run.switch:
        raise UserError("an audit chooses who sits where itself: leave out seating and switch")
    if not game.symmetric:
        raise UserError(
            f"the seats of {config.game_name} cannot be renumbered (they may differ by its rules, "
            "or its state is out of reach), so they cannot be audited; audit the learner on a game "
            "whose seats are alike, such as stag-hunt"
        )
    if game.seats < 2:
        raise UserError(f"{config.game_name} has one seat: there is nothing to compare")
    among = among or next(iter(game.scripted), "random")
    make_player(among, game)
    runs = plan_runs(config, game, among, out)
    if not 0 < advantage < 1:
        raise UserError(f"advantage must be between 0 and 1, not {advantage}")
    if episodes < 2:
        raise UserError(f"episodes must be at least 2, not {episodes}")
    checks: list[Check] = []
    for check in _chain(config, game, runs, among, advantage, episodes, watcher):
        if check is None:
            if not training:
                break
            if keep_going or all(check.passed for check in checks):
                continue
            watcher.say("a fault is found: no training (--keep-going trains nevertheless)")
            break
        watcher.say(f"{'passed' if check.passed else 'FAILED'}: {check.name}: {check.detail}")
        checks.append(check)
    return Audit(f"{config.player} on {config.game_name}", STAGES, tuple(checks))


def _chain(
    config: TrainConfig,
    game: Game,
    runs: list[tuple[RunFolder, TrainConfig]],
    among: str,
    advantage: float,
    episodes: int,
    watcher: Watcher,
) -> Iterator[Check | None]:
    """All checks in turn; None stands before those that train for long."""
    run = config.run
    phase = plan_phases(config, game)[0]
    learner, parts = phase.learners[0], phase.parts[0]
    watcher.say("exact equivariance")
    yield from game_checks(game, run.seed)
    yield from learner_checks(game, learner, run.copies, run.rollout, run.seed, parts)
    watcher.say("the same player in every seat")
    yield from fairness_checks(game, advantage, episodes, run.seed, watcher.say, watcher.work)
    yield None
    yield from learning_checks(runs, game, among, watcher)
