"""coplay completion: what the Tab key completes in a shell.

The script holds all words, so that a shell completes at once and does not start Python.
"""

import sys
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from coplay.cli.arguments import declaration, parse
from coplay.cli.fields import Field, fields_of, option_name


@dataclass(frozen=True)
class CompletionArguments:
    """Print a script that lets the Tab key complete commands, options and names."""

    shell: Annotated[Literal["bash", "zsh", "fish"], tyro.conf.Positional]
    """The shell that is to complete."""
    out: Path | None = None
    """File for the script; default: it is printed."""


BASH = """\
_coplay() {
    local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"
    local command="${COMP_WORDS[1]}" words=""
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "@COMMANDS@" -- "$current"))
        return
    fi
    case "$command" in
@FIRST@
    esac
    if [ "$COMP_CWORD" -eq 2 ] && [ -n "$words" ] && [[ "$current" != -* ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$current"))
        return
    fi
    words=""
    case "$before" in
@VALUES@
    esac
    if [ -n "$words" ]; then
        COMPREPLY=($(compgen -W "$words" -- "$current"))
        return
    fi
    if [[ "$current" == -* ]]; then
        case "$command ${COMP_WORDS[2]}" in
@OPTIONS@
        esac
        COMPREPLY=($(compgen -W "$words" -- "$current"))
    fi
}
complete -o default -F _coplay coplay
"""
"""Where no word is offered, the shell completes names of files as it always does."""

ZSH = """\
(( $+functions[compdef] )) || { autoload -U compinit && compinit }
autoload -U +X bashcompinit && bashcompinit
"""
"""What lets zsh read a script for bash, also where ~/.zshrc switches no completion on."""

FISH = """\
function __coplay_words
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    set -l words
    if test (count $before) -eq 1
        string split ' ' -- '@COMMANDS@'
        return
    end
    if test (count $before) -eq 2; and not string match -q -- '-*' $current
        switch $before[2]
@FIRST@
        end
        if set -q words[1]
            string split ' ' -- $words
            return
        end
    end
    switch $before[-1]
@VALUES@
    end
    if not set -q words[1]; and string match -q -- '-*' $current
        switch "$before[2] $before[3]"
@OPTIONS@
        end
    end
    if set -q words[1]
        string split ' ' -- $words
    else
        __fish_complete_path $current
    end
end
complete -c coplay -f -a '(__coplay_words)'
"""

EVERYWHERE = ("--help", "--help-all", "--load")


def run(arguments: list[str]) -> int:
    """coplay completion bash|zsh|fish"""
    given = parse(CompletionArguments, arguments, "completion", computes=False)
    text = script(given.shell)
    if given.out is None:
        sys.stdout.write(text)
    else:
        given.out.write_text(text)
        print(f"source {given.out}")
    return 0


def script(shell: str) -> str:
    """The script for a shell."""
    from coplay.cli.main import COMMANDS

    parts = first_words()
    alone = [command for command in COMMANDS if command not in parts or command == "bench"]
    options: dict[str, list[Field]] = {}
    for command in COMMANDS:
        for word in [*parts.get(command, []), *([""] if command in alone else [])]:
            options[f"{command} {word}".strip()] = list(_fields(command, word))
    lines = {
        "COMMANDS": " ".join(COMMANDS),
        "FIRST": _cases(parts, 8, shell),
        "VALUES": _cases(_values(options), 8, shell),
        "OPTIONS": _cases(_options(options), 12, shell),
    }
    text = FISH if shell == "fish" else BASH
    for name, words in lines.items():
        text = text.replace(f"@{name}@", words)
    return (ZSH if shell == "zsh" else "") + text


def first_words() -> dict[str, list[str]]:
    """Command -> the words that may come first and have options of their own."""
    from coplay.algorithms.registry import LEARNERS
    from coplay.api.models import INSPECTED
    from coplay.cli import partners, pretrain
    from coplay.cli.audit import AUDITS

    return {
        "train": list(LEARNERS),
        "sweep": list(LEARNERS),
        "config": list(LEARNERS),
        "audit": list(AUDITS),
        "pretrain": list(pretrain.PARTS),
        "inspect": list(INSPECTED),
        "partners": list(partners.PARTS),
        "bench": ["peers", "search", "hop-plus"],
        "completion": ["bash", "zsh", "fish"],
    }


def _fields(command: str, word: str) -> Iterator[Field]:
    """The options of a command; those of --game are the default game's."""
    from coplay.cli.main import run as run_command

    if command == "completion":
        return
    found = declaration(run_command, [command, *([word] if word else [])])
    if found is not None:
        yield from fields_of(found.kind, found.default)


def _options(options: dict[str, list[Field]]) -> dict[str, list[str]]:
    """Pattern of a command's first words -> all its options."""
    rows = {}
    for begun, fields in options.items():
        names = [option_name(field.name) for field in fields if not field.positional]
        rows[begun if " " in begun else f"{begun} *"] = [*names, *EVERYWHERE]
    return rows


def _values(options: dict[str, list[Field]]) -> dict[str, list[str]]:
    """Option -> the values that it may have, where they are few."""
    from coplay.games.registry import GAMES
    from coplay.training.loggers.registry import LOGGERS
    from coplay.training.presets import presets

    found: dict[str, list[str]] = {}
    for fields in options.values():
        for field in fields:
            if choices := _choices(field.hint):
                known = found.setdefault(option_name(field.name), [])
                known += [choice for choice in choices if choice not in known]
    return found | {"--game": list(GAMES), "--preset": list(presets()), "--log": list(LOGGERS)}


def _choices(hint: Any) -> list[str]:
    """The values of a type that lists them."""
    if typing.get_origin(hint) is Annotated:
        hint = typing.get_args(hint)[0]
    return list(map(str, typing.get_args(hint))) if typing.get_origin(hint) is Literal else []


def _cases(rows: dict[str, list[str]], indent: int, shell: str) -> str:
    """Rows of a `case`, pattern -> words; those with the same words are one."""
    grouped: dict[str, list[str]] = {}
    for key, words in rows.items():
        grouped.setdefault(" ".join(words), []).append(key)
    space = " " * indent
    if shell == "fish":
        return "\n".join(
            f"{space}case {' '.join(map(repr, keys))}\n{space}    set words '{words}'"
            for words, keys in grouped.items()
        )
    return "\n".join(
        f'{space}{"|".join(map(_quoted, keys))}) words="{words}" ;;'
        for words, keys in grouped.items()
    )


def _quoted(pattern: str) -> str:
    """A pattern for bash: a star outside of the quotes is one."""
    return f'"{pattern[:-1]}"*' if pattern.endswith("*") else f'"{pattern}"'
