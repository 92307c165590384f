"""coplay sweep: many runs that differ in some fields."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro

from coplay.cli.aliases import ALIASES
from coplay.cli.arguments import option, parse
from coplay.cli.help import HELP
from coplay.cli.train import starting_with
from coplay.core.files import new_folder

FIRST = (
    *("vary", "game", "preset", "steps", "seeds", "out", "sampler", "trials", "prune"),
    *("objective", "on"),
)
"""The options that matter first."""

GameConfig = TypeVar("GameConfig")
LearnerConfig = TypeVar("LearnerConfig")
RunSettings = TypeVar("RunSettings")
SweepSettings = TypeVar("SweepSettings")


@dataclass(frozen=True)
class SweepArguments(Generic[GameConfig, LearnerConfig, RunSettings, SweepSettings]):
    """Run a learner with every setting of some fields and say which is best. Each setting is an
    ordinary run in a folder below --out. All options of coplay train are options of the runs."""

    game: GameConfig
    learner: Annotated[LearnerConfig, tyro.conf.arg(name="")]
    run: Annotated[RunSettings, tyro.conf.arg(name="")]
    sweep: Annotated[SweepSettings, tyro.conf.arg(name="")]
    vary: tuple[str, ...] = ()
    """Fields and their values: discount=0.9,0.99 is a list, discount=0.9..0.99 a range,
    optimiser.learning-rate=log:1e-4..1e-2 a logarithmic one, search.simulations=int:8..32 whole
    numbers, discount=0.9..0.99:4 four values from end to end."""
    game_name: Annotated[str, tyro.conf.arg(name="game")] = "stag-hunt"
    """The game by name; its own fields are --game.FIELD."""
    out: Path | None = None
    """Folder of the new sweep; default: a new one below runs/."""
    config: Path | None = None
    """Start from the configuration of another run (its config.json), or from a TOML or YAML file as
    coplay config writes it; other options override it."""
    json: bool = False
    """Print the result as one JSON object on standard output."""


@dataclass(frozen=True)
class ResumeSweepArguments:
    """Go on with a sweep where it was."""

    resume: Path
    """Folder of the sweep."""
    on: str | None = None
    """Run elsewhere from here on: local:K, ray or ray:ADDRESS."""
    minutes: float | None = None
    """No trial begins after so many minutes; 0: no limit."""
    json: bool = False
    """Print the result as one JSON object on standard output."""


def run(arguments: list[str]) -> int:
    """coplay sweep PLAYER … or coplay sweep --resume FOLDER"""
    from coplay.algorithms.registry import LEARNERS

    if not arguments or arguments[0] in HELP:
        print("usage: coplay sweep PLAYER --vary FIELD=VALUES … --out FOLDER")
        print("       coplay sweep --resume FOLDER\n")
        print(f"players to train: {', '.join(LEARNERS)}")
        print("coplay sweep PLAYER --help explains all options")
        return 0
    if option(arguments, "resume") is not None:
        return _resume(arguments)
    return _begin(arguments)


def _begin(arguments: list[str]) -> int:
    from coplay.sweeps.config import SweepConfig
    from coplay.training.config import RunConfig, TrainConfig

    player, arguments = arguments[0], arguments[1:]
    _, usual = starting_with(player, arguments, "sweep")
    game_type, learner_type = type(usual["game"]), type(usual["learner"])
    kind = SweepArguments[game_type, learner_type, RunConfig, SweepConfig]  # type: ignore[valid-type]
    default: SweepArguments[Any, Any, Any, Any] = SweepArguments(sweep=SweepConfig(), **usual)
    given = parse(kind, arguments, f"sweep {player}", default, first=FIRST)

    from coplay.api.sweeping import new_sweep
    from coplay.sweeps.folder import SweepFolder
    from coplay.sweeps.space import texts_of

    vary = {ALIASES.get(name, name): text for name, text in texts_of(given.vary).items()}
    game_name = given.game_name
    config = TrainConfig(player, game_name, given.learner, given.game, given.run)
    state = new_sweep(config, given.sweep, vary)
    folder = SweepFolder(given.out or new_folder("sweep", player, game_name))
    return _run(state, folder, False, given.json)


def _resume(arguments: list[str]) -> int:
    given: ResumeSweepArguments = parse(ResumeSweepArguments, arguments, "sweep")

    from coplay.api.sweeping import resumed_sweep
    from coplay.sweeps.folder import SweepFolder

    folder = SweepFolder(given.resume)
    own = {"on": given.on, "minutes": given.minutes}
    state = resumed_sweep(folder, {name: x for name, x in own.items() if x is not None})
    return _run(state, folder, True, given.json)


def _run(state: Any, folder: Any, resume: bool, as_json: bool) -> int:
    from coplay.api.sweeping import run_sweep
    from coplay.reports.sweep_table import SweepTable, print_sweep

    with SweepTable() as table:
        done = run_sweep(state, folder, resume, table)
    print_sweep(done, folder.path, as_json)
    return 0 if all(one.state != "failed" for one in done.trials) else 1
