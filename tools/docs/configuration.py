"""The page of all fields of configurations, from their dataclasses."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from coplay.algorithms.registry import LEARNERS
from coplay.cli.fields import Field, default_text, fields_of
from coplay.games.registry import GAMES, game_parts
from coplay.training.config import RunConfig, run_defaults
from tools.docs.fields import table

INTRODUCTION = """
```
coplay train hop --search.simulations 64 --game.height 8
```

A field is named by its path everywhere. `search.simulations` of `hop` is

- `coplay.train("hop", **{"search.simulations": 64})` in Python, or as nested dictionaries
  `search={"simulations": 64}`;
- `--search.simulations 64` on the command line;
- `runs/hop@search.simulations=64` behind a run's path, for fields that a run may change in play;
- `"learner": {"search": {"simulations": 64}}` in `config.json`.

Fields of a game stand behind `game.`: `--game.height 8`. A value outside of its range, or an
unknown name, ends a command before it begins. A field that has no effect because of another one is
named in a warning.
"""

FAMILIES = {
    "matrix": "matrix:public-goods",
    "foraging": "foraging:jaxaht-7x7",
    "smax": "smax:3m",
    "jaxmarl": "jaxmarl:MPE_simple_spread_v3",
    "pettingzoo": "pettingzoo:mpe2.simple_spread_v3",
    "smac": "smac:3m",
    "smacv2": "smacv2:10gen_terran",
    "smaclite": "smaclite:MMM2",
}
"""Family of games -> one of its games."""


def game_configurations() -> Iterator[tuple[str, type]]:
    """(name, configuration) of all games; of a family `family:…`, as for one of its games."""
    for name, (kind, _) in GAMES.items():
        yield name, kind
    for family, name in FAMILIES.items():
        yield f"{family}:…", game_parts(name)[0]


def _tables(fields: list[Field], whose: str) -> list[str]:
    """Tables of fields by part; the part's docstring is its introduction. whose: a learner."""
    parts = []
    for part, group in groupby(fields, key=lambda field: field.part):
        own = list(group)
        if part:
            words = (own[0].owner.__doc__ or "").split("\n\n")[0]
            name = part.removesuffix(".")
            anchor = f"{whose}-{name.replace('_', '-')}"
            parts += [f"#### `{name}` {{ #{anchor} }}", " ".join(words.split())]
        parts.append(table(own))
    return parts


def _by_part(config: Any) -> list[Field]:
    """Fields with the outer ones first, then part by part."""
    order: dict[str, int] = {"": 0}
    fields = list(fields_of(type(config), config))
    for field in fields:
        order.setdefault(field.part, len(order))
    return sorted(fields, key=lambda field: order[field.part])


def _words(kind: type) -> str:
    return " ".join((kind.__doc__ or "").split("\n\n")[0].split())


def _learner(name: str, kind: type) -> list[str]:
    parts = [f"### {name}", _words(kind)]
    usual = {field.name: field.default for field in fields_of(RunConfig)}
    other = [
        f"`{field.name}` {default_text(field.default)}"
        for field in fields_of(RunConfig, run_defaults(kind))
        if field.default != usual[field.name]
    ]
    if other:
        parts.append(f"Its runs have other defaults: {', '.join(other)}.")
    return parts + _tables(_by_part(kind()), name)


def page() -> str:
    """The page as Markdown."""
    parts = ["# Configuration", INTRODUCTION.strip(), "## Run", _words(RunConfig)]
    parts += _tables(_by_part(RunConfig()), "run")
    parts.append("## Learners")
    for name, (kind, _) in LEARNERS.items():
        parts += _learner(name, kind)
    parts += ["## Games", "[The games](games.md) have their rules on a page of their own."]
    for kind, group in groupby(game_configurations(), key=lambda game: game[1]):
        names = [name for name, _ in group]
        parts += [f"### {', '.join(names)}", _words(kind), *_tables(_by_part(kind()), names[0])]
    return "\n\n".join(parts) + "\n"
