"""The compiled Stag Hunt against the plain one, its resets, and its errors."""

import itertools
from collections import Counter
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy import stats

from coplay.core.errors import UserError
from coplay.games.stag_hunt import StagHunt, StagHuntConfig, StagHuntState
from tests.games import reference
from tests.games.reference import HUNT_STAG, STAY, Board, Player, Rules

SETTINGS = settings(max_examples=2, deadline=None, derandomize=True, database=None)

# Everything that can happen; each board below names what its games must really have shown.
EVENTS = {
    "stag by 2",
    "stag by 3",
    "hare by 1",
    "hare shared",
    "two catches in a step",
    "lone stag hunt",
    "illegal",
    "out of range",
    "action after leaving",
    "horizon",
    "cut after hunt",
    "all left",
}
USUAL = {"stag by 2", "hare by 1", "hare shared", "lone stag hunt", "illegal", "out of range"}
LONG = USUAL | {"action after leaving", "horizon"}

BOARDS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "4h1s": ({}, LONG | {"all left", "two catches in a step"}),
    "4h2s": ({"stags": 2, "horizon": 20}, LONG | {"all left", "stag by 3"}),
    "8x8": ({"height": 8, "width": 8, "horizon": 24}, LONG),
    "8x8 walls": (
        {"height": 8, "width": 8, "walls": 5, "wall_maps": 32, "horizon": 24},
        LONG,
    ),
    "two on 3x7": (
        {"height": 3, "width": 7, "players": 2, "hares": 2, "time_reward": -0.125, "horizon": 20},
        LONG - {"hare shared"} | {"all left"},
    ),
    "three, unequal": (
        {"height": 5, "width": 2, "players": 3, "stags": 2, "hares": 2, "horizon": 16}
        | {"strength": (3.0, 0.5, 0.0), "stag_reward": 7.5, "hare_reward": 2.0},
        LONG | {"all left"},
    ),
    "five, no strength": (
        {"players": 5, "stags": 1, "hares": 2, "strength": (0.0,) * 5, "horizon": 12},
        LONG | {"stag by 3"},
    ),
    "six, some strength": (
        {"height": 3, "players": 6, "stags": 2, "hares": 3, "horizon": 10, "time_reward": 0.5}
        | {"strength": (0.0, 2.0, 0.0, 1.0, 0.0, 5.0)},
        LONG | {"all left", "stag by 3", "two catches in a step"},
    ),
    "cut at once": ({"end_after_first_hunt": 0, "horizon": 12}, USUAL | {"cut after hunt"}),
    "cut after 1": ({"end_after_first_hunt": 1, "stags": 2, "hares": 1}, {"cut after hunt"}),
    "cut after 3": (
        {"end_after_first_hunt": 3, "height": 3, "hares": 3, "horizon": 15, "view": 1},
        USUAL | {"cut after hunt", "action after leaving"},
    ),
    "view 1, walls": (
        {"height": 5, "width": 6, "walls": 2, "wall_maps": 32, "view": 1, "horizon": 16},
        LONG,
    ),
    "view 2": ({"height": 6, "width": 3, "view": 2, "horizon": 14, "players": 3}, LONG),
    "one step": ({"horizon": 1}, {"horizon"}),
    "alone": ({"players": 1, "hares": 2, "horizon": 12}, {"all left", "lone stag hunt", "horizon"}),
    "no stags, corridor": (
        {"height": 1, "width": 9, "stags": 0, "hares": 2, "players": 3, "horizon": 12},
        {"hare by 1", "hare shared", "illegal", "all left", "horizon"},
    ),
    "no hares": ({"hares": 0, "stags": 2, "horizon": 12}, {"stag by 2", "all left", "horizon"}),
}


# --- the compiled side -----------------------------------------------------------------------


IN_MAKE_TEST = ("4h1s", "six, some strength", "cut after 3", "view 1, walls", "alone")
"""Boards of `make test`; `make test-all` has all of them."""


