"""Configurations as JSON and back: typed dataclasses, validated on the way in."""

import dataclasses
import types
import typing
from pathlib import Path
from typing import Any, Literal, TypeVar

from coplay.core.errors import UserError, unknown

T = TypeVar("T")


def to_json(config: Any) -> Any:
    """A dataclass as plain dictionaries, lists, strings and numbers."""
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        return {
            field.name: to_json(getattr(config, field.name)) for field in dataclasses.fields(config)
        }
    if isinstance(config, tuple | list):
        return [to_json(item) for item in config]
    return str(config) if isinstance(config, Path) else config


def from_json(kind: type[T], data: Any, where: str) -> T:
    """A dataclass from what `to_json` gave; unknown fields and wrong types are user errors."""
    if not isinstance(data, dict):
        raise UserError(f"{where} must be an object with fields, not {data!r}")
    hints = typing.get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for name in data:
        if name not in names:
            raise unknown(f"field in {where}", name, names)
    return kind(**{name: _value(hints[name], data[name], f"{where}.{name}") for name in data})


def parse_fields(config: T, texts: list[str], where: str) -> T:
    """A copy of a configuration with fields set from texts `name=value`."""
    names = [field.name for field in dataclasses.fields(config)]  # type: ignore[arg-type]
    hints = typing.get_type_hints(type(config))
    changed = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.replace("-", "_")
        if not equals:
            raise UserError(f"'{text}' in {where}: expected field=value")
        if name not in names:
            raise unknown(f"field in {where}", name, names)
        changed[name] = _value(hints[name], _plain(value), f"{name} in {where}")
    return dataclasses.replace(config, **changed)  # type: ignore[type-var]


def _plain(text: str) -> Any:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            pass
    return {"none": None, "true": True, "false": False}.get(text.lower(), text)


def _value(hint: Any, value: Any, where: str) -> Any:
    """`value` as the type `hint`, which is one of those our configurations use."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        if value not in arguments:
            raise unknown(f"value of {where}", str(value), map(str, arguments))
        return value
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in arguments:
            return None
        inner = [argument for argument in arguments if argument is not type(None)]
        return _value(inner[0], value, where)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise UserError(f"{where} must be a list, not {value!r}")
        return tuple(_value(arguments[0], item, where) for item in value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is Path and isinstance(value, str):
        return Path(value)
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise UserError(f"{where} must be {hint.__name__}, not {value!r}")
    return value
