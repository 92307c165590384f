"""Configurations: typed dataclasses that check themselves, nested by part, as JSON and back.

A field's range and what it depends on stand in its type:

    simulations: PositiveInt = 16
    depth: Annotated[PositiveInt, OnlyIf("planner", "search")] = 8

A field is named by its path, `search.simulations`, everywhere: in Python, on the command line, in
`runs/hop@search.simulations=64`. A field whose name is a keyword of Python ends with an underscore
there and nowhere else (`from_` is `from`).
"""

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

from coplay.core.errors import UserError, unknown

T = TypeVar("T")

LARGEST = 10**15
"""No whole number is greater: sums and products of several stay what they are in 64 bits."""


# --- what fields say about themselves ----------------------------------------------------------


class Range(NamedTuple):
    """The numbers that a field may have. above, below: without the limit itself."""

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None

    def holds(self, value: float) -> bool:
        return (
            (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def __str__(self) -> str:
        words = []
        if self.above is not None:
            words.append(f"above {_digits(self.above)}")
        if self.least is not None and self.most is not None:
            words.append(f"between {_digits(self.least)} and {_digits(self.most)}")
        elif self.least is not None:
            words.append(f"at least {_digits(self.least)}")
        elif self.most is not None:
            words.append(f"at most {_digits(self.most)}")
        if self.below is not None:
            words.append(f"below {_digits(self.below)}")
        return " and ".join(words)


def _digits(limit: float) -> str:
    """A limit with all its digits."""
    return str(limit) if isinstance(limit, int) else f"{limit:g}"


class OnlyIf(NamedTuple):
    """A field that acts only if another one of the same configuration has one of these values.

    path: of that field, or of a property, from the outermost configuration on; with a dot in front,
        from the part that the marked field is in, so that a part can say it wherever it is used.
    """

    path: str
    values: tuple[Any, ...]

    def inside(self, part: str) -> "OnlyIf":
        """The same for a field of a part, whose path ends with a dot or is empty."""
        own = self.path.startswith(".")
        return self._replace(path=part + self.path[1:]) if own else self

    def value(self, config: Any) -> Any:
        """What the other field or property is."""
        for name in self.path.split("."):
            config = getattr(config, name if hasattr(config, name) else f"{name}_")
        return config

    def holds(self, config: Any) -> bool:
        value = self.value(config)
        return value in self.values if self.values else bool(value)


def only_if(path: str, *values: Any) -> OnlyIf:
    """See `OnlyIf`; without values: if the other field is neither 0, False, None nor empty."""
    return OnlyIf(path, values)


PositiveInt = Annotated[int, Range(above=0)]
PositiveFloat = Annotated[float, Range(above=0)]
NonNegativeInt = Annotated[int, Range(least=0)]
NonNegativeFloat = Annotated[float, Range(least=0)]
Share = Annotated[float, Range(least=0, most=1)]
ShareBelowOne = Annotated[float, Range(least=0, below=1)]
Widths = tuple[PositiveInt, ...]
Seed = Annotated[int, Range(least=0, most=2**31 - 1)]


@dataclass(frozen=True)
class Config:
    """A configuration, or a part of one, that checks the ranges of its fields when it is made."""

    inherited_only_if: ClassVar[Mapping[str, OnlyIf]] = {}
    """Field that a part inherits -> when it acts in this part, beside what its type says."""

    def __post_init__(self) -> None:
        check_fields(self)


def check_fields(config: Any) -> None:
    """An error if a number of a dataclass is out of its field's range, infinite or NaN."""
    for field, hint in _hints(type(config)).items():
        _check(hint, getattr(config, field), public_name(field))


def checked(kind: Any, value: Any, name: str) -> Any:
    """An argument of a function as a type such as `PositiveInt`, or an error with its name."""
    value = _value(kind, value, name)
    _check(kind, value, name)
    return value


def _check(hint: Any, value: Any, name: str) -> None:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{name} must be a finite number, not {value}")
    if isinstance(value, int) and abs(value) > LARGEST:
        raise UserError(f"{name} must be at most {LARGEST:,}, not {value}")
    if origin is Annotated:
        _check(arguments[0], value, name)
        for mark in arguments[1:]:
            if isinstance(mark, Range) and not mark.holds(value):
                raise UserError(f"{name} must be {mark}, not {value}")
    elif origin in (types.UnionType, typing.Union):
        if value is not None:
            _check(next(x for x in arguments if x is not type(None)), value, name)
    elif origin is tuple and isinstance(value, tuple):
        for item in value:
            _check(arguments[0], item, name)


# --- fields by their paths ---------------------------------------------------------------------


def public_name(field: str) -> str:
    """The name of a field outside of Python code: `from_` is `from`."""
    return field.removesuffix("_")


def _read_hints(kind: Any) -> dict[str, Any]:
    """Field -> type, with what `Annotated` says."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


_hints: Callable[[Any], dict[str, Any]] = functools.cache(_read_hints)


def _bare(hint: Any) -> Any:
    """A type without what `Annotated` says."""
    return typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint


def _is_part(hint: Any) -> bool:
    return isinstance(_bare(hint), type) and dataclasses.is_dataclass(_bare(hint))


class Leaf(NamedTuple):
    """A field that is no part. path: as users write it. hint: its type."""

    path: str
    hint: Any
    value: Any
    default: Any


def leaves(config: Any, inside: str = "") -> Iterator[Leaf]:
    """All fields of a configuration and of its parts."""
    for field in dataclasses.fields(config):
        hint, value = _hints(type(config))[field.name], getattr(config, field.name)
        path = f"{inside}{public_name(field.name)}"
        if _is_part(hint):
            usual = {leaf.path: leaf.value for leaf in leaves(_default(field), f"{path}.")}
            for leaf in leaves(value, f"{path}."):
                yield leaf._replace(default=usual[leaf.path])
        else:
            yield Leaf(path, _bare(hint), value, _default(field))


def _default(field: dataclasses.Field) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return None if field.default_factory is dataclasses.MISSING else field.default_factory()


def get_field(config: Any, path: str) -> Any:
    """The value of a field by its path."""
    for name in path.split("."):
        config = getattr(config, _own_name(config, name, path))
    return config


def with_fields(config: T, values: Mapping[str, Any], where: str = "the configuration") -> T:
    """A copy with fields set, by their paths or as nested dictionaries; values are checked like
    those of a file."""
    by_name: dict[str, dict[str, Any] | Any] = {}
    for path, value in values.items():
        head, dot, rest = path.partition(".")
        name = _own_name(config, head, where, path)
        if dot:
            by_name.setdefault(name, {})[rest] = value
        elif isinstance(value, Mapping) and _is_part(_hints(type(config))[name]):
            by_name.setdefault(name, {}).update(value)
        else:
            by_name[name] = value
    changed = {}
    for name, value in by_name.items():
        hint = _hints(type(config))[name]
        if _is_part(hint) and isinstance(value, dict):
            changed[name] = with_fields(getattr(config, name), value, where)
        else:
            changed[name] = _value(hint, value, f"{public_name(name)} in {where}")
    return dataclasses.replace(config, **changed)  # type: ignore[type-var]


def _own_name(config: Any, name: str, where: str, path: str | None = None) -> str:
    """The attribute that a user's name means; an error with the nearest path if there is none."""
    names = {public_name(field.name): field.name for field in dataclasses.fields(config)}
    plain = name.replace("-", "_")
    if plain not in names:
        valid = [leaf.path for leaf in leaves(config)]
        raise unknown(f"field in {where}", path or name, valid)
    return names[plain]


def parse_fields(config: T, texts: list[str], where: str) -> T:
    """A copy of a configuration with fields set from texts `path=value`."""
    hints = {leaf.path: leaf.hint for leaf in leaves(config)}
    values = {}
    for text in texts:
        path, equals, value = text.partition("=")
        if not equals:
            raise UserError(f"'{text}' in {where}: expected field=value")
        values[path] = _plain(value, hints.get(path.replace("-", "_")))
    return with_fields(config, values, where)


def _plain(text: str, hint: Any) -> Any:
    """What a text means for a field of this type."""
    if typing.get_origin(hint) is Literal and text in typing.get_args(hint):
        return text  # `none` may be a choice
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            pass
    return {"none": None, "true": True, "false": False}.get(text.lower(), text)


def inert_fields(config: Any) -> list[str]:
    """Fields that are not at their defaults and do nothing with the other settings, as sentences
    for a user."""
    found: list[str] = []

    def visit(part: Any, inside: str, conditions: tuple[OnlyIf, ...]) -> None:
        for field in dataclasses.fields(part):
            hint, value = _hints(type(part))[field.name], getattr(part, field.name)
            path = f"{inside}{public_name(field.name)}"
            marks = typing.get_args(hint)[1:] if typing.get_origin(hint) is Annotated else ()
            # A user's own part may be a plain dataclass.
            more = getattr(part, "inherited_only_if", {}).get(field.name)
            own = [mark for mark in (*marks, more) if isinstance(mark, OnlyIf)]
            mine = (*conditions, *(mark.inside(inside) for mark in own))
            if _is_part(hint):
                visit(value, f"{path}.", mine)
            elif value != usual[path]:
                failed = next((one for one in mine if not one.holds(config)), None)
                if failed is not None:
                    is_ = failed.value(config)
                    found.append(f"{path} does nothing here: {failed.path} is {is_}")

    usual = {leaf.path: leaf.default for leaf in leaves(config)}
    visit(config, "", ())
    return found


# --- JSON --------------------------------------------------------------------------------------


def to_json(config: Any) -> Any:
    """A dataclass as plain dictionaries, lists, strings and numbers."""
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        return {
            public_name(field.name): to_json(getattr(config, field.name))
            for field in dataclasses.fields(config)
        }
    if isinstance(config, tuple | list):
        return [to_json(item) for item in config]
    return str(config) if isinstance(config, Path) else config


def from_json(kind: type[T], data: Any, where: str) -> T:
    """A dataclass from what `to_json` gave; unknown fields and wrong types are user errors."""
    if not isinstance(data, dict):
        raise UserError(f"{where} must be an object with fields, not {data!r}")
    hints = _hints(kind)
    names = {public_name(name): name for name in hints}
    for name in data:
        if name not in names:
            raise unknown(f"field in {where}", name, names)
    usual = {field.name: _default(field) for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    values = {}
    for name, value in data.items():
        own, inside = names[name], f"{where}.{name}"
        if isinstance(value, dict) and isinstance(usual[own], Config):
            # A part may have other defaults here than elsewhere.
            values[own] = with_fields(usual[own], value, inside)
        else:
            values[own] = _value(hints[own], value, inside)
    return kind(**values)


def _value(hint: Any, value: Any, where: str) -> Any:
    """`value` as the type `hint`, which is one of those our configurations use."""
    hint = _bare(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        if value not in arguments:
            raise unknown(f"value of {where}", str(value), map(str, arguments))
        return value
    if origin in (types.UnionType, typing.Union):
        inner = [argument for argument in arguments if argument is not type(None)]
        # TOML has no word for nothing.
        nothing = value is None or (value == "none" and _bare(inner[0]) in (int, float))
        if nothing and type(None) in arguments:
            return None
        return _value(inner[0], value, where)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise UserError(f"{where} must be a list, not {value!r}")
        return tuple(_value(arguments[0], item, where) for item in value)
    if _is_part(hint):
        return value if isinstance(value, hint) else from_json(hint, value, where)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is Path and isinstance(value, str):
        return Path(value)
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise UserError(f"{where} must be {hint.__name__}, not {value!r}")
    return value
