"""Reading the command line: options before they are parsed, and typed dataclasses."""

import contextlib
import io
import sys
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple

import tyro

from coplay.cli.fields import Field, fields_of, may_be_none, option_name
from coplay.cli.help import ALL, HELP, print_all, print_short
from coplay.cli.wrong_words import wrong_words
from coplay.core.config import check_fields
from coplay.core.errors import UserError, unknown

LOAD = """

Every command takes --load FILE_OR_MODULE, as often as needed: a Python file or module that
registers games, players or learners of your own (coplay.register_game, …) before the command
runs."""

_until: ContextVar[Literal["declared", "parsed", "done"]] = ContextVar("until", default="done")


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
            if (value := next(left, None)) is None or value.startswith("--"):
                raise UserError("--load needs a Python file or module")
            loads.append(value)
        else:
            rest.append(argument)
    return loads, rest


def parse(
    kind: Any,
    arguments: list[str],
    command: str,
    default: Any = None,
    computes: bool = True,
    first: Sequence[str] = (),
    more: Sequence[str] = (),
) -> Any:
    """The arguments as a dataclass; wrong ones are a `UserError`.

    computes: the command needs JAX, which must be able to compute. first: the options that matter
    first, of a command with many; --help then shows only these. more: lines at the end of the help.
    """
    words = getattr(kind, "__origin__", kind).__doc__ or ""
    if _until.get() == "declared":
        raise _DeclaredOnly(Declaration(kind, default, f"coplay {command}", words))
    if ALL in arguments:
        print_all(command, words + LOAD, kind, default)
        raise SystemExit(0)
    if first and {"-h", "--help"} & set(arguments):
        print_short(command, words, kind, default, first, more)
        raise SystemExit(0)
    given = _parsed(kind, arguments, command, words, default)
    check_fields(given)
    if _until.get() == "parsed":
        raise _ParsedOnly
    if computes:
        # Imports JAX, which help and wrong arguments need not wait for.
        from coplay.core.compilation import check_backend

        check_backend()
    return given


def _parsed(kind: Any, arguments: list[str], command: str, words: str, default: Any) -> Any:
    """What tyro makes of the arguments; its error, a box of lines, becomes a sentence."""
    arguments = _with_none(arguments, fields_of(kind, default))
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(
                kind,
                args=arguments,
                prog=f"coplay {command}",
                description=words + LOAD,
                **({} if default is None else {"default": default}),
            )
    except SystemExit as stop:
        box = said.getvalue()
        error = wrong_words(f"coplay {command}", arguments, fields_of(kind, default), box)
        if not stop.code or error is None:
            sys.stderr.write(box)
            raise
        raise error from None


def _with_none(arguments: list[str], fields: Iterable[Field]) -> list[str]:
    """The arguments with tyro's word for no value, None, where ours stands, as in files: none."""
    optional = {option_name(field.name) for field in fields if may_be_none(field.hint)}
    changed, before = [], ""
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if name.replace("_", "-") in optional and equals and value == "none":
            argument = f"{name}=None"
        elif before.replace("_", "-") in optional and argument == "none":
            argument = "None"
        changed.append(argument)
        before = argument
    return changed


class Declaration(NamedTuple):
    """What a command line is read by. kind: a dataclass, perhaps generic. default: an instance with
    the values where nothing is said, or None. command: as users write it. words: what it does."""

    kind: Any
    default: Any
    command: str
    words: str


class _DeclaredOnly(Exception):
    """Nothing but the declaration was asked for."""

    def __init__(self, declaration: Declaration) -> None:
        super().__init__(declaration.command)
        self.declaration = declaration


class _ParsedOnly(Exception):
    """The arguments are right, and nothing else was asked for."""


def parse_only(run: Callable[[list[str]], int], arguments: list[str]) -> None:
    """Parse a command line as `run` would, and do nothing more; `SystemExit` if it is wrong."""
    before = _until.set("parsed")
    try:
        code = run(arguments)
    except _ParsedOnly:
        return
    finally:
        _until.reset(before)
    if code:
        raise SystemExit(code)


def declaration(run: Callable[[list[str]], int], arguments: list[str]) -> Declaration | None:
    """By what `run` would parse a command line; the command does nothing.

    None: more words are needed to tell. `SystemExit` if the words are wrong.
    """
    before = _until.set("declared")
    try:
        code = run(arguments)
    except _DeclaredOnly as found:
        return found.declaration
    finally:
        _until.reset(before)
    if code:
        raise SystemExit(code)
    return None


def named_part(arguments: list[str], command: str, valid: Any) -> tuple[str | None, list[str]]:
    """The part that is named first, and the other arguments; None: only help was asked for."""
    if not arguments or arguments[0] in HELP:
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
