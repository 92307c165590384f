"""coplay train: train a player, or go on with a run."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

import tyro

from coplay.cli.arguments import option, parse
from coplay.cli.help import FIRST, HELP
from coplay.core.errors import UserError
from coplay.core.files import new_folder

GameConfig = TypeVar("GameConfig")
LearnerConfig = TypeVar("LearnerConfig")
RunSettings = TypeVar("RunSettings")


@dataclass(frozen=True)
class TrainArguments(Generic[GameConfig, LearnerConfig, RunSettings]):
    """Train a player. Everything of the run goes into the folder --out."""

    game: GameConfig
    learner: Annotated[LearnerConfig, tyro.conf.arg(name="")]
    run: Annotated[RunSettings, tyro.conf.arg(name="")]
    game_name: Annotated[str, tyro.conf.arg(name="game")] = "stag-hunt"
    """The game by name; its own fields are --game.FIELD."""
    out: Path | None = None
    """Folder of the new run; default: a new one below runs/."""
    resume: Path | None = None
    """Go on with the run in this folder; only --steps may be given beside it."""
    force: bool = False
    """With --resume: go on although the configuration or the version of coplay is not what the
    checkpoint was written with; the run's history says so."""
    config: Path | None = None
    """Start from the configuration of another run (its config.json), or from a TOML or YAML file as
    coplay config writes it; other options override it."""
    on: str = ""
    """Train the seeds one by one, several at a time: local:K (K worker processes), ray (the Ray
    cluster that is there, or one on this machine), or ray:ADDRESS. The same folder comes out."""
    cpus: int = 1
    """With --on: cores of each seed, as in coplay sweep."""
    files: Literal["auto", "shared", "returned"] = "auto"
    """With --on ray: how files come to --out, as in coplay sweep."""
    coordinator: str = ""
    """One run by several processes that share --devices: HOST:PORT of the first one, the same for
    all; auto: as SLURM says."""
    processes: int = 1
    """With --coordinator: how many processes there are."""
    process: int = 0
    """With --coordinator: which of them this is, from 0 on. 0 writes the run."""
    adapts: str = ""
    """At the end let every seed's player adapt to these co-players, one per other seat, as in
    nh,nh,nh. Normalised scores (0 is random play, 1 the best response) come into adapted.json."""
    pictures: bool = True
    """Leave a page, a replay, a learning curve and a film in the folder."""
    json: bool = False
    """Print the summary as one JSON object on standard output."""


def configured(arguments: list[str]) -> tuple[Any, Any, Any]:
    """The arguments of `coplay train`, the run's configuration, and the configuration that it
    starts from, if any."""
    from coplay.training.config import RunConfig, TrainConfig
    from coplay.training.presets import presets_of

    player, arguments = arguments[0], arguments[1:]
    base, default = starting_with(player, arguments, "train")
    game_name = default["game_name"]
    game_type, learner_type = type(default["game"]), type(default["learner"])
    kind = TrainArguments[game_type, learner_type, RunConfig]  # type: ignore[valid-type]
    fitting = [f"  {preset.name}: {preset.reproduces}" for preset in presets_of(player)]
    more = ["", f"presets for {player}:", *fitting] if fitting else []
    first = [name for name in FIRST if fitting or name != "preset"]
    given = parse(
        kind, arguments, f"train {player}", TrainArguments(**default), first=first, more=more
    )
    return given, TrainConfig(player, game_name, given.learner, given.game, given.run), base


def starting_with(player: str, arguments: list[str], command: str) -> tuple[Any, dict[str, Any]]:
    """The configuration that a run starts from, if any; and game, learner, run and game_name where
    nothing else is said."""
    from coplay.algorithms.registry import learner_parts
    from coplay.games.registry import game_parts
    from coplay.training.config import run_defaults
    from coplay.training.presets import from_preset

    base = started_from(option(arguments, "resume"), option(arguments, "config"))
    if (preset := option(arguments, "preset")) is not None:
        if base is not None:
            raise UserError("--preset is for a new run without --config: leave one of them out")
        base = from_preset(preset, player, option(arguments, "game"))
    if base is not None and base.player != player:
        raise UserError(f"that run trains '{base.player}': use coplay {command} {base.player}")
    learner_type = learner_parts(player)[0]
    game_name = option(arguments, "game") or (base.game_name if base else "stag-hunt")
    game_type = game_parts(game_name)[0]
    if base is not None and base.game_name != game_name:
        base = replace(base, game=game_type())
    return base, {
        "game": base.game if base else game_type(),
        "learner": base.learner if base else learner_type(),
        "run": base.run if base else run_defaults(learner_type),
        "game_name": game_name,
    }


