"""The compiled Snowdrift against the plain one, and the figures that a correct game gives."""

from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.core.errors import UserError
from coplay.games.check import check_game
from coplay.games.snowdrift import Snowdrift, SnowdriftConfig, SnowdriftState
from tests.games import snowdrift_reference as reference
from tests.games.reference import Player
from tests.games.snowdrift_reference import REMOVE, Board, Rules

QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
COPIES = 24

BOARDS: dict[str, dict[str, Any]] = {
    "4x4": {"height": 4, "width": 4, "horizon": 15},
    "walls": {"height": 6, "width": 5, "walls": 2, "wall_maps": 16, "players": 3, "horizon": 20},
    "view": {"height": 3, "width": 5, "view": 1, "drifts": 3, "cost": 2.5, "horizon": 25},
}


def played(game: Snowdrift) -> tuple[Any, Any, Any, Any]:
    """Games by mixed wishes: anything at all, anything legal, ND, remove when possible."""
    rng = np.random.default_rng(5)
    steps, seats = game.config.horizon, game.seats
    kind = rng.integers(4, size=(COPIES, 1, seats)) * np.ones((1, steps, 1), int)
    kind = np.where(rng.random(kind.shape) < 0.2, rng.integers(4, size=kind.shape), kind)
    uniform = rng.gumbel(size=(COPIES, steps, seats, 8)).astype(np.float32)

    def rollout(game: Snowdrift, state: SnowdriftState, kind: Any, uniform: Any) -> Any:
        def step(state: SnowdriftState, wish: tuple) -> tuple:
            kind, uniform = wish
            egos = jax.vmap(game.ego_state, (None, 0))(state, jnp.arange(seats))
            policies = {n: jax.vmap(p, (None, 0))(game, egos) for n, p in game.scripted.items()}
            seen = game.observe(state)
            remove = jnp.where(seen.legal[:, REMOVE:], jnp.arange(6) == REMOVE, seen.legal)
            wanted = jnp.stack([seen.legal, policies["nd"], remove], axis=1)
            # Before the first action and after the last stand numbers that are no actions.
            wanted = jnp.pad(wanted.astype(float), ((0, 0), (1, 0), (1, 1)), constant_values=0)
            wanted = wanted.at[:, 0].set(1.0)
            chances = jnp.take_along_axis(wanted, kind[:, None, None], axis=1)[:, 0]
            actions = jnp.argmax(jnp.log(chances) + uniform, axis=-1) - 1
            following, outcome = game.step(jax.random.key(0), state, actions)
            realised = game.goals.realised(state, following)
            return following, ((state, seen, policies), actions, outcome, realised)

        return jax.lax.scan(step, state, (kind, uniform))[1]

    states = jax.vmap(game.reset)(jax.random.split(jax.random.key(1), COPIES))
    run = jax.jit(jax.vmap(rollout, (None, 0, 0, 0)), compiler_options=QUICK)
    return jax.tree.map(np.asarray, run(game, states, kind, uniform))


