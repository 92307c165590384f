"""Level-based foraging against the package `lbforaging`, and its scripted players."""

from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.core.compilation import QUICK
from coplay.core.errors import UserError
from coplay.games.check import check_game
from coplay.games.foraging import LOAD, Foraging, ForagingConfig, ForagingState
from tests.games.plain_board import features, ground_of, planes, played
from tests.games.reference import DIRECTIONS, STAY

THEIRS = {0: 1, 1: 2, 2: 3, 3: 4, 4: 0, 5: 5}
"""Our number of an action -> that of `lbforaging`."""
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {"height": 6, "width": 6, "players": 3, "foods": 3, "penalty": 0.1, "horizon": 25},
    "sight": {"players": 4, "foods": 4, "levels": 3, "view": 2, "cooperative": True},
}


def their_game(package: Any, game: Foraging, state: Any) -> Any:
    """An environment of the package in our state."""
    config = game.config
    env = package.ForagingEnv(
        players=config.players,
        min_player_level=1,
        max_player_level=config.levels,
        min_food_level=1,
        max_food_level=None,
        field_size=(config.height, config.width),
        max_num_food=config.foods,
        sight=max(config.height, config.width),
        max_episode_steps=config.horizon,
        force_coop=config.cooperative,
        penalty=config.penalty,
    )
    env.reset(seed=0)
    env.field[:] = 0
    for food, level in zip(state.food, state.food_level, strict=True):
        env.field[divmod(int(food), config.width)] += int(level)
    env._food_spawned = env.field.sum()
    for player, cell, level in zip(env.players, state.cell, state.level, strict=True):
        player.setup(divmod(int(cell), config.width), int(level), env.field_size)
    env._gen_valid_moves()
    return env


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plain", "sight"])
def test_agrees_with_lbforaging_step_by_step(name: str) -> None:
    package = pytest.importorskip(
        "lbforaging.foraging.environment", reason="lbforaging is not installed"
    )
    game = Foraging(ForagingConfig(**SETTINGS[name]))
    config, copies = game.config, 10
    states, seen, _, actions, outcomes = played(game, copies, config.horizon)
    happened: Counter = Counter()
    for copy in range(copies):
        ground = ground_of(game, 0)
        state = jax.tree.map(lambda x, c=copy: x[c, 0], states)
        env, last = their_game(package, game, state), [STAY] * game.seats
        for t in range(config.horizon):
            at = copy, t
            cells = [player.position for player in env.players]
            assert [ground.cell(cell) for cell in states.cell[at]] == cells
            foods = {divmod(i, config.width): int(x) for i, x in enumerate(env.field.flat) if x}
            there = {
                ground.cell(food): int(level)
                for food, level, left in zip(
                    states.food[at], states.food_level[at], states.left[at], strict=True
                )
                if left
            }
            assert foods == there
            for seat, player in enumerate(env.players):
                valid = [int(action.value) for action in env._valid_actions[player]]
                assert [THEIRS[a] in valid for a in range(6)] == seen.legal[at][seat].tolist()
                # Where several stand on a cell, the highest of their levels is seen.
                levels = {c: max(p.level for p in env.players if p.position == c) for c in cells}
                expected = planes(ground, cells, seat, [foods, levels])
                np.testing.assert_array_equal(seen.planes[at][seat], expected)
                numbers = [*features(last, seat, 6), t / config.horizon]
                np.testing.assert_allclose(seen.features[at][seat], numbers, rtol=1e-6)
            last = [a if seen.legal[at][s][a] else STAY for s, a in enumerate(actions[at].tolist())]
            _, rewards, done, _, _ = env.step([THEIRS[a] for a in actions[at].tolist()])
            np.testing.assert_allclose(outcomes.reward[at], rewards, rtol=1e-5, atol=1e-7)
            over = bool(outcomes.truncated[at]) or bool(outcomes.terminated[at].all())
            assert over == done
            after = [player.position for player in env.players]
            happened["blocked"] += any(
                a in DIRECTIONS and b == c for a, b, c in zip(last, cells, after, strict=True)
            )
            happened["collected"] += sum(reward > 0 for reward in rewards)
            happened["together"] += sum(reward > 0 for reward in rewards) > 1
            happened["failed"] += any(reward < 0 for reward in rewards)
            if done:
                happened["all"] += bool(outcomes.terminated[at].all())
                break
    due = ["blocked", "collected", "together", *["failed", "all"] * (name == "plain")]
    assert all(happened[event] for event in due), happened


def test_food_never_lies_at_the_border_nor_beside_food() -> None:
    game = Foraging(ForagingConfig(height=6, width=7, foods=6, players=3, levels=3))
    keys = jax.random.split(jax.random.key(0), 200)
    reset = jax.jit(lambda game, keys: jax.vmap(game.reset)(keys), compiler_options=QUICK)
    states = jax.tree.map(np.asarray, reset(game, keys))
    for cell, level, food, food_level in zip(
        states.cell, states.level, states.food, states.food_level, strict=True
    ):
        assert len(set(cell.tolist())) == 3 and set(level.tolist()) <= {1, 2, 3}
        there = [divmod(int(f), 7) for f, x in zip(food, food_level, strict=True) if x]
        assert food_level.max() <= level.sum() and (food_level[: len(there)] > 0).all()
        assert not {r * 7 + c for r, c in there} & set(cell.tolist())
        for index, (row, column) in enumerate(there):
            assert 0 < row < 5 and 0 < column < 6
            for r, c in there[:index]:
                down, right = abs(row - r), abs(column - c)
                assert max(down, right) > 1 and (min(down, right) > 0 or down + right > 2)
    assert (states.food_level[:, 0] > 0).all() and len(np.unique(states.food_level)) > 4


