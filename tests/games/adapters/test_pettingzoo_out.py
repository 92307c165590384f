"""Games as PettingZoo environments: PettingZoo's own tests, and the game stepped directly."""

import itertools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pettingzoo import ParallelEnv
from pettingzoo.test import (
    api_test,
    parallel_api_test,
    parallel_seed_test,
    render_test,
    seed_test,
    state_test,
)
from pettingzoo.utils.conversions import parallel_to_aec

import coplay
from coplay.core.game import Game, Observation, Outcome
from coplay.games.adapters.pettingzoo_out import CoplayParallelEnv, to_pettingzoo
from coplay.games.stag_hunt import HUNT_HARE, STAY

LEFT, RIGHT = 2, 3


class LotteryState(NamedTuple):
    alive: jax.Array
    number: jax.Array


class Lottery(Game):
    """No board; each step everything is by chance: rewards, who leaves, what is seen."""

    name = "lottery"
    action_names = ("wait", "play")

    @property
    def seats(self) -> int:
        return 3

    def reset(self, key):
        return LotteryState(jnp.ones(3, bool), jax.random.normal(key, (3,)))

    def step(self, key, state, actions):
        number = jax.random.normal(key, (3,))
        left = state.alive & (number > 1) & (actions == 1)
        alive = state.alive & ~left
        reward = jnp.where(state.alive, number, 0.0)
        cut = jnp.any(alive) & (jnp.sum(number) > 3)
        return LotteryState(alive, number), Outcome(reward, left, cut)

    def observe(self, state):
        legal = jnp.ones((3, 2), bool).at[:, 1].set(state.alive)
        return Observation(jnp.zeros((3, 1, 1, 0), bool), state.number[:, None], legal)

    def alive(self, state):
        return state.alive


class Terrain(Lottery):
    """Planes of whole numbers instead of signs that something is there."""

    name = "terrain"

    def observe(self, state):
        heights = (100 * state.number).astype(jnp.int16)[:, None, None, None]
        return super().observe(state)._replace(planes=jnp.broadcast_to(heights, (3, 2, 5, 1)))


SMALL = {"horizon": 12}
STAG_HUNTS: dict[str, dict[str, Any]] = {
    "4x4": SMALL,
    "walls": SMALL | {"height": 6, "width": 5, "walls": 2, "wall_maps": 8},
    "view": SMALL | {"view": 1, "players": 3, "time_reward": -0.125},
    "two, first hunt ends": SMALL | {"players": 2, "height": 3, "end_after_first_hunt": 0},
}
NAMES = [*STAG_HUNTS, "lottery", "terrain"]

# What PettingZoo says about every environment with action masks or without bounds.
KNOWN_WARNINGS = (
    "Observation is not a NumPy array",
    "Observation space for each agent probably should be gymnasium.spaces.box",
    "Environment's minimum state space value is -infinity",
    "Environment's maximum state space value is infinity",
)


@cache
def game_named(name: str) -> Game:
    if name in STAG_HUNTS:
        return coplay.make_game("stag-hunt", **STAG_HUNTS[name])
    return {"lottery": Lottery, "terrain": Terrain}[name]()


def tiny(**kwargs: Any) -> CoplayParallelEnv:
    return to_pettingzoo(game_named("two, first hunt ends"), **kwargs)