def start(game: Snowdrift, rules: Rules, state: SnowdriftState) -> Board:
    def place(cell: Any) -> tuple[int, int]:
        return int(cell) // rules.width, int(cell) % rules.width

    walls = np.asarray(game.maps.walls[int(state.board)])
    return Board(
        rules,
        [Player(place(cell)) for cell in state.cell],
        {place(cell) for cell in state.drift},
        frozenset(place(cell) for cell in np.flatnonzero(walls)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", BOARDS)
def test_agrees_with_the_plain_game(name: str) -> None:
    game = Snowdrift(SnowdriftConfig(**BOARDS[name]))
    rules = Rules(**{k: v for k, v in BOARDS[name].items() if k != "wall_maps"})
    (states, seen, policies), actions, outcomes, realised = played(game)
    events: Counter = Counter()
    for copy in range(COPIES):
        state = jax.tree.map(lambda x, c=copy: x[c], states)
        board = start(game, rules, jax.tree.map(lambda x: x[0], state))
        places = [divmod(int(cell), rules.width) for cell in state.drift[0]]
        for t in range(rules.horizon):
            at, seats = (copy, t), range(rules.players)
            cells = [p.cell[0] * rules.width + p.cell[1] for p in board.players]
            assert states.cell[at].tolist() == cells
            assert states.left[at].tolist() == [place in board.drifts for place in places]
            legal = [[a in reference.legal_actions(board, s) for a in range(6)] for s in seats]
            assert seen.legal[at].tolist() == legal
            planes = [reference.observe_planes(board, s) for s in seats]
            np.testing.assert_array_equal(seen.planes[at], planes)
            features = [reference.observe_features(board, s) for s in seats]
            np.testing.assert_allclose(seen.features[at], features, rtol=1e-6)
            plain = {"nd": reference.nearest_drift, "exploiter": reference.exploiter}
            for player, policy in plain.items():
                expected = [[float(p) for p in policy(board, s)] for s in seats]
                np.testing.assert_allclose(policies[player][at], expected, atol=1e-6)
            result = reference.step(board, actions[at].tolist())
            np.testing.assert_allclose(outcomes.reward[at], result.rewards, rtol=1e-6)
            assert outcomes.truncated[at] == result.truncated
            assert outcomes.terminated[at].tolist() == [not board.drifts] * rules.players
            goals = {s: places.index(cell) for cell, who in result.removals for s in who}
            assert realised[at].tolist() == [goals.get(s, -1) for s in seats]
            events.update(f"removed by {min(len(who), 2)}" for _, who in result.removals)
            events["illegal"] += result.executed != actions[at].tolist()
            if result.truncated or not board.drifts:
                events["horizon" if result.truncated else "all removed"] += 1
                break
    due = {"removed by 1", "removed by 2", "illegal", "horizon", "all removed"}
    assert {event for event in events if events[event]} >= due, events


@pytest.mark.slow
def test_keeps_to_the_protocol() -> None:
    check_game(Snowdrift(SnowdriftConfig(**BOARDS["walls"])), copies=8, steps=50)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seating", "expected"),
    [
        ("nd,nd,nd,nd", [30.0] * 4),
        ("exploiter,nd,nd,nd", [36.0, 28.0, 28.0, 28.0]),
        ("nd,exploiter,exploiter,exploiter", [11.92, 35.75, 35.75, 35.75]),
    ],
)
def test_known_figures(seating: str, expected: list[float]) -> None:
    """6x6 with horizon 25: a team of cleaners gets 30 each; a lone free rider 36; one cleaner
    among free riders 12 less what time runs out for."""
    game = Snowdrift(SnowdriftConfig(height=6, width=6, horizon=25))
    record = coplay.play(game, seating, episodes=2000)
    for seat, reward in zip(record["seats"], expected, strict=True):
        assert abs(seat["reward"] - reward) < 4 * seat["stderr"] + 0.05


def test_text_and_picture_show_drifts_until_removed() -> None:
    game = Snowdrift(SnowdriftConfig(height=3, width=4, players=2, drifts=2))
    state = game.reset(jax.random.key(0))._replace(
        cell=np.array([0, 5], np.int16), drift=np.array([5, 11], np.int16)
    )
    cells = [line.strip("│ ").split() for line in game.text(state).splitlines()[1:4]]
    assert cells == [["0", "·", "·", "·"], ["·", "s1", "·", "·"], ["·", "·", "·", "s"]]
    removed = state._replace(left=np.array([True, False]))
    assert "s" not in game.text(removed).splitlines()[3]
    assert not np.array_equal(game.draw(state), game.draw(removed))
    ended = state._replace(left=np.array([False, False]))
    assert "left" not in game.text(ended), "nobody leaves the board when the last drift is gone"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"height": 3, "width": 3}, "board too small: 3x3 has 9 cells for 10"),
        ({"drifts": 0}, "drifts must be between 1 and 32000"),
        ({"view": -1}, "view must be between 0 and 32000"),
        ({"cost": float("inf")}, "cost must be a finite number"),
    ],
)
def test_clear_errors(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Snowdrift(SnowdriftConfig(**options))
