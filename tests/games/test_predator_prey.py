"""The compiled predator and prey against a plain one."""

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import coplay
from coplay.core.errors import UserError
from coplay.evaluation.audits.seat_fairness import fairness_checks
from coplay.games.check import check_game
from coplay.games.predator_prey import PredatorPrey, PredatorPreyConfig, PredatorPreyState
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

SETTINGS: dict[str, dict[str, Any]] = {
    "open": {"height": 4, "width": 5, "horizon": 25},
    "walls": {
        "height": 5,
        "width": 5,
        "players": 5,
        "prey": 2,
        "walls": 1,
        "wall_maps": 8,
        "view": 2,
    },
}


def policy(ground: Ground, cells: list[Cell], hunted: list[bool], seat: int, name: str) -> Any:
    """The probabilities of a scripted player but the encircler."""
    here, legal = cells[seat], legal_moves(ground, cells[seat])
    others = [cell for cell, prey in zip(cells, hunted, strict=True) if prey != hunted[seat]]

    def room(cell: Cell) -> int:
        return min(ground.length(cell, other) for other in others)

    if name == "chaser":
        return go(ground, here, others, legal, even(legal, 5))
    if name == "corner":
        ends = [(r, c) for r in (0, ground.height - 1) for c in (0, ground.width - 1)]
        ends = [cell for cell in ends if ground.open(cell)]
        if ends:
            best = [cell for cell in ends if room(cell) == max(map(room, ends))]
            stay = even([STAY], 5)
            return stay if here in best else go(ground, here, set(best), legal, stay)
    best_moves = max(room(step_to(here, move)) for move in legal)
    return even([move for move in legal if room(step_to(here, move)) == best_moves], 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["open", pytest.param("walls", marks=pytest.mark.slow)])
def test_agrees_with_the_plain_game(name: str) -> None:
    game = PredatorPrey(PredatorPreyConfig(**SETTINGS[name]))
    config, seats, copies, steps = game.config, range(game.seats), 8, 30
    states, seen, policies, actions, outcomes = played(game, copies, steps)
    hunted = [seat >= config.players - config.prey for seat in seats]
    assert game.teams == tuple(map(int, hunted))
    happened: Counter = Counter()
    for copy in range(copies):
        ground = ground_of(game, states.board[copy, 0])
        cells, last = [ground.cell(cell) for cell in states.cell[copy, 0]], [STAY for _ in seats]
        for t in range(steps):
            at = copy, t
            legal = [legal_moves(ground, cell) for cell in cells]
            hunters = {cells[s]: 1 for s in seats if not hunted[s]}
            prey = {cells[s]: 1 for s in seats if hunted[s]}
            for seat in seats:
                assert np.flatnonzero(seen.legal[at][seat]).tolist() == legal[seat]
                expected = planes(ground, cells, seat, [hunters, prey])
                np.testing.assert_array_equal(seen.planes[at][seat], expected)
                numbers = [*features(last, seat, 5), float(hunted[seat]), t / config.horizon]
                np.testing.assert_allclose(seen.features[at][seat], numbers, rtol=1e-6)
                for player in ("chaser", "evader", "corner"):
                    chances = policy(ground, cells, hunted, seat, player)
                    np.testing.assert_allclose(
                        policies[player][at][seat], np.array(chances, float), atol=1e-6
                    )
            last = [a if a in legal[s] else STAY for s, a in enumerate(actions[at].tolist())]
            after = [step_to(cell, move) for cell, move in zip(cells, last, strict=True)]
            rewards = [Fraction(0) for _ in seats]
            caught = []
            for seat in seats:
                if not hunted[seat]:
                    continue
                same = [s for s in seats if not hunted[s] and after[s] == after[seat]]
                swapped = [
                    s
                    for s in seats
                    if not hunted[s] and (after[s], cells[s]) == (cells[seat], after[seat])
                ]
                catchers = set(same) | set(swapped)
                if catchers:
                    caught.append(seat)
                    rewards[seat] -= 10
                    happened["swap"] += bool(set(swapped) - set(same))
                    happened["shared"] += len(catchers) > 1
                for catcher in catchers:
                    rewards[catcher] += Fraction(10, len(catchers))
            new = [ground.cell(cell) for cell in states.cell[copy, t + 1]]
            free = [
                cell
                for cell in ground.all() - ground.walls
                if all(ground.length(cell, after[s]) >= 3 for s in seats if not hunted[s])
                and all(cell != after[s] for s in seats if s not in caught)
            ]
            for seat in seats:
                if seat in caught:
                    happened["caught"] += 1
                    assert ground.open(new[seat]) and (new[seat] in free or not free)
                    assert all(new[seat] != new[s] for s in seats if s != seat)
                else:
                    assert new[seat] == after[seat]
            cells = new
            np.testing.assert_allclose(outcomes.reward[at], np.array(rewards, float), rtol=1e-5)
            assert sum(rewards) == 0 and outcomes.truncated[at] == (t + 1 >= config.horizon)
    assert all(happened[event] for event in ("swap", "shared", "caught")), happened


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_keeps_to_the_protocol(name: str) -> None:
    check_game(PredatorPrey(PredatorPreyConfig(**SETTINGS[name])), copies=8, steps=40)


@pytest.mark.slow
def test_who_encircles_catches_more_than_who_chases() -> None:
    def catches(predator: str) -> float:
        seating = ",".join([predator] * 3 + ["evader"])
        return -coplay.play("predator-prey", seating, episodes=500)["seats"][3]["reward"] / 10

    assert catches("encircler") > catches("chaser") > catches("random")


@pytest.mark.slow
def test_seats_are_audited_within_their_side() -> None:
    game = PredatorPrey(PredatorPreyConfig(height=4, width=4))
    assert game.sides == ((0, 1, 2), (3,))
    check = next(iter(fairness_checks(game, 0.2, 2000, 0, lambda text: None)))
    assert check.passed and check.name == "4 x random: seats 0, 1, 2 are worth the same"


def test_some_player_must_be_a_predator() -> None:
    with pytest.raises(UserError, match="leave no predator"):
        PredatorPreyConfig(players=2, prey=2)


def test_text_marks_the_predators() -> None:
    game = PredatorPrey(PredatorPreyConfig(height=2, width=3, players=2))
    zeros = np.zeros(2, np.int8)
    cells, hunted = np.array([0, 5], np.int16), np.array([False, True])
    state = PredatorPreyState(cells, zeros, np.arange(2), hunted, zeros[0], zeros[0])
    lines = [line.strip("│ ").split() for line in game.text(state).splitlines()[1:3]]
    assert lines == [["P0", "·", "·"], ["·", "·", "1"]]
    assert game.draw(state).ndim == 3
