"""The page of all commands and options, from what the commands declare themselves."""

from collections.abc import Iterator

from coplay.algorithms.registry import LEARNERS
from coplay.api.models import INSPECTED
from coplay.cli.arguments import Declaration, declaration
from coplay.cli.audit import AUDITS
from coplay.cli.fields import Field, fields_of, option_name
from coplay.cli.main import COMMANDS, run
from coplay.cli.pretrain import PARTS
from tools.docs.configuration import game_configurations
from tools.docs.fields import table

EVERYWHERE = """
Every command prints its options with `--help`; commands with many print those that matter first,
and all of them by topic with `--help-all`. Every command takes `--load FILE_OR_MODULE`, as often as
needed: a Python file or module that registers games, players or learners of your own before the
command runs. `coplay --version` prints the version.

A list takes its values one after the other: `--network.hidden 64 64`. A `bool` is switched on by
its name and off by `no-` before it: `--json`, `--no-json`. Options have hyphens where fields have
underscores; both are understood.

The exit code is 0 if all went well, 1 if the command failed or an audit found a fault, 2 if the
input was wrong, and 130 if the command was stopped.
"""

AS_A_FILE = """
It takes all options of `coplay train PLAYER` and writes the configuration of that run as a TOML
file, each field below what it means: into `--out FILE.toml`, or on standard output.
`coplay train PLAYER --config FILE.toml` runs it.
"""

FIRST = {
    "train": ["ppo"],
    "sweep": ["ppo"],
    "config": ["ppo"],
    "audit": list(AUDITS),
    "pretrain": list(PARTS),
    "inspect": list(INSPECTED),
    "partners": ["make", "select", "show"],
    "bench": ["", "peers", "search", "hop-plus"],
}
"""Command -> the words that may come first and have options of their own."""


def declarations() -> Iterator[tuple[str, Declaration]]:
    """(command, what it is read by) for every command and each of its parts."""
    for command in COMMANDS:
        for word in FIRST.get(command, [""]):
            yield command, declared_by(command, *([word] if word else []))


def declared_by(*words: str) -> Declaration:
    """By what a command line that begins so is read."""
    found = declaration(run, list(words))
    if found is None:
        raise ValueError(f"coplay {' '.join(words)} takes more words before its options")
    return found


def all_options() -> set[str]:
    """Every option of every command, with every learner and every game."""
    declared = (
        *(each for _, each in declarations()),
        *(declared_by("train", name) for name in LEARNERS),
    )
    fields = [field for each in declared for field in fields_of(each.kind, each.default)]
    games = (kind() for _, kind in game_configurations())
    of_games = [field for game in games for field in fields_of(type(game), game)]
    fields += [field._replace(name=f"game.{field.name}") for field in of_games]
    found = {"--help", "--help-all", "--version", "--load"}
    for field in fields:
        found.add(option_name(field.name))
        if isinstance(field.default, bool):
            part, dot, name = field.name.rpartition(".")
            found.add(option_name(f"{part}{dot}no_{name}"))
    return found


def own_fields(declared: Declaration) -> tuple[list[Field], set[str]]:
    """The options of a command itself, and which configurations' fields are options too."""
    every = list(fields_of(declared.kind, declared.default))
    others: dict[str, str] = {}
    for name in ("game", "learner"):
        config = getattr(declared.default, name, None)
        if config is not None:
            prefix = "game." if name == "game" else ""
            others |= {f"{prefix}{field.name}": name for field in fields_of(type(config), config)}
    own = [field for field in every if field.name not in others]
    return sorted(own, key=lambda field: not field.positional), set(others.values())


def _section(declared: Declaration) -> str:
    fields, others = own_fields(declared)
    parts = ["\n".join(line.strip() for line in declared.words.strip().splitlines())]
    if others == {"game"}:
        parts.append("Fields of [the game](configuration.md#games) are options `--game.FIELD`.")
    elif others:
        parts.append(
            "Fields of [the game](configuration.md#games) are options `--game.FIELD`. Fields of "
            "[the learner](configuration.md#learners) are options by their own names."
        )
    return "\n\n".join([*parts, table(fields, "--", "option")])


def page() -> str:
    """The page as Markdown."""
    parts = ["# Command line", "```\ncoplay train ppo --game stag-hunt --steps 200000\n```"]
    parts.append("\n".join(["| command | what it does |", "|---|---|", *_rows()]))
    parts.append(EVERYWHERE.strip())
    for command, declared in declarations():
        if command == "config":
            parts += [f"## coplay {COMMANDS[command].usage}", AS_A_FILE.strip()]
            continue
        named = COMMANDS[command].usage if command in ("train", "sweep") else ""
        heading = f"coplay {named}" if named else declared.command
        parts += [f"## {heading}", _section(declared)]
    return "\n\n".join(parts) + "\n"


def _rows() -> Iterator[str]:
    for command in COMMANDS.values():
        # A bar in code needs no escape on the site; it would be shown.
        yield f"| `coplay {command.usage}` | {command.help} |"
