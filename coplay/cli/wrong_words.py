"""What is wrong with the words of a command line, in one sentence."""

import difflib
import re
from collections.abc import Iterable, Sequence

import tyro

from coplay.cli.fields import Field, option_name, values_text
from coplay.core.errors import UserError


def wrong_words(
    command: str, arguments: Sequence[str], fields: Iterable[Field], said: str
) -> UserError | None:
    """An error for arguments that the parser refused.

    command: as users write it. said: what the parser printed, a box of lines. None: nothing is
    known but that.
    """
    named = {_written(field): field for field in fields}
    options = _options(named.values())
    given = [_name(argument) for argument in arguments if re.match("--[a-z]", argument)]
    strange = [name for name in given if name not in options]
    text = _first_part(said)
    if strange:
        what = f"unknown option {strange[0]}{_nearest(strange[0], options)}"
    elif text.startswith("Missing from"):
        what = _lacking(named, given) or text
    elif text.startswith("Unrecognized options: "):
        what = f"it is not clear what '{text.partition(': ')[2]}' is for"
    else:
        what = _wrong_value(named, text)
    joint = " " if what.endswith("?") else "; "
    return UserError(f"{what}{joint}{command} --help explains the options") if what else None


def _written(field: Field) -> str:
    """A field as users write it: an option, or a word in capitals in its place."""
    return field.name.upper() if field.positional else option_name(field.name)


def _name(argument: str) -> str:
    """The option in `--NAME` or `--NAME=VALUE`."""
    return argument.partition("=")[0].replace("_", "-")


def _options(fields: Iterable[Field]) -> list[str]:
    """All options of some fields; a switch has two."""
    found = ["--help"]
    for field in fields:
        if not field.positional:
            part, dot, last = field.name.rpartition(".")
            found += [option_name(field.name), option_name(f"{part}{dot}no_{last}")]
    return found


def _nearest(name: str, options: Sequence[str]) -> str:
    """The options that may have been meant: of the same last word, or else written alike."""
    last = {option: _last_word(option) for option in options}
    near = [option for option in options if last[option] == _last_word(name)]
    near = near or difflib.get_close_matches(name, options, n=1, cutoff=0.6)
    if not near and (alike := difflib.get_close_matches(_last_word(name), last.values(), n=1)):
        near = [option for option in options if last[option] == alike[0]]
    return f": did you mean {' or '.join(near[:3])}?" if near else ""


def _last_word(name: str) -> str:
    """The name of an option without the parts that it is in."""
    return name.rpartition(".")[2].removeprefix("--")


def _lacking(named: dict[str, Field], given: Sequence[str]) -> str:
    """What must be given and is not."""
    for written, field in named.items():
        if field.default is tyro.MISSING and written not in given:
            meaning = re.split(r"\.\s|\.$|;", field.help, maxsplit=1)[0]
            return f"{written} is missing: {meaning[:1].lower()}{meaning[1:]}"
    return ""


def _wrong_value(named: dict[str, Field], text: str) -> str:
    """Which values the option takes that the parser complains of; what it says if it is none."""
    place = re.match(r"Error parsing ([^\s:]+): |.*argument '(?:\(')?([^']+)'", text)
    name = (place[1] or place[2]) if place else ""
    for written, field in named.items():
        if name in (written, field.name):
            takes = f"{written} takes {values_text(field.hint).replace('`', '')}"
            if text.startswith("Missing value"):
                return f"{takes}, and nothing was given"
            wrong = [value for value in re.findall(r"'([^']*)'", text) if value != name]
            return f"{takes}, not '{wrong[0]}'" if wrong else takes
    return text.removeprefix(f"Error parsing {name}: ")


def _first_part(said: str) -> str:
    """The text of a box between its title and its first rule, as one line.

    Where the terminal has no more than ASCII, the box has no sides, and a rule below its title.
    """
    words: list[str] = []
    for line in re.sub(r"\x1b\[[\d;]*m", "", said).splitlines()[1:]:
        inner = line.strip("│ ")
        rule = re.fullmatch("[─-]+", inner) or line.startswith("╰")
        if rule and words:
            break
        words += [inner] if inner and not rule else []
    return " ".join(words)
