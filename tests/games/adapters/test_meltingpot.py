"""Melting Pot's substrates: the adapter with a double, and the real library where it is there."""

import random
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import coplay
from coplay.core.errors import UserError
from coplay.games.adapters.workers.meltingpot_env import MeltingPotParallel, make
from coplay.games.adapters.workers.seats import read_seats
from coplay.games.registry import game_parts
from tests.games.adapters import meltingpot_double

REAL = "prisoners_dilemma_in_the_matrix__repeated"
installed = pytest.mark.skipif(find_spec("meltingpot") is None, reason="Melting Pot is not here")


@pytest.fixture
def double(monkeypatch: Any) -> None:
    package = ModuleType("meltingpot")
    monkeypatch.setitem(sys.modules, "meltingpot", package)
    monkeypatch.setitem(sys.modules, "meltingpot.substrate", meltingpot_double.module())


def course(env: MeltingPotParallel, seed: int) -> tuple[list[Any], bool, bool]:
    """What the first player saw in an episode, and how it ended."""
    seen = [env.reset(seed=seed)[0]["player_0"]]
    while True:
        views, _, ended, cut, _ = env.step({"player_0": 3, "player_1": 5})
        seen.append(views["player_0"])
        if not env.agents:
            return seen, ended["player_0"], cut["player_0"]


def test_views_rewards_and_ends(double: None) -> None:
    env = make("tiny", shrink=4)
    assert env.possible_agents == ["player_0", "player_1"]
    seats = read_seats(env, "meltingpot:tiny")
    # A picture of bytes beside two numbers of the inventory and one of the gun: nothing that
    # Melting Pot hides from players in its scenarios.
    assert seats.planes == (4, 2, 3) and seats.features == 3 and seats.image
    views, _ = env.reset(seed=3)
    first = views["player_1"]["planes"]
    assert first.dtype == np.uint8 and (first == first[0, 0, 0]).all()
    np.testing.assert_array_equal(views["player_0"]["features"], [0, -1000, 1])
    _, rewards, _, _, _ = env.step({"player_0": 3, "player_1": 5})
    assert rewards == {"player_0": 3.0, "player_1": 5.0}
    ends = [course(make("tiny"), seed) for seed in range(20)]
    # What ends by chance has ended; what reaches the last frame was cut.
    for seen, ended, cut in ends:
        assert ended != cut and cut == (len(seen) - 1 == meltingpot_double.FRAMES)
    assert {cut for *_, cut in ends} == {True, False}
    # A view stays as it was when the next one comes.
    shades = [int(view["planes"][0, 0, 0]) for view in ends[0][0]]
    assert shades == list(range(shades[0], shades[0] + len(shades)))


def test_a_seed_draws_the_episode_and_nobody_else_is_disturbed(double: None) -> None:
    env, other = make("tiny"), make("tiny")
    random.seed(7)
    before = random.getstate()
    one = course(env, 5)
    other.reset(seed=11)
    assert random.getstate() == before
    again = course(other, 5)
    assert len(one[0]) == len(again[0])
    for mine, theirs in zip(one[0], again[0], strict=True):
        np.testing.assert_array_equal(mine["planes"], theirs["planes"])
    assert len({course(env, seed)[0][0]["planes"][0, 0, 0] for seed in range(8)}) > 4


def test_films_show_the_world(double: None) -> None:
    quiet, film = make("tiny"), make("tiny", render_mode="rgb_array")
    quiet.reset(seed=1)
    film.reset(seed=1)
    assert quiet.render() is None
    picture = film.render()
    assert picture is not None and picture.shape == (24, 24, 3)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("meltingpot:tinny", (), "unknown substrate of Melting Pot 'tinny'.*'tiny'"),
        ("meltingpot:tiny", ("shrnk=2",), "'shrink'"),
        ("meltingpot:tiny", ("shrink=3",), "must divide the picture's 16 x 8"),
        ("meltingpot:tiny", ("shrink=big",), "a whole number"),
    ],
)
def test_errors(double: None, name: str, options: tuple[str, ...], words: str) -> None:
    with pytest.raises(UserError, match=words):
        coplay.make_game(name, options=options)


def test_without_the_library_it_says_how_to_get_it(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "meltingpot", None)
    kind, game = game_parts("meltingpot:coins")
    with pytest.raises(UserError, match="pip install dm-meltingpot"):
        game(kind())


@installed
@pytest.mark.slow
def test_the_real_one_trains_and_plays(tmp_path: Path) -> None:
    name = f"meltingpot:{REAL}"
    fields: Any = {"copies": 2, "rollout": 8, "steps": 32, "episodes": 2, "minibatches": 1}
    coplay.train("ppo", name, tmp_path / "run", game_fields={"options": ("shrink=8",)}, quiet=True,
                 pictures=False, **fields)  # fmt: skip
    game = coplay.make_game(name, options=("shrink=8",))
    assert game.seats == 2 and game.actions == 8


@installed
@pytest.mark.slow
def test_the_real_one_gives_the_same_episode_for_a_seed() -> None:
    def steps(seed: int) -> list[np.ndarray]:
        env = make(REAL)
        seen = [env.reset(seed=seed)[0]["player_0"]["planes"]]
        rng = np.random.default_rng(0)
        for _ in range(30):
            actions = {agent: int(rng.integers(8)) for agent in env.agents}
            seen.append(env.step(actions)[0]["player_0"]["planes"])
        env.close()
        return seen

    one, again, other = steps(4), steps(4), steps(5)
    assert all((a == b).all() for a, b in zip(one, again, strict=True))
    assert any((a != b).any() for a, b in zip(one, other, strict=True))
