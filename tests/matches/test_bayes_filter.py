"""The Bayes filter and the collected episodes against plain Python with exact fractions."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from coplay.core.errors import UserError
from coplay.core.player import Player as AnyPlayer
from coplay.games.stag_hunt import StagHuntConfig
from coplay.matches.bayes_filter import Filtered, best_top1, filtered
from coplay.matches.dataset import Dataset, samples_of
from coplay.training.collect import collect
from coplay.training.players import make_player
from tests.games import reference
from tests.games.reference import Board, Player, Rules

FIELDS = {"height": 3, "width": 4, "players": 3, "stags": 1, "hares": 2, "horizon": 8}
PLAIN = {
    "ns": reference.nearest_stag,
    "nh": reference.nearest_hare,
    "random": reference.random_player,
}


@cache
def collected() -> Dataset:
    return collect("stag-hunt", StagHuntConfig(**FIELDS), "ns,nh,random", 300, 3)


def plain_rows(dataset: Dataset) -> list[tuple]:
    """(episode, seat, time, action, P(kinds), P(actions), reward, left) by the plain rules."""
    found = dataset.episodes
    rows = []
    for episode in range(len(found.length)):
        cells = [divmod(int(c), FIELDS["width"]) for c in found.state.cell[episode, 0]]
        prey = [divmod(int(c), FIELDS["width"]) for c in found.state.prey[episode, 0]]
        board = Board(Rules(**FIELDS), [Player(c) for c in cells], set(prey[:1]), set(prey[1:]))
        belief = [[Fraction(1, 3)] * 3 for _ in cells]
        for time in range(int(found.length[episode])):
            actions = [int(a) for a in found.action[episode, time]]
            there = [player.in_game for player in board.players]
            policy = [
                [PLAIN[kind](board, seat) for kind in dataset.kinds] if there[seat] else None
                for seat in range(len(cells))
            ]
            result = reference.step(board, actions)
            for seat, probs in enumerate(policy):
                if probs is None:
                    continue
                unknown = [
                    sum(b * p[a] for b, p in zip(belief[seat], probs, strict=True))
                    for a in range(7)
                ]
                rows.append(
                    (
                        *(episode, seat, time, actions[seat], list(belief[seat]), unknown),
                        *(result.rewards[seat], result.left[seat]),
                    )
                )
                weight = [b * p[actions[seat]] for b, p in zip(belief[seat], probs, strict=True)]
                belief[seat] = [w / sum(weight) for w in weight]
        assert result.over(board)
    return sorted(rows, key=lambda row: row[:3])


def players_of(dataset: Dataset) -> tuple[AnyPlayer, ...]:
    return tuple(make_player(kind, dataset.game) for kind in dataset.kinds)


@pytest.mark.slow
def test_filter_and_samples_agree_with_exact_fractions() -> None:
    dataset = collected()
    rows = plain_rows(dataset)
    samples, ours = samples_of(dataset), filtered(dataset, players_of(dataset))
    # The last episode may have steps beyond those asked for.
    assert len(samples.time) == 300 <= len(rows) < 300 + 3 * FIELDS["horizon"]
    rows = rows[:300]
    place = np.stack([samples.episode, samples.seat, samples.time], axis=1)
    np.testing.assert_array_equal(place, [row[:3] for row in rows])
    np.testing.assert_array_equal(samples.action[:, 0], [row[3] for row in rows])
    np.testing.assert_allclose(samples.reward, [row[6] for row in rows], rtol=1e-6)
    np.testing.assert_array_equal(samples.terminated, [row[7] for row in rows])
    np.testing.assert_allclose(ours.kind, np.array([row[4] for row in rows], float), atol=1e-5)
    np.testing.assert_allclose(ours.action, np.array([row[5] for row in rows], float), atol=1e-5)
    assert ours.kind.std(0).min() > 0.1  # the filter is moved by what it sees


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mix", "best", "known"), [("ns,nh,random", 0.50, 0.52), ("ns,nh", 0.87, 0.92)]
)
def test_best_accuracy_on_4x4(mix: str, best: float, known: float) -> None:
    dataset = collect("stag-hunt", StagHuntConfig(), mix, 50_000, 0)
    action, ours = samples_of(dataset).action[:, 0], filtered(dataset, players_of(dataset))
    assert abs((ours.action.argmax(1) == action).mean() - best) < 0.015
    assert abs((ours.known.argmax(1) == action).mean() - known) < 0.015
    # What the filter expects of itself is what comes true.
    assert abs(ours.action.max(1).mean() - (ours.action.argmax(1) == action).mean()) < 0.01


def test_the_best_top1_is_expected_over_ties_and_over_what_others_do() -> None:
    known = np.array([[0.5, 0.3, 0.2], [0.0, 1.0, 0.0], [0.1, 0.2, 0.7]])
    found = Filtered(
        kind=np.ones((3, 1)),
        action=np.array([[0.4, 0.4, 0.2], [0, 1, 0], [0.8, 0.1, 0.1]]),
        known=known,
    )
    # Of two equally probable actions one is guessed. The third row is held for the wrong kind.
    np.testing.assert_allclose(found.hits(), [0.4, 1.0, 0.1])
    best = best_top1(found.hits())
    assert best.expected == pytest.approx(0.5)
    assert best.interval[1] - 0.5 == pytest.approx(1.96 * np.sqrt(0.24 + 0.09) / 3)
    many = best_top1(np.full(10_000, 0.4))
    right = np.random.default_rng(0).random((400, 10_000)) < 0.4
    inside = np.abs(right.mean(1) - 0.4) <= many.interval[1] - 0.4
    assert 0.92 < inside.mean() < 0.98
    assert "75.0 % of it is reached" in many.words(0.3)
    assert "no more than chance" in many.words(0.405) and "more than chance, so" in many.words(0.45)


@pytest.mark.slow
def test_players_that_remember_are_refused() -> None:
    dataset = collected()
    unknown = Dataset(
        dataset.game_name, dataset.game_config, ("ns", "mix:ns:nh"), 0, dataset.episodes
    )
    with pytest.raises(UserError, match="remembers"):
        filtered(unknown, players_of(unknown))