@contextmanager
def no_new_warnings() -> Iterator[None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    messages = {str(warning.message) for warning in caught}
    assert not [text for text in messages if not text.startswith(KNOWN_WARNINGS)]


def assert_same(a: Any, b: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, a, b)


# --- PettingZoo's own tests --------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_pettingzoo_tests(name: str) -> None:
    def make() -> CoplayParallelEnv:
        return to_pettingzoo(game_named(name))

    assert isinstance(make(), ParallelEnv)
    with no_new_warnings():
        parallel_api_test(make(), num_cycles=40)
        parallel_seed_test(make, num_cycles=10)
        api_test(parallel_to_aec(make()), num_cycles=40)
        seed_test(lambda: parallel_to_aec(make()), num_cycles=10)
        state_test(parallel_to_aec(make()), make(), num_cycles=5)


def test_pettingzoo_render_test(capsys: pytest.CaptureFixture) -> None:
    checks: dict[str, Callable[[Any], bool]] = {"ansi": lambda text: "/12" in text}
    render_test(lambda **kwargs: parallel_to_aec(tiny(**kwargs)), checks)
    assert "/12" in capsys.readouterr().out  # from "human"


# --- against the game stepped directly ---------------------------------------------------------


def check_views(env: CoplayParallelEnv, views: dict, infos: dict, seen: Observation) -> None:
    """Observations, infos and state are what the game shows to the seats."""
    for agent, view in views.items():
        seat = env.possible_agents.index(agent)
        assert env.observation_space(agent).contains(view)
        planes = seen.planes[seat]
        planes = planes.astype(np.int8) if planes.dtype == bool else planes
        expected = {"planes": planes, "features": seen.features[seat]}
        assert_same(view, {"observation": expected, "action_mask": seen.legal[seat]})
        assert view["observation"]["planes"].dtype == planes.dtype
        assert view["action_mask"].dtype == np.int8
        assert_same(infos[agent], {"action_mask": seen.legal[seat]})
    whole = [
        np.concatenate([np.ravel(p), f]) for p, f in zip(seen.planes, seen.features, strict=True)
    ]
    np.testing.assert_array_equal(env.state(), np.concatenate(whole))
    assert env.state_space.contains(env.state())


def some_actions(env: CoplayParallelEnv, views: dict, chance: np.random.Generator) -> dict:
    """Mostly legal actions, and some for agents that left."""
    actions = {}
    for agent in env.possible_agents:
        if agent in env.agents and chance.random() < 0.8:
            actions[agent] = chance.choice(np.flatnonzero(views[agent]["action_mask"]))
        elif agent in env.agents or chance.random() < 0.5:
            actions[agent] = chance.integers(env.game.actions)
    return actions


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_steps_as_the_game_does(name: str) -> None:
    game = game_named(name)

    @jax.jit
    def begin(episode):
        key = jax.random.fold_in(jax.random.key(5), episode)
        state = game.reset(jax.random.fold_in(key, 0))
        return key, state, game.observe(state)

    @jax.jit
    def step(key, time, state, actions):
        state, outcome = game.step(jax.random.fold_in(key, time), state, actions)
        return state, game.observe(state), game.alive(state), outcome

    env = to_pettingzoo(game, seed=5)
    chance = np.random.default_rng(0)
    happened = set()
    for episode in range(12):
        views, infos = env.reset()
        key, state, seen = begin(episode)
        assert env.agents == [f"player_{seat + 1}" for seat in range(game.seats)]
        check_views(env, views, infos, jax.device_get(seen))
        time = 0
        while env.agents:
            before, time = env.agents.copy(), time + 1
            actions = some_actions(env, views, chance)
            happened |= {"illegal" for a in before if not views[a]["action_mask"][actions[a]]}
            happened |= {"left and acts" for agent in actions if agent not in before}
            by_seat = np.array([actions.get(agent, 0) for agent in env.possible_agents])
            state, *result = step(key, time, state, by_seat)
            seen, alive, outcome = jax.device_get(result)
            views, rewards, terminations, truncations, infos = env.step(actions)

            for given in (views, rewards, terminations, truncations, infos):
                assert list(given) == before
            check_views(env, views, infos, seen)
            for agent in before:
                seat = env.possible_agents.index(agent)
                left = bool(outcome.terminated[seat])
                assert type(rewards[agent]) is float and rewards[agent] == outcome.reward[seat]
                assert terminations[agent] is left
                assert truncations[agent] is (bool(outcome.truncated) and not left)
            in_game = alive & ~outcome.truncated
            assert env.agents == list(itertools.compress(env.possible_agents, in_game))
            if any(terminations.values()):
                happened |= {"one leaves, others cut"} if any(truncations.values()) else set()
                happened |= {"others go on"} if env.agents else set()
        happened.add("cut" if outcome.truncated else "all left")
    expected = {"illegal", "cut"} if name in STAG_HUNTS else {"cut"}
    expected |= {"one leaves, others cut"} if "ends" in name else {"others go on", "left and acts"}
    assert expected <= happened


def test_agents_leave_and_are_cut() -> None:
    """On a row of three cells one agent walks to the only hare while the other one waits."""
    row = {"height": 1, "width": 3, "players": 2, "stags": 0, "hares": 1, "horizon": 6}
    env = to_pettingzoo(coplay.make_game("stag-hunt", **row))
    views, _ = env.reset(seed=0)
    hunts = False
    for _ in range(3):
        planes = views["player_2"]["observation"]["planes"][0]
        me, hare = planes[:, 0].argmax(), planes[:, -1].argmax()
        hunts = me == hare
        action = HUNT_HARE if hunts else LEFT if hare < me else RIGHT
        views, rewards, terminations, truncations, _ = env.step(
            {"player_1": STAY, "player_2": action}
        )
        if hunts:
            break
        assert env.agents == ["player_1", "player_2"]
    assert hunts and env.agents == ["player_1"] and env.num_agents == 1
    assert rewards == {"player_1": 0.0, "player_2": 1.0}
    assert terminations == {"player_1": False, "player_2": True}
    assert truncations == {"player_1": False, "player_2": False}
    assert views["player_2"]["action_mask"].tolist() == [0, 0, 0, 0, 1, 0, 0]
    while env.agents:
        assert not any(truncations.values())
        views, rewards, terminations, truncations, infos = env.step({"player_1": STAY})
        assert [*views] == [*rewards] == [*terminations] == [*infos] == ["player_1"]
    assert truncations == {"player_1": True} and terminations == {"player_1": False}
    over = env.state()
    assert env.step({}) == ({}, {}, {}, {}, {})
    assert_same(env.state(), over)


def test_a_scripted_player_is_given_the_state_of_the_game() -> None:
    env = to_pettingzoo("stag-hunt")
    with pytest.raises(coplay.UserError, match="reset"):
        _ = env.game_state
    views, _ = env.reset(seed=0)
    hunters = [coplay.step_player("ns", env.game, seat) for seat in range(4)]
    total, rewards = 0.0, dict.fromkeys(env.agents, 0.0)
    while env.agents:
        actions = {
            agent: hunters[int(agent[-1]) - 1].act(views[agent], rewards[agent], env.game_state)
            for agent in env.agents
        }
        views, rewards, *_ = env.step(actions)
        total += sum(rewards.values())
    assert total >= 10, "at least the stag was caught"
