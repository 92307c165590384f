"""The lists of entities that JaxMARL's games declare, against JaxMARL's own states."""

from typing import Any

import jax
import numpy as np
import pytest

import coplay
from coplay.core.entities import entity_faults

pytest.importorskip("jaxmarl")


def seen_after(game: Any, steps: int = 6) -> tuple[Any, np.ndarray]:
    """JaxMARL's state and the features of all seats, after some random steps."""

    @jax.jit
    def play(key: Any) -> Any:
        state = game.reset(key)
        for step in jax.random.split(key, steps):
            actions = jax.random.randint(step, (game.seats,), 0, game.actions)
            state, _ = game.step(step, state, actions)
        return state, game.observe(state).features

    state, features = play(jax.random.key(1))
    assert entity_faults(game.entities, features.shape[1]) == []
    return jax.tree.map(np.asarray, state.env), np.asarray(features)


def listed(game: Any, features: np.ndarray) -> dict[str, np.ndarray]:
    """Kind -> [seat, entity, number]."""
    return {one.name: features[:, np.array(one.places)] for one in game.entities}


def test_spread_lists_landmarks_and_agents() -> None:
    game: Any = coplay.make_game("jaxmarl:MPE_simple_spread_v3")
    state, features = seen_after(game)
    lists = listed(game, features)
    for seat in range(3):
        others = [agent for agent in range(3) if agent != seat]
        ways = state.p_pos - state.p_pos[seat]
        np.testing.assert_allclose(lists["landmarks"][seat], ways[3:], atol=1e-6)
        np.testing.assert_allclose(lists["agents"][seat, :, :2], ways[others], atol=1e-6)
        np.testing.assert_allclose(lists["agents"][seat, :, 2:], state.c[others], atol=1e-6)


def test_tag_lists_landmarks_and_adversaries() -> None:
    game: Any = coplay.make_game("jaxmarl:MPE_simple_tag_v3")
    state, features = seen_after(game)
    lists = listed(game, features)
    for seat in range(4):
        adversaries = [agent for agent in range(3) if agent != seat][:2]
        ways = state.p_pos - state.p_pos[seat]
        np.testing.assert_allclose(lists["landmarks"][seat], ways[4:], atol=1e-6)
        np.testing.assert_allclose(lists["adversaries"][seat], ways[adversaries], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fields"),
    [("smax:3m", {}), ("smax:3s5z", {"enemies": "players"}), ("smax:5m_vs_6m", {})],
)
def test_smax_lists_units_that_are_seen(name: str, fields: dict[str, Any]) -> None:
    """Enemies in the order in which attacks name them."""
    game: Any = coplay.make_game(name, **fields)
    state, features = seen_after(game, 14)
    battle, lists = getattr(state, "state", state), listed(game, features)
    allies, both = game.env.num_allies, game.env.num_agents > game.env.num_allies
    units = len(battle.unit_health)
    sight = np.asarray(game.env.unit_type_sight_ranges)[battle.unit_types]
    for seat in range(game.seats):
        mine, theirs = range(allies), range(allies, units)
        if seat >= allies:
            mine, theirs = range(units - 1, allies - 1, -1), range(allies - 1, -1, -1)
        for kind, numbers in (("allies", [u for u in mine if u != seat]), ("enemies", theirs)):
            way = battle.unit_positions[list(numbers)] - battle.unit_positions[seat]
            there = battle.unit_alive[list(numbers)] & battle.unit_alive[seat]
            there = there & (np.linalg.norm(way, axis=1) < sight[seat])
            found = lists[kind][seat]
            np.testing.assert_array_equal(found[:, 0] != 0, there)
            expected = np.where(there[:, None], way / sight[seat], 0)
            np.testing.assert_allclose(found[:, 1:3], expected, atol=1e-5)
    assert both == bool(fields)
    assert [one.numbered for one in game.entities] == [False, True]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("smax:5m_vs_6m", {"enemies": "players"}),
        ("smax:3m", {"options": ("observation_type=conic",)}),
        ("jaxmarl:MPE_simple_reference_v3", {}),
    ],
)
def test_others_declare_none(name: str, fields: dict[str, Any]) -> None:
    assert coplay.make_game(name, **fields).entities == ()
