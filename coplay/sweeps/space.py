"""What a sweep varies: fields by their paths, each with a list of values or a range.

discount=0.9,0.99                        a list
optimiser.learning_rate=log:1e-4..1e-2   a range, drawn evenly in the logarithm
entropy_weight=0..0.1                    a range
search.simulations=int:8..32             whole numbers
discount=0.9..0.99:4                     four values, evenly from end to end: a list
"""

import dataclasses
import itertools
import json
import math
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from coplay.core.config import get_field, leaves, parse_fields, with_fields
from coplay.core.errors import UserError, unknown
from coplay.training.config import RunConfig, TrainConfig

Scale = Literal["linear", "log", "int"]
Setting = dict[str, Any]
"""Path of a field -> its value, for all fields that a sweep varies."""

RANGE = re.compile(r"(?:(log|int):)?([^.].*?)\.\.([^:]+)(?::(.+))?")
MOST_SETTINGS = 100_000
NOT_VARIED = {
    "seed": "--seed is the first seed of every setting",
    "seeds": "--seeds says how many seeds every setting has",
    "log": "it does not change what is learned",
    "preset": "--preset is for all settings",
    "devices": "it does not change what is learned",
    "keep": "it does not change what is learned",
    "block": "it does not change what is learned",
    "checkpoint_every": "it does not change what is learned",
    "evaluate_every": "it does not change what is learned",
    "evaluate_episodes": "it does not change what is learned",
    "episodes": "it does not change what is learned",
}
"""Field of a run -> why it is not varied."""


class Dimension(NamedTuple):
    """A field that is varied. values: the list, empty for a range. low, high, scale: the range."""

    path: str
    values: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    scale: Scale = "linear"

    @property
    def listed(self) -> bool:
        return bool(self.values)

    def draw(self, chance: random.Random) -> Any:
        """A value at random."""
        if self.listed:
            return chance.choice(self.values)
        if self.scale == "int":
            return chance.randint(int(self.low), int(self.high))
        if self.scale == "log":
            return math.exp(chance.uniform(math.log(self.low), math.log(self.high)))
        return chance.uniform(self.low, self.high)

    def ends(self) -> tuple[Any, ...]:
        """Its values, or both ends of its range."""
        if self.listed:
            return self.values
        ends = (self.low, self.high)
        return tuple(map(int, ends)) if self.scale == "int" else ends

    def as_json(self) -> dict[str, Any]:
        return self._asdict() | {"values": list(self.values)}


def dimensions(config: TrainConfig, vary: Mapping[str, str | Sequence[Any]]) -> list[Dimension]:
    """The fields to vary, each checked: it exists, and every value or end of a range is valid.

    vary: path -> values, or the text of a list or a range.
    """
    if not vary:
        raise UserError(
            "a sweep needs fields to vary, such as --vary discount=0.9,0.99 "
            "optimiser.learning-rate=log:1e-4..1e-2"
        )
    found: list[Dimension] = []
    for name, given in vary.items():
        one = _dimension(config, name, given)
        if any(one.path == other.path for other in found):
            raise UserError(f"{one.path} is varied twice: give all its values in one list")
        found.append(one)
    return found


def texts_of(vary: Sequence[str]) -> dict[str, str]:
    """Texts `field=values` of the command line, taken apart."""
    found: dict[str, str] = {}
    for text in vary:
        name, equals, values = text.partition("=")
        if not equals or not name or not values:
            raise UserError(
                f"--vary '{text}': expected FIELD=VALUES, such as discount=0.9,0.99 or "
                "discount=0.9..0.99"
            )
        if name.replace("-", "_") in {other.replace("-", "_") for other in found}:
            raise UserError(f"{name} is varied twice: give all its values in one list")
        found[name] = values
    return found


def _dimension(config: TrainConfig, name: str, given: str | Sequence[Any]) -> Dimension:
    path = own_path(config, name)
    if isinstance(given, str):
        if one := _range(path, given):
            if _is_whole(config, path) and one.scale == "linear":
                one = one._replace(scale="int", values=tuple(map(_rounded, one.values)))
            for end in one.ends():
                configured(config, {path: end})
            return one
        values = [_parsed(config, path, text) for text in given.split(",")]
    else:
        values = list(given)
    # As the configuration has them: 1 of a float is 1.0.
    values = [setting_of(configured(config, {path: value}), [path])[path] for value in values]
    distinct = list({json.dumps(value): value for value in values}.values())
    if len(distinct) < 2:
        raise UserError(
            f"--vary {path}: a sweep needs at least two different values; a single one is an "
            "option of its own"
        )
    return Dimension(path, tuple(distinct))


