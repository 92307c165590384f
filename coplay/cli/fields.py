"""Fields of dataclasses, for help texts and pages: name, default, values, meaning.

Arguments of commands and configurations are dataclasses alike. The range of a field and what it
depends on stand in its type, its meaning in the docstring below it. Names and values in texts stand
between backticks.
"""

import dataclasses
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import tyro

from coplay.core.config import Config, OnlyIf, Range, public_name
from coplay.core.field_help import helps_of

_WORDS = {int: "int", float: "float", str: "text", bool: "bool", Path: "path"}


class Field(NamedTuple):
    """A field, or an option. name: with the names of the parts it is in. part: these parts, or "".

    owner: the class that the field is declared in. conditions: when the field acts; empty: always.
    default: `tyro.MISSING` if a value must be given.
    """

    name: str
    part: str
    owner: type
    hint: Any
    default: Any
    help: str
    conditions: tuple[str, ...]
    positional: bool


def fields_of(kind: Any, default: Any = None) -> Iterator[Field]:
    """All fields of a dataclass and of its parts, in their order.

    kind: the class, also one with types in brackets. default: an instance with the defaults.
    """
    plain = typing.get_origin(kind) or kind
    yield from _walk(plain, plain, default, "", {})


def _walk(
    outer: type, plain: type, default: Any, part: str, conditions: dict[str, str]
) -> Iterator[Field]:
    """outer: the outermost configuration, from which conditions name other fields; not the
    arguments of a command.

    part: the parts that the fields are in, with a dot at the end. conditions: of these parts, the
    field that they ask for -> a sentence.
    """
    hints = typing.get_type_hints(plain, include_extras=True)
    for field in dataclasses.fields(plain):
        hint = hints[field.name]
        marks = typing.get_args(hint)[1:] if typing.get_origin(hint) is Annotated else ()
        value = _default_of(field) if default is None else getattr(default, field.name)
        named = next((m.name for m in marks if getattr(m, "name", None) is not None), None)
        name = public_name(field.name) if named is None else named
        asked = [mark for mark in marks if isinstance(mark, OnlyIf)]
        mine = conditions | {m.inside(part).path: _sentence(m, part, plain, outer) for m in asked}
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            inside = f"{part}{name}." if name else part
            # What arguments hold are configurations: each speaks of its own fields.
            whole = outer if issubclass(plain, Config) else type(value)
            yield from _walk(whole, type(value), value, inside, mine)
        else:
            positional = tyro.conf.Positional in marks
            words = helps_of(plain).get(field.name, "")
            sentences = tuple(mine.values())
            yield Field(part + name, part, plain, hint, value, words, sentences, positional)


def _default_of(field: dataclasses.Field) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    made = field.default_factory
    return tyro.MISSING if made is dataclasses.MISSING else made()


def _sentence(mark: OnlyIf, part: str, owner: type, outer: type) -> str:
    """When a field acts: "planner is search", "there are imagined steps"."""
    within = owner if mark.path.startswith(".") else outer
    meaning = getattr(within, mark.path.removeprefix("."), None)
    if isinstance(meaning, property) and meaning.__doc__ and not mark.values:
        return " ".join(meaning.__doc__.split(".")[0].removeprefix("Whether ").split())
    path = ".".join(map(public_name, mark.inside(part).path.split(".")))
    if not mark.values:
        return f"`{path}` is set"
    return f"`{path}` is " + " or ".join(map(default_text, mark.values))


def values_text(hint: Any) -> str:
    """Which values a field may have: "int above 0", "`mlp` or `conv`"."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        ranges = [str(mark) for mark in arguments[1:] if isinstance(mark, Range)]
        return " ".join([values_text(arguments[0]), *ranges])
    if origin is Literal:
        return ", ".join(f"`{_word(value)}`" for value in arguments)
    if origin in (types.UnionType, typing.Union):
        return " or ".join("`none`" if x is type(None) else values_text(x) for x in arguments)
    if origin is tuple:
        return f"list of {values_text(arguments[0])}"
    return _WORDS.get(hint, getattr(hint, "__name__", str(hint)).lower())


def may_be_none(hint: Any) -> bool:
    """Whether a field may have no value; on the command line and in files the word is `none`."""
    if typing.get_origin(hint) is Annotated:
        return may_be_none(typing.get_args(hint)[0])
    if typing.get_origin(hint) not in (types.UnionType, typing.Union):
        return False
    return type(None) in typing.get_args(hint)


def default_text(value: Any) -> str:
    """A default as a user would write it."""
    if value is tyro.MISSING:
        return "required"
    return f"`{_word(value)}`" if value not in ("", ()) else "empty"


def _word(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(_word, value))
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def explained(field: Field) -> str:
    """What a field means, and when it acts."""
    found = [field.help]
    if field.conditions:
        found.append(f"Acts only if {' and '.join(field.conditions)}.")
    return " ".join(found)


def option_name(name: str, sign: str = "--") -> str:
    """The option of a field: options have hyphens where fields have underscores."""
    return f"{sign}{name.replace('_', '-')}" if sign else name