class Wishes(NamedTuple):
    """What the players want at each step, drawn beforehand.

    kind: [copy, time, seat] 0 anything at all, 1 any legal action, 2 NS, 3 NH, 4 hunt if it can.
    luck: [copy, time, seat, action + 2] Gumbel noise: the largest sum with a log-probability wins.
    given: [copy, time, seat] the action itself, where it is not `FREE`.
    """

    kind: np.ndarray
    uniform: np.ndarray
    given: np.ndarray


FREE = 99

# Optimising takes most of the time of compiling: two boards run as in real use, the others do not.
OPTIMISED = {"4h1s", "8x8 walls"}
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


def copies_of(game: StagHunt) -> int:
    """Fewer copies of larger boards: the plain game takes time for every cell."""
    return 64 if game.config.height * game.config.width < 50 else 32


def draw_wishes(game: StagHunt, seed: int) -> Wishes:
    """Each seat has its own proportions of kinds, often nearly one kind alone; in half of the
    copies all seats have the same ones, so that stags find their hunters."""
    rng = np.random.default_rng(seed)
    copies, steps, seats = copies_of(game), game.config.horizon + 1, game.seats
    weights = rng.exponential(size=(copies, 1, seats, 5)) ** 2
    weights[::2] = weights[::2, :, :1]
    weights /= weights.sum(-1, keepdims=True)
    kind = rng.uniform(size=(copies, steps, seats, 1)) > weights.cumsum(-1)
    uniform = rng.gumbel(size=(copies, steps, seats, 9)).astype(np.float32)
    return Wishes(kind.sum(-1), uniform, np.full(uniform.shape[:-1], FREE))


def act(legal: jax.Array, ns: jax.Array, nh: jax.Array, wish: Wishes) -> jax.Array:
    """[seat] the actions by the wishes of one step."""
    hunts = legal & (jnp.arange(7) >= HUNT_STAG)
    hunter = jnp.where(jnp.any(hunts, axis=-1, keepdims=True), hunts, legal)
    probs = jnp.stack([legal, ns, nh, hunter], axis=1)
    probs = jnp.pad(probs, ((0, 0), (0, 0), (1, 1)))
    # Before the first action and after the last stand numbers that are no actions.
    probs = jnp.concatenate([jnp.ones((len(legal), 1, 9)), probs], axis=1)
    chosen = jnp.take_along_axis(probs, wish.kind[:, None, None], axis=1)[:, 0]
    free = jnp.argmax(jnp.log(chosen) + wish.uniform, axis=-1) - 1
    return jnp.where(wish.given == FREE, free, wish.given)


@cache
def compiled(board: str):
    """The game of a board, its resets from keys [copy], and its rollouts from states and wishes."""
    game = StagHunt(StagHuntConfig(**BOARDS[board][0]))
    key = jax.random.key(0)  # no step of this game is random

    def rollout(game: StagHunt, state: StagHuntState, wishes: Wishes):
        def step(state: StagHuntState, wish: Wishes):
            egos = jax.vmap(game.ego_state, (None, 0))(state, jnp.arange(game.seats))
            policies = {n: jax.vmap(p, (None, 0))(game, egos) for n, p in game.scripted.items()}
            observation = game.observe(state)
            actions = act(observation.legal, policies["ns"], policies["nh"], wish)
            following, outcome = game.step(key, state, actions)
            return following, ((state, observation, policies), actions, outcome)

        return jax.lax.scan(step, state, wishes)[1]

    options = {} if board in OPTIMISED else QUICK
    reset = jax.jit(jax.vmap(game.reset), compiler_options=options)
    return game, reset, jax.jit(jax.vmap(rollout, (None, 0, 0)), compiler_options=options)


# --- the comparison --------------------------------------------------------------------------


