"""Games as PettingZoo environments in use: seeds, arrays, pictures, errors."""

import importlib.util
import pickle
import sys
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest
from gymnasium import spaces

import coplay
from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.games.adapters import pettingzoo_out
from coplay.games.adapters.pettingzoo_out import CoplayParallelEnv, to_pettingzoo
from coplay.games.stag_hunt import STAY, StagHunt, StagHuntConfig

RIGHT = 3


class Unseen(StagHunt):
    """A game that cannot be drawn."""

    draw, text = Game.draw, Game.text


@cache
def tiny_game() -> StagHunt:
    return StagHunt(StagHuntConfig(players=2, height=3, horizon=12, end_after_first_hunt=0))


def tiny(**kwargs: Any) -> CoplayParallelEnv:
    return to_pettingzoo(tiny_game(), **kwargs)


def assert_same(a: Any, b: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, a, b)


# --- seeds -------------------------------------------------------------------------------------


def test_episodes_follow_from_the_seed_alone() -> None:
    env, other = tiny(seed=3), tiny()
    first, second = env.reset()[0], env.reset()[0]
    assert any((a != b).any() for a, b in zip(*map(jax.tree.leaves, (first, second)), strict=True))
    assert_same(other.reset(seed=3)[0], first)
    while other.agents:  # the next episode does not depend on how this one is played
        other.step(dict.fromkeys(other.agents, STAY))
    assert_same(other.reset()[0], second)
    assert_same(other.reset(seed=np.int64(3))[0], first)


def test_environments_without_seed_differ() -> None:
    starts = {tiny().reset()[0]["player_1"]["observation"]["planes"].tobytes() for _ in range(5)}
    assert len(starts) > 1


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seed_out_of_range(seed: int) -> None:
    with pytest.raises(UserError, match=f"seed must be from 0 to 4294967295, not {seed}"):
        tiny(seed=seed)
    with pytest.raises(UserError, match=f"not {seed}"):
        tiny().reset(seed=seed)


# --- what users do with it ---------------------------------------------------------------------


def test_observations_belong_to_the_user() -> None:
    env = tiny(seed=0)
    views, infos = env.reset()
    state = env.state()
    kept = jax.tree.map(np.copy, views)
    env.step(dict.fromkeys(env.agents, RIGHT))
    assert_same(views, kept)
    views, infos = env.reset(seed=0)
    for array in jax.tree.leaves((views, infos)):
        array[:] = 0
    assert_same(env.state(), state)


def test_spaces_are_seeded_apart() -> None:
    env = tiny()
    for kind in (env.observation_space, env.action_space):
        assert kind("player_1") == kind("player_2") and kind("player_1") is not kind("player_2")
    whole = env.observation_space("player_1")
    assert isinstance(whole, spaces.Dict)
    space = whole["observation"]
    assert isinstance(space, spaces.Dict)
    planes = space["planes"]
    assert isinstance(planes, spaces.Box)
    assert planes.shape == (3, 4, 5) and planes.high.max() == 1
    assert space["features"].shape == (15,)
    assert env.action_space("player_1").n == 7


def test_pickled_environments_go_on() -> None:
    env = tiny(seed=0)
    env.reset()
    copy = pickle.loads(pickle.dumps(env))
    actions = dict.fromkeys(env.agents, RIGHT)
    assert_same(env.step(actions), copy.step(actions))


def test_game_by_name() -> None:
    env = coplay.to_pettingzoo("stag-hunt")
    assert isinstance(env, CoplayParallelEnv) and str(env) == "stag-hunt"
    with pytest.raises(UserError, match="did you mean 'stag-hunt'"):
        coplay.to_pettingzoo("stag-hnt")


# --- pictures ----------------------------------------------------------------------------------


def test_pictures() -> None:
    env = tiny(render_mode="rgb_array", seed=0)
    env.reset()
    frames = [env.render()]
    while env.agents:
        env.step({agent: env.action_space(agent).sample() for agent in env.agents})
        frames.append(env.render())
    frames_array = np.stack(frames)
    assert frames_array.dtype == np.uint8 and frames_array.shape[-1] == 3
    assert frames_array.shape[1] > 3 * 48 and frames_array.shape[2] > 4 * 48
    assert (frames_array[0] != frames_array[1]).any()
    env.close()


def test_render_modes() -> None:
    modes = {"human", "ansi", "rgb_array"}
    declared: dict[str, Any] = tiny().metadata
    assert set(declared["render_modes"]) == modes and declared["render_fps"] > 0
    assert to_pettingzoo(Unseen()).metadata["render_modes"] == []  # type: ignore[call-arg]
    with pytest.raises(UserError, match="unknown render mode 'rgb': did you mean 'rgb_array'"):
        tiny(render_mode="rgb")
    with pytest.raises(UserError, match="unknown render mode"):
        to_pettingzoo(Unseen(), render_mode="ansi")  # type: ignore[call-arg]
    env = tiny()
    env.reset()
    with pytest.warns(UserWarning, match="without a render_mode"):
        assert env.render() is None


# --- errors ------------------------------------------------------------------------------------


def test_before_reset() -> None:
    env = tiny(render_mode="ansi")
    for too_early in (env.render, env.state, lambda: env.step({})):
        with pytest.raises(UserError, match=r"call reset\(\) first"):
            too_early()


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ({"player_1": 0}, "no action for player_2"),
        ({"player_1": 0, "player_2": 0, "player_3": 0}, "unknown agent 'player_3'"),
        ({"player_1": None, "player_2": 0}, "action of player_1 must be an integer, not None"),
        ({"player_1": 0, "player_2": 1.5}, "action of player_2 must be an integer, not 1.5"),
        ({"player_1": 0, "player_2": 2**40}, "action of player_2 must be an integer, not 1099"),
    ],
)
def test_wrong_actions(actions: dict[str, Any], message: str) -> None:
    env = tiny(seed=0)
    env.reset()
    before = env.state()
    with pytest.raises(UserError, match=message):
        env.step(actions)
    assert_same(env.state(), before)


@pytest.mark.parametrize("missing", ["pettingzoo", "gymnasium"])
def test_not_installed(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    spec = importlib.util.spec_from_file_location("without", pettingzoo_out.__file__)
    assert spec is not None and spec.loader is not None
    without = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(without)
    with pytest.raises(UserError, match=rf"{missing} is not .* pip install -e '\.\[pettingzoo\]'"):
        without.to_pettingzoo("stag-hunt")
