"""The command line. Each command is a typed dataclass whose fields `--help` explains."""

import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro

from coplay.cli.arguments import for_game, option, parse, values
from coplay.core.errors import UserError, WorkerFailed, unknown

GameConfig = TypeVar("GameConfig")
LearnerConfig = TypeVar("LearnerConfig")
RunSettings = TypeVar("RunSettings")

HELP = """coplay: multi-agent reinforcement learning with and about others

  coplay train PLAYER   train a player by self-play or among others, resume a run
  coplay play           let players play and count what every seat gets; cross-play of runs
  coplay adapt PLAYER   let a player adapt to co-players it does not know
  coplay collect        keep what players of a mix do, as a dataset
  coplay pretrain PART  train a model of others or of the world on a dataset
  coplay inspect PART   look at what such a model knows
  coplay watch RUN      look at an episode, in the terminal or as a GIF
  coplay audit seats    prove that a game and a learner treat every seat alike
  coplay audit wiring   prove that every declared part of a learner acts
  coplay list [FOLDER]  what runs there are, how far, how good
  coplay compare A B …  runs beside each other: table, curves, intervals
  coplay bench [search|hop-plus]  how fast it is here

Each command explains its options with --help."""


def main() -> None:
    """Run a command and exit with 0, 1 (it failed), 2 (wrong input) or 130 (stopped)."""
    # As with `python -m`: environments in files of the current folder can be named.
    sys.path.append(str(Path.cwd()))
    try:
        code = run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # as `coplay … | head` does: who reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run a command; returns the exit code."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(HELP)
        return 0
    if arguments[0] in ("-V", "--version"):
        from coplay.core.version import VERSION

        print(VERSION)
        return 0
    try:
        if arguments[0] not in COMMANDS:
            raise unknown("command", arguments[0], COMMANDS)
        return COMMANDS[arguments[0]](arguments[1:])
    except UserError as error:
        print(f"coplay: {error}", file=sys.stderr)
        return 2
    except WorkerFailed as error:
        print(f"coplay: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("coplay: stopped", file=sys.stderr)
        return 130


# --- train -------------------------------------------------------------------------------------


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
    config: Path | None = None
    """Start from the configuration of another run (its config.json); other options override it."""
    json: bool = False
    """Print the summary as one JSON object on standard output."""


def train(arguments: list[str]) -> int:
    """coplay train PLAYER …"""
    from coplay.algorithms.registry import LEARNERS, learner_parts
    from coplay.api import finished_summary, resumed_config
    from coplay.games.registry import game_parts
    from coplay.reports.progress import ProgressLine
    from coplay.reports.results import after_training, print_summary
    from coplay.training.config import RunConfig, TrainConfig, run_defaults
    from coplay.training.run import RunFolder, read_config
    from coplay.training.trainer import Interrupted, RunStopped, Trainer

    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"usage: coplay train PLAYER …\n\nplayers to train: {', '.join(LEARNERS)}")
        print("coplay train PLAYER --help explains all options")
        return 0
    player, arguments = arguments[0], arguments[1:]
    learner_type = learner_parts(player)[0]
    resume, start_from = option(arguments, "resume"), option(arguments, "config")
    base: TrainConfig | None = None
    if resume is not None:
        base = RunFolder(Path(resume)).read_config()
    elif start_from is not None:
        base = read_config(Path(start_from))
    if base is not None and base.player != player:
        raise UserError(f"that run trains '{base.player}': use coplay train {base.player}")
    game_name = option(arguments, "game") or (base.game_name if base else "stag-hunt")
    game_type = game_parts(game_name)[0]
    if base is not None and base.game_name != game_name:
        base = replace(base, game=game_type())
    default: TrainArguments[Any, Any, Any] = TrainArguments(
        game=base.game if base else game_type(),
        learner=base.learner if base else learner_type(),
        run=base.run if base else run_defaults(learner_type),
        game_name=game_name,
    )
    kind = TrainArguments[game_type, learner_type, RunConfig]  # type: ignore[valid-type]
    given = parse(kind, arguments, f"train {player}", default)
    config = TrainConfig(player, game_name, given.learner, given.game, given.run)

    if resume is not None:
        folder = RunFolder(Path(resume))
        if given.out is not None:
            raise UserError("--resume goes on in the run's own folder: leave out --out")
        if config != replace(base, run=replace(base.run, steps=given.run.steps)):  # type: ignore
            raise UserError(
                "a resumed run keeps its configuration: only --steps may be given; for a new run "
                f"like it use --config {folder.config_file}"
            )
        config = resumed_config(folder, given.run.steps)
        summary = finished_summary(folder, config)
        if summary is not None:
            print(f"{folder.path} is finished: {summary['steps']} steps", file=sys.stderr)
            print_summary(summary, given.json)
            return 0
        trainer = lambda watcher: Trainer(config, folder.path, watcher, resume=True)  # noqa: E731
    else:
        folder = RunFolder(given.out or _new_folder(player, game_name))
        trainer = lambda watcher: Trainer(config, folder.path, watcher)  # noqa: E731
    try:
        with ProgressLine() as progress:
            run = trainer(progress)
            if resume is not None:
                folder.write_config(config)
            summary = run.run()
            after_training(folder, run, progress)
    except RunStopped as error:
        print(f"coplay: {error}", file=sys.stderr)
        return 1
    except Interrupted as error:
        print(f"coplay: {error}", file=sys.stderr)
        return 130
    print_summary(summary, given.json, folder)
    return 0


