"""What errors say: nearest names, wrong signatures, how to get an optional part."""

import re
import tomllib
from pathlib import Path

import pytest

from coplay.core.errors import how_to_install, own, unknown, wrong_signature

KINDS = ("game", "player", "learner")


def test_the_nearest_name_is_said() -> None:
    assert "did you mean 'stag-hunt'?" in str(unknown("game", "stag-hnt", ["stag-hunt", "snow"]))
    assert "did you mean" not in str(unknown("game", "xyz", ["stag-hunt", "snow"]))


@pytest.mark.parametrize(
    ("function", "fits"),
    [
        (lambda game, state: 0, True),
        (lambda *anything: 0, True),
        (lambda game, state, noise=0.1: 0, True),
        (max, True),  # written in C
        (lambda state: 0, False),
        (lambda game, state, noise: 0, False),
        (lambda *, game, state: 0, False),
    ],
)
def test_wrong_signatures_are_said(function, fits: bool) -> None:
    said = wrong_signature("it", function, "game", "state")
    assert said == "" if fits else said.startswith("it must take (game, state), but takes (")


def test_extras_that_are_named_exist() -> None:
    home = Path(__file__).parents[2]
    extras = tomllib.loads((home / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for extra in ("jaxmarl", "mctx", "mlflow", "pettingzoo", "wandb"):
        assert f"'.[{extra}]'" in how_to_install(extra) and extra in extras
    installed = Path("/usr/lib/python3/site-packages/coplay")
    assert how_to_install("mctx", installed) == "pip install 'coplay[mctx]'"


def test_pages_that_errors_name_exist() -> None:
    home = Path(__file__).parents[2]
    code = "\n".join(path.read_text() for path in sorted((home / "coplay").rglob("*.py")))
    named = set(re.findall(r"\bsee\([\"']([\w/-]+)[\"']\)", code))
    named |= {see_own.split("docs/")[1].removesuffix(".md") for see_own in map(own, KINDS)}
    assert len(named) > 10
    assert not [page for page in named if not (home / "docs" / f"{page}.md").is_file()]
