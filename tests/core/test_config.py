"""Configurations: ranges in the types of fields, parts, paths, JSON and back, fields that do
nothing."""

import math
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest

from coplay.core.config import (
    Config,
    PositiveFloat,
    PositiveInt,
    Range,
    Share,
    ShareBelowOne,
    Widths,
    checked,
    from_json,
    get_field,
    inert_fields,
    leaves,
    only_if,
    parse_fields,
    to_json,
    with_fields,
)
from coplay.core.errors import UserError


@dataclass(frozen=True)
class Planning(Config):
    simulations: PositiveInt = 16
    discount: Share = 0.95
    from_: str = ""


@dataclass(frozen=True)
class Player(Config):
    planner: Literal["none", "search"] = "search"
    search: Annotated[Planning, only_if("planner", "search")] = field(default_factory=Planning)
    hidden: Widths = (64, 64)
    clip: PositiveFloat | None = None
    keep: ShareBelowOne = 0.5
    anchor: float = 0.0
    anchor_every: Annotated[PositiveInt, only_if("anchor")] = 100


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"search.simulations": 0}, "simulations must be above 0, not 0"),
        ({"search": {"discount": 1.5}}, "discount must be between 0 and 1, not 1.5"),
        ({"hidden": [64, 0]}, "hidden must be above 0, not 0"),
        ({"clip": -1.0}, "clip must be above 0, not -1.0"),
        ({"keep": 1}, "keep must be at least 0 and below 1, not 1.0"),
        ({"anchor": math.nan}, "anchor must be a finite number, not nan"),
        ({"clip": math.inf}, "clip must be a finite number, not inf"),
        ({"search.discount": -math.inf}, "discount must be a finite number, not -inf"),
        ({"search.simulations": 10**16}, "simulations must be at most"),
        ({"search.simulation": 4}, "did you mean 'simulations'"),
        ({"serach.simulations": 4}, "did you mean 'search.simulations'"),
        ({"search.simulations": "many"}, "must be int, not 'many'"),
        ({"planner": "serach"}, "did you mean 'search'"),
        ({"search": 3}, "must be an object with fields, not 3"),
    ],
)
def test_wrong_fields(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        with_fields(Player(), fields)


def test_fields_by_path() -> None:
    wanted = Player(search=Planning(simulations=4, from_="runs/a"), clip=0.2)
    given = {"search.simulations": 4, "search.from": "runs/a", "clip": 0.2}
    assert with_fields(Player(), given) == wanted
    nested = {"search": {"simulations": 4, "from": "runs/a"}, "clip": 0.2}
    assert with_fields(Player(), nested) == wanted
    assert with_fields(Player(), {"search": wanted.search, "clip": 0.2}) == wanted
    texts = ["search.simulations=4", "search.from=runs/a", "clip=0.2"]
    assert parse_fields(Player(), texts, "here") == wanted
    assert parse_fields(Player(), ["planner=none", "clip=none"], "here") == Player(planner="none")
    assert get_field(wanted, "search.from") == "runs/a"


def test_none_may_be_a_choice() -> None:
    given = parse_fields(Player(clip=0.2), ["planner=none", "clip=none"], "here")
    assert given.planner == "none" and given.clip is None


def test_json_and_back() -> None:
    config = Player(search=Planning(simulations=4, from_="runs/a"), hidden=(3,))
    data = to_json(config)
    assert data["search"] == {"simulations": 4, "discount": 0.95, "from": "runs/a"}
    assert from_json(Player, data, "there") == config
    with pytest.raises(UserError, match=r"field in there\.search 'simulation'"):
        from_json(Player, {"search": {"simulation": 1}}, "there")


def test_leaves_have_paths_and_defaults() -> None:
    config = Player(search=Planning(simulations=4))
    found = {leaf.path: (leaf.value, leaf.default) for leaf in leaves(config)}
    assert found["search.simulations"] == (4, 16) and found["search.from"] == ("", "")
    assert found["clip"] == (None, None)


def test_plain_dataclasses_have_no_inert_fields() -> None:
    @dataclass(frozen=True)
    class Own:
        cells: int = 6

    assert inert_fields(Own(cells=8)) == []


def test_fields_that_do_nothing_are_named() -> None:
    assert inert_fields(Player()) == []
    assert inert_fields(with_fields(Player(), {"search.simulations": 4, "anchor": 0.1})) == []
    quiet = with_fields(Player(), {"planner": "none", "search.simulations": 4, "anchor_every": 7})
    assert inert_fields(quiet) == [
        "search.simulations does nothing here: planner is none",
        "anchor_every does nothing here: anchor is 0.0",
    ]


def test_ranges_in_words() -> None:
    assert str(Range(least=2)) == "at least 2" and str(Range(most=3)) == "at most 3"
    assert str(Range(above=0, below=1)) == "above 0 and below 1"


@dataclass(frozen=True)
class Encoder(Config):
    kind: Literal["mlp", "cnn"] = "mlp"
    channels: Annotated[Widths, only_if(".kind", "cnn")] = (16,)


@dataclass(frozen=True)
class TwoEncoders(Config):
    actor: Encoder = field(default_factory=Encoder)
    critic: Encoder = field(default_factory=Encoder)


def test_a_part_names_its_own_fields() -> None:
    config = TwoEncoders(Encoder(channels=(8,)), Encoder("cnn", (8,)))
    assert inert_fields(config) == ["actor.channels does nothing here: actor.kind is mlp"]
    assert inert_fields(config.actor) == ["channels does nothing here: kind is mlp"]


@dataclass(frozen=True)
class WideEncoder(Config):
    encoder: Encoder = field(default_factory=lambda: Encoder("cnn", (64,)))


def test_parts_of_files_keep_the_defaults_of_their_place() -> None:
    read = from_json(WideEncoder, {"encoder": {"channels": [8]}}, "here")
    assert read == WideEncoder(Encoder("cnn", (8,)))
    with pytest.raises(UserError, match=r"here\.encoder"):
        from_json(WideEncoder, {"encoder": {"chanels": [8]}}, "here")


@pytest.mark.parametrize(
    ("value", "words"),
    [(0, "above 0, not 0"), (2.0, "int, not 2.0"), (math.nan, "int, not nan"), (True, "int, not")],
)
def test_arguments_of_functions_are_checked_alike(value: Any, words: str) -> None:
    assert checked(PositiveInt, 3, "episodes") == 3 and checked(Share, 1, "share") == 1.0
    with pytest.raises(UserError, match=f"episodes must be {words}"):
        checked(PositiveInt, value, "episodes")