def _new_folder(player: str, game: str) -> Path:
    """A folder below runs/ that does not exist yet."""
    number = 1
    while (path := Path("runs") / f"{player}-{game.replace(':', '-')}-{number}").exists():
        number += 1
    return path


# --- play --------------------------------------------------------------------------------------


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
    episodes: int = 1000
    """How many episodes; in cross-play, for each pair."""
    seed: int = 0
    """Seed of all randomness."""
    copies: int | None = None
    """Game copies the episodes are spread over (default: up to 1024, of environments in worker
    processes up to 64); each plays its share one
    episode after the other, which matters for players that remember."""
    greedy: bool = False
    """Trained players take their most probable action instead of sampling."""
    out: Path | None = None
    """Picture (PNG, SVG, PDF) of a cross-play."""
    json: bool = False
    """Print the result as one JSON object on standard output."""


def play(arguments: list[str]) -> int:
    """coplay play …"""
    from coplay import api
    from coplay.games.registry import game_parts
    from coplay.reports.results import print_match
    from coplay.training.run import RunFolder

    game_name = option(arguments, "game")
    game_config = None
    if game_name is None:
        named = [*values(arguments, "seating"), *values(arguments, "cross")]
        for entry in (part for text in named for part in re.split("[,:]", text)):
            folder = RunFolder(Path(entry.split("@")[0]))
            if folder.exists():
                config = folder.read_config()
                game_name, game_config = config.game_name, config.game
                break
    game_name = game_name or "stag-hunt"
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
        return play_cross(given, game)
    if given.out is not None:
        raise UserError("--out is the picture of a cross-play (--cross)")
    record = api.play(
        game,
        given.seating,
        given.episodes,
        given.seed,
        given.copies,
        given.greedy,
    )
    print_match(record, given.json)
    return 0


def play_cross(given: PlayArguments, game: Any) -> int:
    """coplay play --cross …"""
    from coplay.core.compilation import use_cache
    from coplay.evaluation.cross_play import cross_play
    from coplay.reports.cross_play import check_picture, print_cross_play, write_heat_map

    if given.out is not None:
        check_picture(given.out)
    use_cache()
    result = cross_play(
        game,
        given.cross,
        given.episodes,
        given.seed,
        given.copies,
        given.greedy,
        lambda text: print(text, file=sys.stderr),
    )
    if given.out is not None:
        write_heat_map(given.out, result)
        print(f"wrote {given.out}", file=sys.stderr)
    print_cross_play(result, given.json)
    return 0


# --- audit -------------------------------------------------------------------------------------


def audit(arguments: list[str]) -> int:
    """coplay audit seats …, coplay audit wiring …"""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"usage: coplay audit {'|'.join(AUDITS)} …\n\nadd --help for all options")
        return 0
    if arguments[0] not in AUDITS:
        raise unknown("audit", arguments[0], AUDITS)
    return AUDITS[arguments[0]](arguments[1:])


def audit_seats(arguments: list[str]) -> int:
    """coplay audit seats …"""
    from coplay.cli.audit_seats import AuditSeatsArguments, run_audit_seats

    game_name, player = option(arguments, "game") or "stag-hunt", option(arguments, "player")
    kind, default = for_game(AuditSeatsArguments, game_name, player or "ppo")
    given = parse(kind, arguments, "audit seats", default)
    return run_audit_seats(given, given.out or _new_folder("audit", game_name))


