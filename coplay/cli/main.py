"""The command line: a table of commands, and what becomes of their errors."""

import errno
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from coplay.cli.aliases import in_our_names
from coplay.cli.arguments import declaration, option, take_loads, values
from coplay.cli.fields import fields_of, option_name
from coplay.core.errors import (
    Interrupted,
    RunStopped,
    UserError,
    WorkerFailed,
    system_error,
    unknown,
)
from coplay.core.invocation import invoked
from coplay.core.loading import load, look_in_current_folder, name_game
from coplay.core.reading import shown
from coplay.core.version import VERSION


@dataclass(frozen=True)
class Command:
    """usage, help: a line of `coplay --help`. module: in `coplay.cli`, with a function
    `run(arguments) -> exit code`. goes_on: given once more, a command that was stopped goes on."""

    usage: str
    help: str
    module: str
    goes_on: bool = False


COMMANDS = {
    "train": Command(
        "train PLAYER", "train a player by self-play or among others, resume a run", "train"
    ),
    "sweep": Command(
        "sweep PLAYER", "train with every setting of some fields, say which is best", "sweep"
    ),
    "play": Command(
        "play", "let players play and count what every seat gets; cross-play of runs", "play"
    ),
    "schelling": Command(
        "schelling", "what cooperating and defecting bring, by how many cooperate", "schelling"
    ),
    "adapt": Command(
        "adapt PLAYER", "let a player adapt to co-players it does not know", "adapt", goes_on=True
    ),
    "partners": Command(
        "partners PART",
        "packs of partners that a player has not met: make, select, show",
        "partners",
        goes_on=True,
    ),
    "collect": Command("collect", "keep what players of a mix do, as a dataset", "collect"),
    "pretrain": Command(
        "pretrain PART", "train a model of others or of the world on a dataset", "pretrain"
    ),
    "inspect": Command("inspect PART", "look at what such a model knows", "inspect"),
    "watch": Command("watch RUN", "look at an episode, in the terminal or as a GIF", "watch"),
    "report": Command("report RUN", "the page of a run: curves, metrics, how to go on", "report"),
    "serve": Command(
        "serve [FOLDER]", "runs in the browser, live; people in the seats of a game", "serve"
    ),
    "audit": Command(
        "audit seats|wiring",
        "prove that seats are treated alike, that every part of a learner acts",
        "audit",
        goes_on=True,
    ),
    "list": Command(
        "list [FOLDER]", "what runs there are, how far, how good; what else", "list_runs"
    ),
    "check": Command("check FOLDER …", "what is damaged, what can still be used", "check"),
    "export": Command(
        "export RUN", "a trained player as one small file, or on the hub", "export_player"
    ),
    "import": Command(
        "import FILE", "a folder of a player that somebody exported", "import_player"
    ),
    "compare": Command(
        "compare A B …", "runs beside each other: table, curves, intervals", "compare"
    ),
    "reproduce": Command(
        "reproduce [NAME]",
        "run the experiment behind a result again",
        "reproduce",
        goes_on=True,
    ),
    "config": Command(
        "config PLAYER", "a run's configuration as a file, with what every field means", "config"
    ),
    "presets": Command(
        "presets [NAME]", "settings by name for coplay train, and what they reproduce", "presets"
    ),
    "completion": Command(
        "completion SHELL", "lets the Tab key complete words, in bash, zsh or fish", "completion"
    ),
    "doctor": Command("doctor", "versions, devices, cache, optional parts", "doctor"),
    "bench": Command(
        "bench [PART]", "how fast it is here; parts: peers, search, hop-plus", "bench"
    ),
}


def main() -> None:
    """Run a command and exit with 0, 1 (it failed), 2 (wrong input) or 130 (stopped)."""
    stop_on_signals()
    try:
        code = run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # as `coplay … | head` does: who reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code)


def stop_on_signals() -> None:
    """A polite kill or a closed terminal ends any command as Ctrl-C does. A signal that is ignored
    stays ignored, as under nohup."""

    def stop(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, stop)


def run(arguments: list[str]) -> int:
    """Run a command; returns the exit code."""
    with invoked(arguments):
        return _run(arguments)


def _run(arguments: list[str]) -> int:
    command: Command | None = None
    try:
        loads, arguments = take_loads(arguments)
        if not arguments or arguments[0] in ("-h", "--help", "help"):
            print_help()
            return 0
        if arguments[0] in ("-V", "--version"):
            print(VERSION)
            return 0
        if arguments[0] not in COMMANDS:
            raise unknown("command", arguments[0], COMMANDS)
        command = COMMANDS[arguments[0]]
        for name in loads:
            load(name)
        run = import_module(f"coplay.cli.{command.module}").run
        arguments = in_our_names(arguments, partial(_options_of, run, arguments[1:]))
        if game := option(arguments, "game"):
            name_game(game, values(arguments, "game.options"))
            if game.startswith("pettingzoo:"):
                # Only what a user names makes the current folder importable, never a run's files.
                look_in_current_folder()
        return int(run(arguments[1:]))
    except UserError as error:
        return failed(str(error), 2)
    except (WorkerFailed, RunStopped) as error:
        return failed(str(error), 1)
    except Interrupted as error:
        again = "stopped; the same command goes on where it was"
        return failed(again if command and command.goes_on else str(error), 130)
    except KeyboardInterrupt:
        return failed("stopped", 130)
    except BrokenPipeError:
        raise
    except Exception as error:
        words = system_error(error)
        if words is None:
            raise
        return failed(words, 2 if getattr(error, "errno", None) == errno.ENAMETOOLONG else 1)


def _options_of(run: Callable[[list[str]], int], arguments: list[str]) -> list[str]:
    """The options by which a command would read its arguments; none where that is not clear."""
    try:
        found = declaration(run, arguments)
    except (UserError, SystemExit):
        return []
    return [option_name(f.name) for f in fields_of(found.kind, found.default)] if found else []


def failed(message: str, code: int) -> int:
    """Tell the user; the exit code. A message may quote a file."""
    print(f"coplay: {shown(message)}", file=sys.stderr)
    return code


def print_help() -> None:
    """All commands in a line each."""
    print("coplay: multi-agent reinforcement learning with and about others\n")
    width = max(len(command.usage) for command in COMMANDS.values())
    for command in COMMANDS.values():
        print(f"  coplay {command.usage:{width}}  {command.help}")
    print("\nEach command explains its options with --help. --load FILE_OR_MODULE registers games,")
    print("players and learners of your own before a command runs.")


if __name__ == "__main__":
    main()