def start(game: StagHunt, rules: Rules, state: StagHuntState) -> Board:
    """The plain board of a compiled state (NumPy leaves) at the start of an episode."""

    def place(cell) -> reference.Cell:
        return int(cell) // rules.width, int(cell) % rules.width

    walls = np.asarray(game.maps.walls[int(state.board)])
    prey = [place(cell) for cell in state.prey]
    return Board(
        rules,
        players=[Player(place(cell)) for cell in state.cell],
        stags=set(prey[: rules.stags]),
        hares=set(prey[rules.stags :]),
        walls=frozenset(place(cell) for cell in np.flatnonzero(walls)),
    )


def situation(board: Board) -> dict[str, Any]:
    """What can be seen of a board, in the compiled game's layout."""
    rules, seats = board.rules, range(board.rules.players)
    legal = [reference.legal_actions(board, seat) for seat in seats]
    policies = {"ns": reference.nearest_stag, "nh": reference.nearest_hare}

    def cells(prey: set[reference.Cell]) -> list[int]:
        board_cells = range(rules.height * rules.width)
        return [int(divmod(cell, rules.width) in prey) for cell in board_cells]

    return {
        "cell": [player.cell[0] * rules.width + player.cell[1] for player in board.players],
        "alive": [player.in_game for player in board.players],
        "last action": [player.last for player in board.players],
        "stags": cells(board.stags),
        "hares": cells(board.hares),
        "time": board.time,
        "legal": [[action in some for action in range(7)] for some in legal],
        "planes": [reference.observe_planes(board, seat) for seat in seats],
        "features": [reference.observe_features(board, seat) for seat in seats],
    } | {
        name: [[float(p) for p in policy(board, seat)] for seat in seats]
        for name, policy in policies.items()
    }


def prey_map(rules: Rules, cells: np.ndarray, alive: np.ndarray) -> np.ndarray:
    """[time, cell] how many living prey are on each cell, from [time, prey] places."""
    spots = np.arange(rules.height * rules.width)
    return ((cells[:, :, None] == spots) & alive[:, :, None]).sum(1)


def layout(rules: Rules, seen) -> dict[str, np.ndarray]:
    """[time, ...] the same things from the states and observations of one compiled game."""
    state, observation, policies = seen
    stags = slice(0, rules.stags), slice(rules.stags, None)
    maps = [prey_map(rules, state.prey[:, s], state.prey_alive[:, s]) for s in stags]
    return {
        "cell": state.cell,
        "alive": state.alive,
        "last action": state.last,
        "stags": maps[0],
        "hares": maps[1],
        "time": state.time,
        "legal": observation.legal,
        "planes": observation.planes,
        "features": observation.features,
        **policies,
    }


def agree(what: str, ours: np.ndarray, plain: list[Any]) -> None:
    """Both [time, ...]; the error names the first step and place that differ."""
    expected = np.array(plain, np.float64)
    assert ours.shape[1:] == expected.shape[1:], f"{what}: {ours.shape} and {expected.shape}"
    wrong = np.argwhere(~np.isclose(ours[: len(expected)], expected, rtol=1e-5, atol=1e-6))
    if len(wrong):
        where = tuple(wrong[0].tolist())
        raise AssertionError(
            f"{what} at [time, ...] = {where}: compiled {ours[where]}, plain {expected[where]}"
        )


def compare(game: StagHunt, rules: Rules, seen, actions, outcomes, events: Counter) -> None:
    """One game, from its start to its end; NumPy leaves [time, ...]."""
    board = start(game, rules, jax.tree.map(lambda leaf: leaf[0], seen[0]))
    situations, results = [situation(board)], []
    for joint in actions.tolist():
        before = [player.in_game for player in board.players]
        result = reference.step(board, joint)
        note_events(events, board, before, joint, result)
        situations.append(situation(board))
        results.append(result)
        if result.over(board):
            break
    ours = layout(rules, seen)
    for what in situations[0]:
        agree(what, ours[what], [s[what] for s in situations])
    agree("reward", outcomes.reward, [r.rewards for r in results])
    agree("terminated", outcomes.terminated, [r.left for r in results])
    agree("truncated", outcomes.truncated, [r.truncated for r in results])