def at(cells: list[int], levels: list[int], foods: dict[int, int]) -> ForagingState:
    """A situation on 6x6."""
    return ForagingState(
        cell=jnp.array(cells, jnp.int16),
        level=jnp.array(levels, jnp.int8),
        last=jnp.full(len(cells), STAY, jnp.int8),
        food=jnp.array(list(foods), jnp.int16),
        food_level=jnp.array(list(foods.values()), jnp.int8),
        left=jnp.ones(len(foods), bool),
        board=jnp.int16(0),
        time=jnp.int16(0),
    )


def test_scripted_players_go_for_their_foods() -> None:
    """6x6, foods at (1, 1), (1, 4) and (4, 4). The own player is at (2, 0), beside none."""
    game = Foraging(ForagingConfig(height=6, width=6, players=3))
    state = at([12, 3, 35], [1, 1, 3], {7: 4, 10: 2, 28: 1})
    act = jax.jit(
        lambda game, state: {name: one(game, state) for name, one in game.scripted.items()},
        compiler_options=QUICK,
    )
    found = {name: np.asarray(probs) for name, probs in act(game, state).items()}
    up, right, down = 0, 3, 1
    assert found["nearest"][up] == found["nearest"][right] == 0.5
    # The level-1 player near it helps with the food of level 2, not with that of level 4.
    assert found["able"][up] == found["able"][right] == 0.5
    # The highest level stands at (5, 5), nearest to the food at (4, 4).
    assert found["follower"][down] == found["follower"][right] == 0.5
    assert found["centre"][up] == found["centre"][right] == 0.5
    # Beside the food it loads; with a player in the way it goes round, or waits.
    beside = act(game, state._replace(cell=jnp.array([6, 3, 35], jnp.int16)))
    assert beside["nearest"][LOAD] == 1 and beside["able"][LOAD] == 0
    blocked = act(game, state._replace(cell=jnp.array([13, 7 + 6 - 5, 35], jnp.int16)))
    assert blocked["nearest"][LOAD] == 1
    queue = act(game, at([11, 17, 35], [1, 1, 3], {15: 4, 28: 1}))
    assert queue["nearest"][down] == 0


def test_a_setting_and_its_errors() -> None:
    game = coplay.make_game("foraging:jaxaht-7x7")
    assert isinstance(game, Foraging) and (game.seats, game.config.levels) == (2, 1)
    with pytest.raises(UserError, match="jaxaht-7x7"):
        coplay.make_game("foraging:jaxaht-8x8")
    with pytest.raises(UserError, match="1 inner cells for 4 players"):
        ForagingConfig(height=3, width=3)


@pytest.mark.slow
def test_keeps_to_the_protocol() -> None:
    check_game(Foraging(ForagingConfig(**SETTINGS["plain"])), copies=8, steps=40)


LISTS: dict[str, Any] = {"height": 6, "width": 5, "players": 3, "foods": 3, "levels": 2}


def by_hand(game: Foraging, state: Any, seat: int) -> list[float]:
    """One player's view as lists, number by number."""
    config, ground = game.config, ground_of(game, 0)
    own = ground.cell(state.cell[seat])

    def thing(cell: Any, level: Any, there: bool) -> list[float]:
        row, column = ground.cell(cell)
        down, right = row - own[0], column - own[1]
        view = 99 if config.view is None else config.view
        if not there or max(abs(down), abs(right)) > view:
            return [0.0] * 3
        return [down / (config.height - 1), right / (config.width - 1), level / 6]

    numbers: list[float] = []
    for other in [(seat + k) % config.players for k in range(config.players)]:
        seen = thing(state.cell[other], state.level[other], True)
        last = [float(state.last[other] == a) for a in range(6)] if seen[2] else [0.0] * 6
        numbers += [*last, *seen]
    numbers += [int(state.time) / config.horizon]
    numbers += [own[0] / (config.height - 1), own[1] / (config.width - 1)]
    for food, level, left in zip(state.food, state.food_level, state.left, strict=True):
        numbers += thing(food, level, bool(left))
    return numbers


@pytest.mark.parametrize("view", [None, 2])
def test_views_as_lists_are_those_written_by_hand(view: int | None) -> None:
    game = Foraging(ForagingConfig(**LISTS, view=view, show="lists"))
    states, seen, *_ = played(game, 6, 12)
    hidden = gone = 0
    for at in np.ndindex(6, 12):
        state = jax.tree.map(lambda x, at=at: x[at], states)
        expected = [by_hand(game, state, seat) for seat in range(3)]
        np.testing.assert_allclose(seen.features[at], expected, atol=1e-6)
        players, foods = game.entities
        there = seen.features[at][:, np.array(players.places)[:, players.there]] != 0
        hidden += int((~there).sum())
        shown = seen.features[at][:, np.array(foods.places)[:, foods.there]] != 0
        assert view is not None or (shown == state.left).all()
        gone += int((~state.left).sum())
        absent = seen.features[at][:, np.array(players.places)][~there]
        assert (absent == 0).all()
    assert seen.planes.shape[2:] == (3, 0, 0, 0) and gone and (hidden > 0) == (view is not None)


def test_a_board_has_no_lists() -> None:
    game = Foraging(ForagingConfig(**LISTS))
    assert game.entities == () and game.seat_planes == 1 and game.on_grid


@pytest.mark.slow
def test_lists_keep_to_the_protocol() -> None:
    check_game(Foraging(ForagingConfig(**LISTS, view=2, show="lists")), copies=8, steps=40)
