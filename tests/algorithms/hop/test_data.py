"""Which steps HOP learns from, by counting."""

import jax.numpy as jnp
import numpy as np

from coplay.algorithms.hop.config import HOPConfig, HOPSearchConfig
from coplay.algorithms.hop.data import ReplayRows, draw_rows, equal_shares, picked
from coplay.training.play_defaults import playing

ROWS, SEATS, DRIVES, FILLED = 400, 3, 2, 300


def replay() -> ReplayRows:
    random = np.random.default_rng(0)
    persona = random.choice([-1, 0, 1, 2], (ROWS, SEATS), p=[0.7, 0.2, 0.05, 0.05])
    persona[:, 2] = -1  # a stranger
    number = np.arange(ROWS)[:, None] * 10 + np.arange(SEATS)
    return ReplayRows(
        observation=jnp.asarray(number),  # any array will do
        alive=jnp.asarray(random.random((ROWS, SEATS)) < 0.6),
        action=jnp.asarray(number),
        goal=jnp.asarray(number)[..., None].astype(jnp.float32),
        labelled=jnp.ones((ROWS, SEATS), bool),
        persona=jnp.asarray(persona),
        context=jnp.asarray(number[:, [2, 0]])[..., None].astype(jnp.float32),
        policy=jnp.asarray(number[:, [2, 0]])[..., None].astype(jnp.float32),
        target=jnp.asarray(number[:, [2, 0]]).astype(jnp.float32),
        prototype=jnp.asarray(number[:, [2, 0]])[..., None],
    )


def test_personas_have_equal_shares_of_the_steps_in_the_game() -> None:
    given = replay()
    shares = equal_shares(given, jnp.int32(FILLED), DRIVES)
    uniform = (np.arange(6000) + 0.5) / 6000
    index = np.asarray(draw_rows(shares, jnp.asarray(uniform, jnp.float32)))
    for seat in range(SEATS):
        rows = index[seat]
        assert (rows >= ROWS - FILLED).all(), "rows that were never filled"
        assert np.asarray(given.alive)[rows, seat].all()
        kinds, counts = np.unique(np.asarray(given.persona)[rows, seat], return_counts=True)
        assert kinds.tolist() == ([-1] if seat == 2 else [-1, 0, 1]), "nobody learns from chance"
        np.testing.assert_allclose(counts, 6000 / len(kinds), rtol=0.01)
        each = np.bincount(rows, minlength=ROWS)[np.asarray(given.persona)[:, seat] == -1]
        assert each[each > 0].max() <= each[each > 0].min() + 2, "steps of a character are alike"


def test_picked_rows_are_those_of_the_seat() -> None:
    index = np.random.default_rng(1).integers(ROWS, size=(SEATS, 7))
    found = picked(replay(), jnp.asarray(index), np.array([2, 0]))
    expected = index * 10 + np.arange(SEATS)[:, None]
    np.testing.assert_array_equal(found.observation, expected)
    np.testing.assert_array_equal(found.action, expected)
    np.testing.assert_array_equal(found.goal[..., 0], expected)
    np.testing.assert_array_equal(found.target, expected[[2, 0]])
    np.testing.assert_array_equal(found.context[..., 0], expected[[2, 0]])


def test_players_of_a_run_search_longer_unless_their_run_says_otherwise() -> None:
    thinking = [
        (search.simulations, search.draws, search.discount)
        for search in (
            playing(HOPConfig()).search,
            playing(HOPConfig(search=HOPSearchConfig(simulations=8))).search,
        )
    ]
    assert thinking == [(64, 16, 0.9), (8, 16, 0.9)]
