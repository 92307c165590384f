"""Every example runs."""

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coplay.algorithms.registry import LEARNERS, PLAYERS
from coplay.games.registry import GAMES

LONG = {
    "plan_ahead",
    "episode_by_hand",
    "own_game",
    "own_partner",
    "own_player",
    "play",
    "pettingzoo_train",
    "ray_tune",
    "train",
}
EXAMPLES = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in LONG else [])
    for path in sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
]


@pytest.fixture(autouse=True)
def nothing_stays_registered() -> Iterator[None]:
    """What an example registers is unknown to other tests."""
    tables: list[dict[str, Any]] = [GAMES, LEARNERS, PLAYERS]
    before = [dict(table) for table in tables]
    yield
    for table, kept in zip(tables, before, strict=True):
        table.clear()
        table.update(kept)


@pytest.mark.parametrize("path", EXAMPLES)
def test_example(path: Path, capsys: pytest.CaptureFixture) -> None:
    if path.stem == "ray_tune":
        try:
            import ray.tune  # noqa: F401
        except ImportError as error:  # Ray alone is there, and says what Tune misses
            pytest.skip(f"Ray Tune: {error}")
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip() or path.stem == "own_learner"


def test_examples_need_nothing_below_the_top_level() -> None:
    for path in (Path(__file__).parents[1] / "examples").glob("*.py"):
        assert "coplay." not in "".join(
            line.replace("coplay.integrations.", "")
            for line in path.read_text().splitlines()
            if line.startswith(("from ", "import "))
        ), path


def test_a_learner_takes_less_than_a_hundred_lines() -> None:
    learner = Path(__file__).parents[1] / "examples" / "own_learner.py"
    assert len(learner.read_text().splitlines()) < 100
