"""The compiled harvest against a plain one."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import coplay
from coplay.core.errors import UserError
from coplay.games.check import check_game
from coplay.games.harvest import Harvest, HarvestConfig, HarvestState
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

PATCHES = [(1, 1), (1, 6), (6, 1), (6, 6)]
SOIL = {
    (row + down, column + right)
    for row, column in PATCHES
    for down, right in ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))
}


def neighbours(apples: set[Cell], cell: Cell) -> int:
    return sum(0 < abs(cell[0] - r) + abs(cell[1] - c) <= 2 for r, c in apples)


def policy(ground: Ground, here: Cell, apples: set[Cell], leave: int | None) -> Any:
    """leave: apples that must stay within reach of one that is taken; None: it does not care."""
    legal = legal_moves(ground, here)
    if leave is None:
        return go(ground, here, apples, legal, even(legal, 5))
    ripe = {cell for cell in apples if neighbours(apples, cell) >= leave}
    allowed = [move for move in legal if step_to(here, move) not in apples - ripe]
    return go(ground, here, ripe, allowed, even(allowed if ripe else [STAY], 5))


@pytest.mark.slow
def test_agrees_with_the_plain_game() -> None:
    game = Harvest(HarvestConfig(horizon=40))
    seats, copies, steps = range(4), 6, 45
    states, seen, policies, actions, outcomes = played(game, copies, steps)
    happened: Counter = Counter()
    for copy in range(copies):
        ground = ground_of(game, 0)
        cells, last = [ground.cell(cell) for cell in states.cell[copy, 0]], [STAY for _ in seats]
        apples = set(SOIL)
        assert not set(cells) & SOIL and len(set(cells)) == 4
        for t in range(steps):
            at = copy, t
            legal = [legal_moves(ground, cell) for cell in cells]
            layers = [dict.fromkeys(apples, 1), dict.fromkeys(SOIL, 1)]
            for seat in seats:
                assert np.flatnonzero(seen.legal[at][seat]).tolist() == legal[seat]
                expected = planes(ground, cells, seat, layers)
                np.testing.assert_array_equal(seen.planes[at][seat], expected)
                numbers = [*features(last, seat, 5), t / 40]
                np.testing.assert_allclose(seen.features[at][seat], numbers, rtol=1e-6)
                for player, leave in (("sustainable", 1), ("careful", 3), ("nearest-apple", None)):
                    chances = policy(ground, cells[seat], apples, leave)
                    np.testing.assert_allclose(
                        policies[player][at][seat], np.array(chances, float), atol=1e-6
                    )
            last = [a if a in legal[s] else STAY for s, a in enumerate(actions[at].tolist())]
            cells = [step_to(cell, move) for cell, move in zip(cells, last, strict=True)]
            assert [ground.cell(cell) for cell in states.cell[copy, t + 1]] == cells
            got = [reward > 0 for reward in outcomes.reward[at]]
            for cell in set(cells):
                here = [seat for seat in seats if cells[seat] == cell]
                assert sum(got[seat] for seat in here) == (cell in apples)  # one, by chance
                happened["contested"] += cell in apples and len(here) > 1
            apples -= set(cells)
            spots = zip(game.spots, states.apple[copy, t + 1], strict=True)
            after = {ground.cell(spot) for spot, there in spots if there}
            assert apples <= after and after <= SOIL
            for cell in after - apples:
                assert neighbours(apples, cell) > 0 and cell not in cells
                happened["grown"] += 1
            apples = after
            assert outcomes.truncated[at] == (t + 1 >= 40)
    assert all(happened[event] for event in ("contested", "grown")), happened


@pytest.mark.slow
def test_keeps_to_the_protocol() -> None:
    check_game(Harvest(HarvestConfig(horizon=30)), copies=8, steps=40)


@pytest.mark.slow
def test_greed_ends_the_orchard() -> None:
    greedy = coplay.play("harvest", ",".join(["nearest-apple"] * 4), episodes=300)
    careful = coplay.play("harvest", ",".join(["careful"] * 4), episodes=300)
    assert careful["seats"][0]["reward"] > 1.3 * greedy["seats"][0]["reward"]


def test_a_board_without_soil_is_refused() -> None:
    with pytest.raises(UserError, match="0 cells of soil"):
        HarvestConfig(height=2, width=2)


def test_text_shows_apples() -> None:
    game = Harvest(HarvestConfig(height=3, width=4, players=1))
    zeros = np.zeros(1, np.int8)
    apple = np.array([True, False, True, False, False])
    state = HarvestState(zeros, zeros, zeros, apple, zeros[0], zeros[0])
    lines = [line.strip("│ ").split() for line in game.text(state).splitlines()[1:4]]
    assert lines == [["0", "a", "·", "·"], ["·", "a", "·", "·"], ["·", "·", "·", "·"]]
    assert game.draw(state).ndim == 3
