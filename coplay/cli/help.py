"""Help texts of commands with many options: those that matter first, the others by topic."""

import re
import shutil
import textwrap
from collections.abc import Iterable
from typing import Any

import tyro

from coplay.cli.fields import Field, default_text, explained, fields_of, option_name, values_text

ALL = "--help-all"
HELP = ("-h", "--help", ALL)
COLUMN = 26
"""Where meanings begin."""

FIRST = (
    "game",
    "preset",
    "steps",
    "seeds",
    "out",
    "resume",
    "seating",
    "partners",
    "copies",
    "optimiser.learning_rate",
)
"""The options that matter first where something is trained."""


def print_short(
    command: str,
    words: str,
    kind: Any,
    default: Any,
    first: Iterable[str],
    more: Iterable[str] = (),
) -> None:
    """What a command does, its options that matter first, and how to see the others.

    first: their names, in their order. A command that lacks one of them shows the others. What must
    be given is always shown. more: lines for the end.
    """
    fields = {field.name: field for field in fields_of(kind, default)}
    needed = [
        field for field in fields.values() if field.positional or field.default is tyro.MISSING
    ]
    wanted = [*(field.name for field in needed), *first]
    places = " ".join(field.name.upper() for field in fields.values() if field.positional)
    lines = [*_head(f"{command} {places}".strip(), words), "options that matter first:"]
    for name in dict.fromkeys(wanted):
        lines += _option(fields[name]) if name in fields else []
    topics = ", ".join(title for title, _, _ in _topics(fields.values()))
    lines += ["", f"coplay {command} {ALL} explains all {len(fields)} options by topic:"]
    lines += _wrap(topics, "  ")
    print("\n".join([*lines, *more]))


def print_all(command: str, words: str, kind: Any, default: Any) -> None:
    """Every option of a command, by topic."""
    lines = [*_head(command, words)]
    for title, about, fields in _topics(fields_of(kind, default)):
        lines.append(f"{title}: {about}" if title != "command" else "this command:")
        for field in fields:
            lines += _option(field)
        lines.append("")
    print("\n".join(lines).rstrip())


def _head(command: str, words: str) -> list[str]:
    paragraphs = [" ".join(part.split()) for part in words.strip().split("\n\n")]
    lines = [f"usage: coplay {command} [OPTIONS]"]
    for paragraph in paragraphs:
        lines += ["", *_wrap(paragraph)]
    return [*lines, ""]


def _topics(fields: Iterable[Field]) -> list[tuple[str, str, list[Field]]]:
    """[(title, what it is about, its options)]: a topic is a part of the configuration, or a class
    whose fields are options by their own names. These come first."""
    found: dict[tuple[str, type], list[Field]] = {}
    for field in fields:
        found.setdefault((field.part, field.owner), []).append(field)
    topics = [
        (part.rstrip(".").replace("_", "-") or _title(owner), _sentence(owner), members, part)
        for (part, owner), members in found.items()
    ]
    order = {"command": 0, "run": 1}
    topics.sort(key=lambda topic: order.get(topic[0], 3 if topic[3] else 2))
    return [topic[:3] for topic in topics]


def _title(owner: type) -> str:
    """What the options of a class that is no part are about: `hop-plus` for HopPlusConfig."""
    if owner.__name__.endswith("Arguments"):
        return "command"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", owner.__name__.removesuffix("Config")).lower()


def _sentence(owner: type) -> str:
    """What a class says of itself."""
    return " ".join((owner.__doc__ or "").split("\n\n")[0].split())


def _option(field: Field) -> list[str]:
    """An option with its values, meaning and default."""
    plain = values_text(field.hint).replace("`", "")
    if field.positional:
        name = field.name.upper()
    elif isinstance(field.default, bool):
        part, dot, last = field.name.rpartition(".")
        name = f"{option_name(field.name)}, {option_name(f'{part}{dot}no_{last}')}"
    else:
        name = f"{option_name(field.name)} {_value_word(plain)}"
    meaning = explained(field).replace("`", "")
    if "," in plain and "list" not in plain:
        meaning += f" One of {plain}."
    if field.default is True:
        meaning += " (default: on)"
    elif field.default not in ("", ()) and field.default is not None and field.default is not False:
        default = default_text(field.default).replace("`", "")
        meaning += " (required)" if default == "required" else f" (default: {default})"
    lines = _wrap(meaning, " " * COLUMN)
    head = f"  {name}"
    if len(head) + 2 <= COLUMN:
        return [head.ljust(COLUMN) + lines[0].strip(), *lines[1:]]
    return [head, *lines]


def _value_word(plain: str) -> str:
    """What stands for the value of an option: INT, FLOAT, TEXT, …"""
    if plain.startswith("list of "):
        return f"{_value_word(plain.removeprefix('list of '))} …"
    kind = plain.split(" ")[0].upper()
    return kind if kind in ("INT", "FLOAT", "TEXT", "PATH") else "NAME"


def _wrap(text: str, indent: str = "") -> list[str]:
    """Lines that fit the terminal. Options have hyphens: no line ends at one."""
    width = min(shutil.get_terminal_size((100, 24)).columns, 110)
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
