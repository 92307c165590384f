"""The compiled cleanup against a plain one."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import coplay
from coplay.core.errors import UserError
from coplay.games.check import check_game
from coplay.games.cleanup import Cleanup, CleanupConfig, CleanupState
from tests.games.plain_board import (
    Ground,
    even,
    features,
    go,
    ground_of,
    legal_moves,
    planes,
    played,
    step_to,
)
from tests.games.reference import STAY, Cell

CLEAN = 5
FIELDS: dict[str, Any] = {"height": 4, "width": 6, "horizon": 40, "waste_growth": 0.4}
RIVER = {(row, column) for row in range(4) for column in (0, 1)}
ORCHARD = {(row, column) for row in range(4) for column in (3, 4, 5)}


def eats(ground: Ground, here: Cell, apples: set[Cell]) -> Any:
    legal = legal_moves(ground, here)
    targets = apples or (set() if here in ORCHARD else ORCHARD)
    return go(ground, here, targets, legal, even(legal, 6))


def cleans(ground: Ground, here: Cell, apples: set[Cell], waste: set[Cell]) -> Any:
    if not waste:
        return eats(ground, here, apples)
    if here in waste:
        return even([CLEAN], 6)
    return go(ground, here, waste, legal_moves(ground, here), even([STAY], 6))


@pytest.mark.slow
def test_agrees_with_the_plain_game() -> None:
    game = Cleanup(CleanupConfig(**FIELDS))
    seats, copies, steps = range(4), 6, 45
    states, seen, policies, actions, outcomes = played(game, copies, steps)
    happened: Counter = Counter()
    for copy in range(copies):
        ground = ground_of(game, 0)

        def things(t: int, ground: Ground = ground, copy: int = copy) -> tuple[set, set]:
            apples = zip(game.orchard, states.apple[copy, t], strict=True)
            waste = zip(game.river, states.waste[copy, t], strict=True)
            return (
                {ground.cell(spot) for spot, there in apples if there},
                {ground.cell(spot) for spot, there in waste if there},
            )

        cells, last = [ground.cell(cell) for cell in states.cell[copy, 0]], [STAY for _ in seats]
        apples, waste = things(0)
        assert not apples and len(waste) == 4 and waste <= RIVER
        for t in range(steps):
            at = copy, t
            legal = [legal_moves(ground, c) + [CLEAN] * (c in waste) for c in cells]
            layers = [dict.fromkeys(kind, 1) for kind in (apples, waste, RIVER, ORCHARD)]
            for seat in seats:
                assert np.flatnonzero(seen.legal[at][seat]).tolist() == legal[seat]
                expected = planes(ground, cells, seat, layers)
                np.testing.assert_array_equal(seen.planes[at][seat], expected)
                numbers = [*features(last, seat, 6), t / 40]
                np.testing.assert_allclose(seen.features[at][seat], numbers, rtol=1e-6)
                for player, chances in (
                    ("nearest-apple", eats(ground, cells[seat], apples)),
                    ("waste-first", cleans(ground, cells[seat], apples, waste)),
                ):
                    np.testing.assert_allclose(
                        policies[player][at][seat], np.array(chances, float), atol=1e-6
                    )
            last = [a if a in legal[s] else STAY for s, a in enumerate(actions[at].tolist())]
            cells = [step_to(cell, move) for cell, move in zip(cells, last, strict=True)]
            assert [ground.cell(cell) for cell in states.cell[copy, t + 1]] == cells
            waste = waste - {cells[seat] for seat in seats if last[seat] == CLEAN}
            happened["cleaned"] += CLEAN in last
            got = [reward > 0 for reward in outcomes.reward[at]]
            for cell in set(cells):
                here = [seat for seat in seats if cells[seat] == cell]
                assert sum(got[seat] for seat in here) == (cell in apples)  # one, by chance
            apples = apples - set(cells)
            new_apples, new_waste = things(t + 1)
            assert apples <= new_apples and waste <= new_waste
            assert len(new_waste - waste) <= 1 and new_waste <= RIVER
            grown = new_apples - apples
            assert grown <= ORCHARD and not grown & set(cells)
            assert not grown or len(waste) / len(RIVER) < 0.4
            happened["grown"] += len(grown)
            happened["dirtied"] += len(new_waste - waste)
            apples, waste = new_apples, new_waste
            assert outcomes.truncated[at] == (t + 1 >= 40)
    assert all(happened[event] for event in ("cleaned", "grown", "dirtied")), happened


@pytest.mark.slow
def test_keeps_to_the_protocol() -> None:
    check_game(Cleanup(CleanupConfig(**FIELDS)), copies=8, steps=40)


@pytest.mark.slow
def test_nobody_eats_where_nobody_cleans_and_who_cleans_eats_less() -> None:
    greedy = coplay.play("cleanup", ",".join(["nearest-apple"] * 4), episodes=200)
    assert greedy["seats"][0]["reward"] < 0.2
    mixed = coplay.play(
        "cleanup", "waste-first,waste-first,nearest-apple,nearest-apple", episodes=200
    )["seats"]
    assert mixed[2]["reward"] > 2 * mixed[0]["reward"] > 0


def test_errors_say_what_does_not_fit() -> None:
    with pytest.raises(UserError, match=r"raise game\.width"):
        CleanupConfig(width=4)
    with pytest.raises(UserError, match="no apple would ever grow"):
        CleanupConfig(threshold=0.0)


def test_text_shows_apples_and_waste() -> None:
    game = Cleanup(CleanupConfig(height=2, width=3, players=1, river=1, orchard=1))
    zeros = np.zeros(1, np.int8)
    waste, apple = np.array([False, True]), np.array([True, False])
    state = CleanupState(zeros, zeros, zeros, zeros > 0, waste, apple, zeros[0], zeros[0])
    lines = [line.strip("│ ").split() for line in game.text(state).splitlines()[1:3]]
    assert lines == [["0", "·", "a"], ["w", "·", "·"]]
    assert game.draw(state).ndim == 3