def audit_wiring(arguments: list[str]) -> int:
    """coplay audit wiring …"""
    from coplay.cli.audit_wiring import AuditWiringArguments, run_audit_wiring

    game_name, player = option(arguments, "game") or "stag-hunt", option(arguments, "player")
    kind, default = for_game(AuditWiringArguments, game_name, player or "ppo")
    given = parse(kind, arguments, "audit wiring", default)
    return run_audit_wiring(given, given.out or _new_folder("audit", game_name))


AUDITS: dict[str, Callable[[list[str]], int]] = {"seats": audit_seats, "wiring": audit_wiring}


# --- adapt -------------------------------------------------------------------------------------


def adapt(arguments: list[str]) -> int:
    """coplay adapt PLAYER …"""
    from coplay.cli.adapt import AdaptArguments, default_arguments, run_adapt

    kind, default = default_arguments(arguments, option(arguments, "game"))
    return run_adapt(parse(AdaptArguments[kind], arguments, "adapt", default))  # type: ignore


# --- watch, list, bench ------------------------------------------------------------------------


@dataclass(frozen=True)
class WatchArguments:
    """Look at an episode of a run's players."""

    run: Annotated[Path, tyro.conf.Positional]
    """Folder of the run."""
    out: Path | None = None
    """Write a GIF to this file; without it the episode is shown in the terminal."""
    seating: str = ""
    """Who plays (default: as at the end of the run)."""
    seed: int = 0
    """Which episode."""
    greedy: bool = False
    """Trained players take their most probable action instead of sampling."""
    fps: float = 3.0
    """Frames per second."""


def watch(arguments: list[str]) -> int:
    """coplay watch RUN …"""
    from coplay.reports.results import show_episode, write_episode
    from coplay.training.run import RunFolder

    given = parse(WatchArguments, arguments, "watch")
    folder = RunFolder(given.run)
    if given.out is None:
        show_episode(folder, given.seating, given.seed, given.greedy, given.fps)
    else:
        write_episode(folder, given.out, given.seating, given.seed, given.greedy, given.fps)
        print(f"wrote {given.out}")
    return 0


@dataclass(frozen=True)
class ListArguments:
    """What runs there are, how far, how good."""

    folder: Annotated[Path, tyro.conf.Positional] = Path("runs")
    """Where to look, also in folders below it."""
    json: bool = False
    """Print a JSON list on standard output."""


def list_runs(arguments: list[str]) -> int:
    """coplay list [FOLDER]"""
    from coplay.reports.results import print_runs

    given = parse(ListArguments, arguments, "list")
    print_runs(given.folder, given.json)
    return 0


def compare(arguments: list[str]) -> int:
    """coplay compare RUN RUN …"""
    from coplay.cli.compare import CompareArguments, run_compare

    return run_compare(parse(CompareArguments, arguments, "compare"))


def bench(arguments: list[str]) -> int:
    """coplay bench [search|hop-plus]"""
    if arguments[:1] == ["search"]:
        from coplay.bench.search import SearchBenchArguments, run_search_bench

        return run_search_bench(parse(SearchBenchArguments, arguments[1:], "bench search"))
    if arguments[:1] == ["hop-plus"]:
        from coplay.bench.hop_plus import HopPlusBenchArguments, run_hop_plus_bench

        return run_hop_plus_bench(parse(HopPlusBenchArguments, arguments[1:], "bench hop-plus"))
    from coplay.bench.throughput import BenchArguments, run_bench

    return run_bench(parse(BenchArguments, arguments, "bench"))


# --- datasets and models of HOP+ ----------------------------------------------------------------


def of_models(name: str) -> Callable[[list[str]], int]:
    """A command that `coplay.cli.models` has."""

    def run_it(arguments: list[str]) -> int:
        from coplay.cli import models

        return getattr(models, name)(arguments)

    return run_it


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "train": train,
    "play": play,
    "audit": audit,
    "adapt": adapt,
    "collect": of_models("collect"),
    "pretrain": of_models("pretrain"),
    "inspect": of_models("inspect"),
    "watch": watch,
    "list": list_runs,
    "compare": compare,
    "bench": bench,
}

if __name__ == "__main__":
    main()
