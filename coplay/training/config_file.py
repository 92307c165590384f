"""A run's configuration as a TOML or YAML file that people write: only what differs from the
defaults.

player = "ppo"
game_name = "stag-hunt"

[run]
steps = 600_000

[learner.optimiser]
learning_rate = 3e-4

[game]
height = 8
"""

import dataclasses
import json
import re
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coplay.algorithms.registry import learner_parts
from coplay.core.config import public_name, with_fields
from coplay.core.errors import UserError, see, unknown
from coplay.core.field_help import helps_of
from coplay.core.reading import open_file, read_field
from coplay.games.registry import game_parts
from coplay.training.config import TrainConfig, run_defaults
from coplay.training.presets import from_preset
from coplay.training.yaml_reader import read_yaml

TABLES = ("run", "learner", "game")
WIDTH = 96
YAML = (".yaml", ".yml")
SUFFIXES = (".toml", *YAML)


def read_settings(path: Path) -> TrainConfig:
    """The configuration in a TOML or YAML file; what it does not say is as by default."""
    where, is_yaml = str(path), path.suffix in YAML
    with open_file(path) as file:
        content = file.read()
    try:
        data = read_yaml(content.decode()) if is_yaml else tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:  # also bytes that are no text
        kind = "YAML" if is_yaml else "TOML"
        raise UserError(f"{where} is no {kind} file: {error}") from error
    for name in data:
        if name not in ("player", "game_name", *TABLES):
            raise unknown(f"field in {where}", name, ("player", "game_name", *TABLES))
    if "player" not in data:
        raise UserError(
            f"{where} lacks 'player', the learner by name{see('how-to/settings-in-a-file')}"
        )
    player = read_field(data, "player", str, where)
    game_name = read_field({"game_name": "stag-hunt"} | data, "game_name", str, where)
    tables = {name: read_field({name: {}} | data, name, dict, where) for name in TABLES}
    start = _start(player, game_name, tables["run"].get("preset"))
    return TrainConfig(
        player,
        game_name,
        with_fields(start.learner, tables["learner"], f"{where}: learner"),
        with_fields(start.game, tables["game"], f"{where}: game"),
        with_fields(start.run, tables["run"], f"{where}: run"),
    )


def _start(player: str, game_name: str, preset: Any) -> TrainConfig:
    """What fields have that a file does not name: those of its preset, if it names one."""
    if isinstance(preset, str) and preset:
        return from_preset(preset, player, game_name)
    kind = learner_parts(player)[0]
    return TrainConfig(player, game_name, kind(), game_parts(game_name)[0](), run_defaults(kind))


def as_toml(config: TrainConfig) -> str:
    """All fields of a configuration, each below what it means."""
    lines = [f"player = {_value(config.player)}", f"game_name = {_value(config.game_name)}"]
    for name in TABLES:
        lines += _table(name, getattr(config, name))
    return "\n".join(lines) + "\n"


def _table(name: str, config: Any) -> Iterator[str]:
    """The lines of a table, and of the tables in it."""
    yield from ("", f"[{name}]")
    fields, parts = _fields(config)
    for own, meaning, value in fields:
        yield from _comment(meaning)
        yield f"{own} = {_value(value)}"
    for own, value in parts:
        yield from _table(f"{name}.{own}", value)


def as_yaml(config: TrainConfig) -> str:
    """The same in YAML, with two spaces for each level."""
    lines = [f"player: {_yaml_value(config.player)}", f"game_name: {_yaml_value(config.game_name)}"]
    for name in TABLES:
        lines += ["", *_yaml_table(name, getattr(config, name), "")]
    return "\n".join(lines) + "\n"


def _yaml_table(name: str, config: Any, before: str) -> Iterator[str]:
    yield f"{before}{name}:"
    inside = f"{before}  "
    fields, parts = _fields(config)
    for own, meaning, value in fields:
        yield from _comment(meaning, inside)
        yield f"{inside}{own}: {_yaml_value(value)}"
    for own, value in parts:
        yield from _yaml_table(own, value, inside)


def _yaml_value(value: Any) -> str:
    """A value in YAML: as in TOML, with more signs that a text cannot hold as they are."""
    return re.sub(
        "[\x80-\x9f\u2028\u2029\ufeff\ufffe\uffff]",
        lambda found: f"\\u{ord(found[0]):04x}",
        _value(value),
    )


def _fields(config: Any) -> tuple[list[tuple[str, str, Any]], list[tuple[str, Any]]]:
    """Of a configuration: (its own fields: name, meaning, value; its parts: name, configuration).

    No value is the word `none`, since TOML has no sign for it.
    """
    kind: Any = type(config)
    helps, fields, parts = helps_of(kind), [], []
    for field in dataclasses.fields(config):
        value, own = getattr(config, field.name), public_name(field.name)
        if dataclasses.is_dataclass(value):
            parts.append((own, value))
        else:
            fields.append((own, helps.get(field.name, ""), "none" if value is None else value))
    return fields, parts


def _comment(meaning: str, before: str = "") -> list[str]:
    start = f"{before}# "
    return textwrap.wrap(meaning, WIDTH, initial_indent=start, subsequent_indent=start)


def _value(value: Any) -> str:
    """A value in TOML. Its strings are those of JSON, but for one sign."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str | Path):
        return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)