def _range(path: str, text: str) -> Dimension | None:
    """The range that a text names, or the list of its points; None: it is a plain list."""
    found = RANGE.fullmatch(text)
    if found is None:
        if text.startswith(("log:", "int:")):
            raise UserError(f"--vary {path}={text}: a range is written {text[:4]}LOW..HIGH")
        return None
    scale, points = found[1] or "linear", found[4]
    try:
        low, high = (float(found[2]), float(found[3]))
    except ValueError:
        raise UserError(f"--vary {path}={text}: the ends of a range are numbers") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UserError(f"--vary {path}={text}: a range goes from a number to a greater one")
    if scale == "log" and low <= 0:
        raise UserError(f"--vary {path}={text}: a logarithmic range begins above 0")
    if scale == "int" and not (low.is_integer() and high.is_integer()):
        raise UserError(f"--vary {path}={text}: the ends must be whole numbers")
    one = Dimension(path, (), low, high, scale)  # type: ignore[arg-type]
    return one if points is None else one._replace(values=_points(one, text, points))


def _is_whole(config: TrainConfig, path: str) -> bool:
    """Whether a field holds a whole number."""
    value = setting_of(config, [path])[path]
    return isinstance(value, int) and not isinstance(value, bool)


def _rounded(value: float) -> float:
    """A whole number where it is one."""
    return int(value) if float(value).is_integer() else value


def _points(one: Dimension, text: str, points: str) -> tuple[Any, ...]:
    """So many values from end to end."""
    if not points.isascii() or not points.isdigit() or not 2 <= int(points) <= 1000:
        raise UserError(f"--vary {one.path}={text}: give 2 to 1000 points, as in LOW..HIGH:5")
    shares = [index / (int(points) - 1) for index in range(int(points))]
    if one.scale == "log":
        values = [one.low * (one.high / one.low) ** share for share in shares]
    else:
        values = [one.low + (one.high - one.low) * share for share in shares]
    if one.scale == "int":
        return tuple(dict.fromkeys(round(value) for value in values))
    return tuple(float(f"{value:.6g}") for value in values)


def _parsed(config: TrainConfig, path: str, text: str) -> Any:
    """The value that a text means for a field."""
    place, inside = _place(path)
    part = parse_fields(getattr(config, place), [f"{inside}={text}"], f"--vary {path}")
    return get_field(part, inside)


# --- configurations with a setting -------------------------------------------------------------


def own_path(config: TrainConfig, name: str) -> str:
    """The path of a field as settings name it; an error if there is none or it is not varied."""
    path = name.replace("-", "_")
    valid = [leaf.path for part in (config.run, config.learner) for leaf in leaves(part)]
    valid += [f"game.{leaf.path}" for leaf in leaves(config.game)]
    if path not in valid:
        raise unknown("field to vary", name, [one for one in valid if one not in NOT_VARIED])
    if path in NOT_VARIED:
        raise UserError(f"--vary {path}: {NOT_VARIED[path]}")
    return path


def _place(path: str) -> tuple[str, str]:
    """The part of a run's configuration that has a field, and the field's path in it."""
    if path.startswith("game."):
        return "game", path.removeprefix("game.")
    head = path.partition(".")[0]
    of_run = {field.name for field in dataclasses.fields(RunConfig)}
    return ("run" if head in of_run else "learner"), path


def configured(config: TrainConfig, setting: Mapping[str, Any]) -> TrainConfig:
    """A configuration with the fields of a setting."""
    parts: dict[str, dict[str, Any]] = {}
    for path, value in setting.items():
        place, inside = _place(path)
        parts.setdefault(place, {})[inside] = value
    changed = {
        place: with_fields(getattr(config, place), values, "--vary")
        for place, values in parts.items()
    }
    return dataclasses.replace(config, **changed)


def setting_of(config: TrainConfig, paths: Sequence[str]) -> Setting:
    """The values that some fields have, as JSON keeps them."""
    found = {}
    for path in paths:
        place, inside = _place(path)
        value = get_field(getattr(config, place), inside)
        found[path] = list(value) if isinstance(value, tuple) else value
    return found


# --- settings ----------------------------------------------------------------------------------


def grid(space: Sequence[Dimension]) -> list[Setting]:
    """Every combination of the lists, the last field changing fastest."""
    for one in space:
        if not one.listed and one.scale != "int":
            raise UserError(
                f"a grid needs values of {one.path}: give a list or a number of points, as in "
                "LOW..HIGH:5, or --sampler random"
            )
    values = [one.values or tuple(range(int(one.low), int(one.high) + 1)) for one in space]
    if math.prod(map(len, values)) > MOST_SETTINGS:
        raise UserError(
            f"this grid has more than {MOST_SETTINGS:,} settings: give fewer values, or "
            "--sampler random"
        )
    paths = [one.path for one in space]
    return [dict(zip(paths, chosen, strict=True)) for chosen in itertools.product(*values)]


def drawn(space: Sequence[Dimension], count: int, seed: int) -> list[Setting]:
    """Settings at random, all different; fewer where there are not so many."""
    chance = random.Random(seed)
    found: dict[str, Setting] = {}
    for _ in range(50 * count):
        if len(found) == count:
            break
        setting = {one.path: one.draw(chance) for one in space}
        found.setdefault(json.dumps(setting), setting)
    return list(found.values())


def words(setting: Mapping[str, Any]) -> str:
    """A setting in a line."""
    return " ".join(f"{path}={shown_value(value)}" for path, value in setting.items())


def shown_value(value: Any) -> str:
    """A value of a field for a table."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
