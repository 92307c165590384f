"""Where environments come from."""

import pickle

import pytest

from coplay.core.errors import UserError
from coplay.games.adapters.workers.source import Source, accepts, parse_option


def make(size: int = 1, render_mode: str | None = None) -> dict[str, object]:
    return {"size": size, "render_mode": render_mode}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n=3", 3),
        ("n=0.5", 0.5),
        ("n=[1, 2]", [1, 2]),
        ("n=True", True),
        ("n=false", False),
        ("n=none", None),
        ("n=two words", "two words"),
        ("n=a=b", "a=b"),
    ],
)
def test_options_are_python_values_or_words(text: str, value: object) -> None:
    assert parse_option(text) == ("n", value)


@pytest.mark.parametrize("text", ["n", "=3", "my-name=3"])
def test_what_is_no_option_is_named(text: str) -> None:
    with pytest.raises(UserError, match=f"option '{text}': expected NAME=VALUE"):
        parse_option(text)


def test_environments_are_made_by_name_or_from_a_pickled_callable() -> None:
    named = Source(__name__, "make", ("size=4",))
    assert named.make() == {"size": 4, "render_mode": None}
    assert named.make(film=True) == {"size": 4, "render_mode": "rgb_array"}
    sent = Source("", "", ("size=2",), pickle.dumps(make))
    assert sent.make()["size"] == 2


def test_who_takes_an_argument() -> None:
    assert accepts(make, "size") and not accepts(make, "seed")
    assert accepts(lambda **rest: rest, "anything")