def note_events(
    events: Counter,
    board: Board,
    before: list[bool],
    joint: list[int],
    result: reference.Result,
) -> None:
    """Counts what happened in a step."""
    events.update(f"{kind} by {count}" for kind, count in result.catches)
    events["hare shared"] += any(k == "hare" and c > 1 for k, c in result.catches)
    events["two catches in a step"] += len(result.catches) > 1
    hunted = any(kind == "stag" for kind, _ in result.catches)
    events["lone stag hunt"] += HUNT_STAG in result.executed and not hunted
    for there, wish, done in zip(before, joint, result.executed, strict=True):
        events["out of range"] += there and not 0 <= wish <= 6
        events["illegal"] += there and wish != done
        events["action after leaving"] += not there and wish != STAY
    at_horizon = board.time == board.rules.horizon
    events["horizon"] += result.truncated and at_horizon
    events["cut after hunt"] += result.truncated and not at_horizon
    events["all left"] += result.over(board) and not result.truncated


def compare_all(board: str, rollout, events: Counter) -> None:
    """Every copy of a rollout with leaves [copy, time, ...]."""
    options = {k: v for k, v in BOARDS[board][0].items() if k != "wall_maps"}
    game, rules = compiled(board)[0], Rules(**options)
    rollout = jax.tree.map(np.asarray, rollout)
    for copy in range(len(rollout[1])):
        seen, actions, outcomes = jax.tree.map(lambda leaf, c=copy: leaf[c], rollout)
        compare(game, rules, seen, actions, outcomes, events)


@pytest.mark.parametrize(
    "board",
    [pytest.param(name, marks=[] if name in IN_MAKE_TEST else pytest.mark.slow) for name in BOARDS],
)
def test_agrees_with_the_plain_game(board: str) -> None:
    events: Counter = Counter()

    # A smaller seed is no simpler: nothing to gain from shrinking.
    @settings(SETTINGS, phases=[Phase.generate])
    @given(seed=st.integers(0, 2**32 - 1))
    def many_games(seed: int) -> None:
        game, reset, rollout = compiled(board)
        states = reset(jax.random.split(jax.random.key(seed), copies_of(game)))
        compare_all(board, rollout(game, states, draw_wishes(game, seed)), events)

    many_games()
    missing = {event for event in BOARDS[board][1] if not events[event]}
    assert not missing, f"never happened: {missing}; {events}"


def test_boards_ask_for_every_event() -> None:
    assert set().union(*(events for _, events in BOARDS.values())) == EVENTS


@pytest.mark.slow
@settings(SETTINGS, max_examples=60)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_agrees_on_drawn_actions(data: st.DataObject, seed: int) -> None:
    """Actions drawn one by one, so that a disagreement shrinks to the few that matter."""
    board = "six, some strength"
    game, reset, rollout = compiled(board)
    joint = st.lists(st.integers(-1, 7), min_size=game.seats, max_size=game.seats)
    steps = data.draw(st.lists(joint, min_size=1, max_size=game.config.horizon))
    wishes = draw_wishes(game, seed)
    wishes.given[:, : len(steps)] = steps
    states = reset(jax.random.split(jax.random.key(seed), copies_of(game)))
    played = jax.tree.map(lambda leaf: leaf[:4], rollout(game, states, wishes))
    compare_all(board, played, Counter())


# --- resets ----------------------------------------------------------------------------------


@cache
def resets(copies: int = 20_000, **options: Any) -> tuple[StagHunt, StagHuntState]:
    """Many resets of one game, as NumPy leaves [copy, ...]."""
    game = StagHunt(StagHuntConfig(**options))
    keys = jax.random.split(jax.random.key(7), copies)
    return game, jax.tree.map(np.asarray, jax.jit(jax.vmap(game.reset))(keys))