def run(arguments: list[str]) -> int:
    """coplay train PLAYER …"""
    from coplay.algorithms.registry import LEARNERS
    from coplay.api.evaluating import adapt_seeds, check_adapts
    from coplay.api.training import (
        finish_pictures,
        finished_summary,
        resumed_config,
        run_training,
        train_seeds_on,
    )
    from coplay.reports.progress import ProgressLine
    from coplay.reports.results import print_summary
    from coplay.sweeps.config import SweepConfig
    from coplay.training.processes import is_first
    from coplay.training.run import RunFolder

    if not arguments or arguments[0] in HELP:
        print(f"usage: coplay train PLAYER …\n\nplayers to train: {', '.join(LEARNERS)}")
        print("coplay train PLAYER --help explains all options")
        return 0
    resume = option(arguments, "resume")
    join_others(arguments)
    given, config, base = configured(arguments)
    if resume is None:
        if given.force:
            raise UserError("--force goes with --resume")
        folder = RunFolder(given.out or new_folder(config.player, config.game_name))
    else:
        folder = RunFolder(Path(resume))
        check_unchanged(given, config, base, folder)
        config = resumed_config(folder, given.run.steps)
        summary = finished_summary(folder, config)
        if summary is not None:
            with ProgressLine() as progress:
                finish_pictures(folder, summary, progress)
                if given.adapts:
                    adapt_seeds(folder, given.adapts, progress)
            print(f"{folder.path} is finished: {summary['steps']} steps", file=sys.stderr)
            print_summary(summary, given.json)
            return 0
    if given.adapts:
        check_adapts(config, given.adapts)
    with ProgressLine() as progress:
        if given.on:
            where = SweepConfig(on=given.on, cpus=given.cpus, files=given.files)
            train_seeds_on(where, config, folder, resume is not None, progress)
        begun = resume is not None or bool(given.on)
        summary = run_training(config, folder, begun, progress, given.pictures, given.force)
        if given.adapts and is_first():
            adapt_seeds(folder, given.adapts, progress)
    if given.coordinator and not is_first():
        return 0
    print_summary(summary, given.json, folder)
    return 0


def join_others(arguments: list[str]) -> None:
    """Become one of several processes, if --coordinator says so: before anything asks JAX for its
    devices."""
    coordinator, *numbers = (option(arguments, n) for n in ("coordinator", "processes", "process"))
    if coordinator is None:
        if numbers != [None, None]:
            raise UserError("--processes and --process need --coordinator HOST:PORT")
        return
    here = option(arguments, "out") or option(arguments, "resume")
    if here is None or option(arguments, "on") is not None:
        raise UserError("--coordinator needs the same --out in all processes, and no --on")
    if any(text is not None and not text.isdecimal() for text in numbers):
        raise UserError("--processes and --process are whole numbers")

    from coplay.training.processes import join

    join(coordinator, *(int(text or usual) for text, usual in zip(numbers, (1, 0), strict=True)))


def started_from(resume: str | None, config: str | None) -> Any:
    """The configuration of the run that is resumed or imitated, if any."""
    from coplay.training.config_file import SUFFIXES, read_settings
    from coplay.training.run import RunFolder, read_config

    if resume is not None:
        return RunFolder(Path(resume)).read_config()
    if config is not None and config.endswith(SUFFIXES):
        return read_settings(Path(config))
    return None if config is None else read_config(Path(config))


def check_unchanged(given: TrainArguments, config: Any, base: Any, folder: Any) -> None:
    """An error if a run that is resumed is given more than its number of steps."""
    if given.out is not None:
        raise UserError("--resume goes on in the run's own folder: leave out --out")
    if config != replace(base, run=replace(base.run, steps=given.run.steps)):
        raise UserError(
            "a resumed run keeps its configuration: only --steps may be given; for a new run like "
            f"it use --config {folder.config_file}"
        )
