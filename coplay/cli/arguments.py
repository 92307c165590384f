"""Reading the command line: options before they are parsed, and typed dataclasses."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import tyro

from coplay.core.errors import UserError, unknown

LOAD = """

Every command takes --load FILE_OR_MODULE, as often as needed: a Python file or module that
registers games, players or learners of your own (coplay.register_game, …) before the command
runs."""

_only_parse = ContextVar("only_parse", default=False)


def option(arguments: list[str], name: str) -> str | None:
    """The value of `--name VALUE` or `--name=VALUE`, before the arguments are parsed in full.

    Which fields a command has depends on the game and on the run it starts from.
    """
    for index, argument in enumerate(arguments):
        if argument == f"--{name}" and index + 1 < len(arguments):
            return arguments[index + 1]
        if argument.startswith(f"--{name}="):
            return argument.partition("=")[2]
    return None


def values(arguments: list[str], name: str) -> list[str]:
    """All values of an option that may take several, `--name A B …` or `--name=A`."""
    found = []
    inside = False
    for argument in arguments:
        if argument.startswith("--"):
            own, _, value = argument[2:].partition("=")
            inside = own == name
            found += [value] if inside and value else []
        elif inside:
            found.append(argument)
    return found


def take_loads(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The values of all options `--load`, and the other arguments."""
    loads, rest = [], []
    left = iter(arguments)
    for argument in left:
        if argument.startswith("--load="):
            loads.append(argument.partition("=")[2])
        elif argument == "--load":
            if (value := next(left, None)) is None:
                raise UserError("--load needs a Python file or module")
            loads.append(value)
        else:
            rest.append(argument)
    return loads, rest


def parse(kind: Any, arguments: list[str], command: str, default: Any = None) -> Any:
    """The arguments as a dataclass; wrong ones end the program with code 2 and a message."""
    words = getattr(kind, "__origin__", kind).__doc__ or ""
    given = tyro.cli(
        kind,
        args=arguments,
        prog=f"coplay {command}",
        description=words + LOAD,
        **({} if default is None else {"default": default}),
    )
    if _only_parse.get():
        raise ParsedOnly
    return given


class ParsedOnly(Exception):
    """The arguments are right, and nothing else was asked for."""


def parse_only(run: Callable[[list[str]], int], arguments: list[str]) -> None:
    """Parse a command line as `run` would, and do nothing more; `SystemExit` if it is wrong."""
    before = _only_parse.set(True)
    try:
        code = run(arguments)
    except ParsedOnly:
        return
    finally:
        _only_parse.reset(before)
    if code:
        raise SystemExit(code)


def named_part(arguments: list[str], command: str, valid: Any) -> tuple[str | None, list[str]]:
    """The part that is named first, and the other arguments; None: only help was asked for."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"usage: coplay {command} PART …\n\nparts: {', '.join(valid)}")
        print(f"coplay {command} PART --help explains all options")
        return None, []
    if arguments[0] not in valid:
        raise unknown(f"part to {command}", arguments[0], valid)
    return arguments[0], arguments[1:]


def for_game(kind: Any, game_name: str, player: str) -> tuple[Any, Any]:
    """A command's arguments, generic in the configurations of game and learner, made for a game and
    a learner: the class, and the arguments where nothing is said."""
    from coplay.algorithms.registry import learner_parts
    from coplay.games.registry import game_parts

    game_type, learner_type = game_parts(game_name)[0], learner_parts(player)[0]
    default = kind(game=game_type(), learner=learner_type(), game_name=game_name, player=player)
    return kind[game_type, learner_type], default
