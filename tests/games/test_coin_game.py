"""The compiled coin game against a plain one."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import coplay
from coplay.core.errors import UserError
from coplay.games.check import check_game
from coplay.games.coin_game import CoinGame, CoinGameConfig, CoinGameState
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
from tests.games.reference import STAY

COPIES = 8
SETTINGS: dict[str, dict[str, Any]] = {
    "two": {"height": 3, "width": 4, "horizon": 30},
    "walls": {"height": 5, "width": 4, "players": 3, "walls": 1, "wall_maps": 8, "view": 1},
}


def own_colour(ground: Ground, here: Any, coins: list[Any], mine: int) -> Any:
    others = [coin for colour, coin in enumerate(coins) if colour != mine]
    allowed = [m for m in legal_moves(ground, here) if step_to(here, m) not in others]
    return go(ground, here, {coins[mine]}, allowed, even(allowed, 5))


def nearest(ground: Ground, here: Any, coins: list[Any]) -> Any:
    allowed = legal_moves(ground, here)
    return go(ground, here, set(coins), allowed, even(allowed, 5))


@pytest.mark.parametrize("name", ["two", pytest.param("walls", marks=pytest.mark.slow)])
def test_agrees_with_the_plain_game(name: str) -> None:
    game = CoinGame(CoinGameConfig(**SETTINGS[name]))
    config, seats = game.config, range(game.seats)
    steps = 30
    states, seen, policies, actions, outcomes = played(game, COPIES, steps)
    happened: Counter = Counter()
    for copy in range(COPIES):
        ground = ground_of(game, states.board[copy, 0])
        cells = [ground.cell(cell) for cell in states.cell[copy, 0]]
        coins = [ground.cell(coin) for coin in states.coin[copy, 0]]
        last, stole = [STAY for _ in seats], [False for _ in seats]
        for t in range(steps):
            at = copy, t
            legal = [legal_moves(ground, cell) for cell in cells]
            assert [np.flatnonzero(row).tolist() for row in seen.legal[at]] == [
                sorted(x) for x in legal
            ]
            for seat in seats:
                layers = [{coins[seat]: 1}, {coin: 1 for c, coin in enumerate(coins) if c != seat}]
                np.testing.assert_array_equal(
                    seen.planes[at][seat], planes(ground, cells, seat, layers)
                )
                numbers = [*features(last, seat, 5), t / config.horizon]
                np.testing.assert_allclose(seen.features[at][seat], numbers, rtol=1e-6)
                kind = own_colour(ground, cells[seat], coins, seat)
                greedy = nearest(ground, cells[seat], coins)
                angry = any(stole[other] for other in seats if other != seat)
                for player, chances in (
                    ("own-colour", kind),
                    ("nearest-coin", greedy),
                    ("tit-for-tat", greedy if angry else kind),
                ):
                    np.testing.assert_allclose(
                        policies[player][at][seat], np.array(chances, float), atol=1e-6
                    )
            last = [a if a in legal[s] else STAY for s, a in enumerate(actions[at].tolist())]
            cells = [step_to(cell, move) for cell, move in zip(cells, last, strict=True)]
            rewards = [0.0 for _ in seats]
            after = [ground.cell(coin) for coin in states.coin[copy, t + 1]]
            for colour in seats:
                takers = [seat for seat in seats if cells[seat] == coins[colour]]
                if not takers:
                    assert after[colour] == coins[colour]
                    continue
                # Chance decides between several, and where the coin reappears.
                taker = next(seat for seat in takers if states.took[copy, t + 1][seat] > 0)
                happened["flip"] += len(takers) > 1
                rewards[taker] += 1
                stole[taker] = taker != colour
                happened["stolen" if stole[taker] else "own"] += 1
                if taker != colour:
                    rewards[colour] -= 2
                others = [coin for other, coin in enumerate(after) if other != colour]
                assert ground.open(after[colour])
                assert after[colour] not in [*cells, *others]
            coins = after
            assert states.cell[copy, t + 1].tolist() == [r * ground.width + c for r, c in cells]
            np.testing.assert_allclose(outcomes.reward[at], rewards)
            assert outcomes.truncated[at] == (t + 1 >= config.horizon)
            assert states.stole[copy, t + 1].tolist() == stole
    assert all(happened[event] for event in ("flip", "stolen", "own")), happened


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_keeps_to_the_protocol(name: str) -> None:
    check_game(CoinGame(CoinGameConfig(**SETTINGS[name])), copies=8, steps=40)


@pytest.mark.slow
def test_who_is_robbed_loses_more_than_the_thief_wins() -> None:
    kind = coplay.play("coin-game", "own-colour,own-colour", episodes=500)["seats"]
    mixed = coplay.play("coin-game", "own-colour,nearest-coin", episodes=500)["seats"]
    greedy = coplay.play("coin-game", "nearest-coin,nearest-coin", episodes=500)["seats"]
    assert mixed[1]["reward"] > kind[1]["reward"] > greedy[0]["reward"] > mixed[0]["reward"]


def test_needs_two_players() -> None:
    with pytest.raises(UserError, match="at least 2 players"):
        CoinGameConfig(players=1)


def test_text_shows_whose_coins_lie_where() -> None:
    game = CoinGame(CoinGameConfig(height=2, width=3))
    zeros = np.zeros(2, np.int8)
    cells, coins = np.array([0, 5], np.int16), np.array([1, 3], np.int16)
    state = CoinGameState(cells, zeros, np.arange(2), coins, zeros, zeros > 0, zeros[0], zeros[0])
    lines = [line.strip("│ ").split() for line in game.text(state).splitlines()[1:3]]
    assert lines == [["0", "a", "·"], ["b", "·", "1"]]
    assert game.draw(state).ndim == 3