def assert_uniform(draws: np.ndarray, choices: int) -> None:
    """Chi-square of integer draws in [0, choices); the keys are fixed, so it cannot flicker."""
    counts = np.bincount(draws, minlength=choices)
    assert len(counts) == choices
    assert stats.chisquare(counts).pvalue > 1e-4, counts


def test_reset_places_everything_apart_and_uniformly() -> None:
    game, state = resets()
    cells = np.concatenate([state.cell, state.prey], axis=1)
    assert cells.shape[1] == game.config.players + game.config.stags + game.config.hares
    assert all(len(set(row)) == len(row) for row in cells.tolist())
    for thing in range(cells.shape[1]):
        assert_uniform(cells[:, thing], 16)
    for one, other in itertools.combinations(range(cells.shape[1]), 2):
        # The other one's place among the 15 that are left: each ordered pair is as likely.
        rank = cells[:, other] - (cells[:, other] > cells[:, one])
        assert_uniform(cells[:, one] * 15 + rank, 240)


def test_a_full_board_is_a_uniform_permutation() -> None:
    _, state = resets(height=2, width=2, players=2, stags=1, hares=1)
    cells = np.concatenate([state.cell, state.prey], axis=1)
    orders = {order: i for i, order in enumerate(itertools.permutations(range(4)))}
    assert_uniform(np.array([orders[tuple(row)] for row in cells.tolist()]), 24)


def test_reset_with_walls_is_uniform_over_maps_and_free_cells() -> None:
    game, state = resets(height=5, width=5, walls=2, wall_maps=3, stags=2, hares=2)
    walls = np.asarray(game.maps.walls)
    cells = np.concatenate([state.cell, state.prey], axis=1)
    assert not walls[state.board[:, None], cells].any()
    assert all(len(set(row)) == len(row) for row in cells.tolist())
    assert_uniform(state.board, 3)
    for board in range(3):
        free = np.flatnonzero(~walls[board])
        here = cells[state.board == board]
        for thing in range(cells.shape[1]):
            assert_uniform(np.searchsorted(free, here[:, thing]), len(free))


def test_reset_starts_afresh_and_depends_on_the_key_alone() -> None:
    game = StagHunt(StagHuntConfig(strength=(1.0, 2.0, 3.0, 0.0)))
    reset = jax.jit(lambda key: game.reset(key))
    first, again, other = (reset(jax.random.key(seed)) for seed in (3, 3, 4))
    jax.tree.map(np.testing.assert_array_equal, first, again)
    assert np.any(first.cell != other.cell) or np.any(first.prey != other.prey)
    assert np.all(first.alive) and np.all(first.prey_alive)
    assert np.all(first.last == STAY) and first.time == 0
    np.testing.assert_array_equal(first.strength, [1.0, 2.0, 3.0, 0.0])


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"height": 2, "width": 4}, "board too small: 2x4 has 8 cells for 9"),
        ({"hares": 11, "walls": 1}, "board too small: hardly any 4x4"),
        ({"strength": (1.0, 2.0)}, "strength has 2 numbers for 4 players"),
        ({"strength": (1.0, 1.0, 1.0, -1.0)}, "strength must be at least 0 and below inf, not -1"),
        ({"stags": 0, "hares": 0}, "needs prey"),
        ({"height": 0}, "height must be between 1 and 32000, not 0"),
        ({"width": -4}, "width must be between 1 and 32000, not -4"),
        ({"players": 0}, "players must be between 1 and 32000"),
        ({"stags": -1}, "stags must be between 0 and 32000"),
        ({"hares": -1}, "hares must be between 0 and 32000"),
        ({"horizon": 0}, "horizon must be between 1 and 32000"),
        ({"walls": -1}, "walls must be between 0 and 32000"),
        ({"view": -1}, "view must be between 0 and 32000"),
        ({"end_after_first_hunt": -1}, "end_after_first_hunt must be between 0 and 32000"),
    ],
)
def test_clear_errors(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        StagHunt(StagHuntConfig(**options))
