"""Corrections of a model: what a player does beside what was predicted."""

import jax
import jax.numpy as jnp
import numpy as np

from coplay.models.correction import (
    LIMIT,
    MOST,
    PRIOR,
    Correction,
    correction,
    no_correction,
    sample_groups,
    with_action,
)
from coplay.nn import categorical

ACTIONS = 4


def played(tilt: np.ndarray, steps: int, seed: int = 0) -> Correction:
    """What is known of a player that adds `tilt` to a model, after so many steps."""
    rng = np.random.default_rng(seed)
    known = no_correction((1, ACTIONS))
    step = jax.jit(with_action)
    for _ in range(steps):
        logits = rng.normal(size=ACTIONS)
        legal = np.array([True, True, True, rng.random() < 0.5])
        p = np.exp(logits + tilt) * legal
        action = rng.choice(ACTIONS, p=p / p.sum())
        by_model = jnp.asarray(logits) + correction(known)[0]
        predicted = categorical.log_policy(by_model[None], jnp.asarray(legal)[None])
        known = step(
            known, jnp.array([action]), predicted, jnp.asarray(legal)[None], jnp.ones(1, bool)
        )
    return known


def test_a_model_that_is_right_is_hardly_corrected() -> None:
    found = np.mean([correction(played(np.zeros(ACTIONS), 200, seed)) for seed in range(8)], axis=0)
    np.testing.assert_allclose(found, 0.0, atol=0.25)


def test_what_a_player_never_does_and_does_too_often_is_corrected() -> None:
    tilt = np.array([0.0, 0.0, 1.0, -6.0])
    found = np.mean([correction(played(tilt, 200, seed))[0] for seed in range(8)], axis=0)
    found -= found[:2].mean()
    assert 0.6 < found[2] < 1.6
    assert found[3] < -1.5


def test_an_action_never_taken_is_expected_less_by_the_dirichlet_rule() -> None:
    """By hand: the rate after n steps without it is k / (n + k), whatever was predicted."""
    known = no_correction((1, 2))
    for steps in range(1, 9):
        predicted = jnp.log(jnp.array([[0.9, 0.1]]))
        predicted = categorical.log_policy(predicted + correction(known), jnp.ones((1, 2), bool))
        known = with_action(
            known, jnp.array([0]), predicted, jnp.ones((1, 2), bool), jnp.ones(1, bool)
        )
        np.testing.assert_allclose(
            correction(known)[0, 1], np.log(PRIOR / (steps + PRIOR)), rtol=1e-5
        )


def test_steps_that_do_not_count_and_actions_that_are_not_legal_change_nothing() -> None:
    start = Correction(*(jnp.full((1, 2), x) for x in (1.0, 2.0, 3.0)))
    legal = jnp.array([[True, False]])
    gone = with_action(start, jnp.array([0]), jnp.zeros((1, 2)), legal, jnp.zeros(1, bool))
    jax.tree.map(np.testing.assert_array_equal, gone, start)
    new = with_action(start, jnp.array([0]), jnp.zeros((1, 2)), legal, jnp.ones(1, bool))
    assert new.taken[0, 0] == 2 and new.taken[0, 1] == 1 and new.predicted[0, 1] == 2


def test_no_more_than_so_many_steps_count_and_corrections_are_limited() -> None:
    known = played(np.array([0.0, 0.0, 0.0, -9.0]), 300)
    assert np.max(known.steps) <= MOST + 1e-3
    assert np.abs(correction(known)).max() <= LIMIT


def test_imagined_players_are_known_as_they_are_or_not_at_all() -> None:
    tilt, known = sample_groups(jax.random.key(0), (40, 50), 3, ACTIONS)
    found = np.asarray(correction(known))
    met = np.asarray(known.steps[..., 0]) > 0
    assert 0.4 < met.mean() < 0.6 and not found[~met].any()
    often = np.asarray(known.steps[..., 0]) > 0.9 * MOST
    rate = np.exp(np.asarray(tilt))[often]
    np.testing.assert_allclose(np.exp(found[often]), rate, atol=0.35)
    plain = ~np.asarray(tilt).any(axis=(-1, -2))
    assert 0.45 < plain.mean() < 0.6
    same = (np.asarray(tilt) == np.asarray(tilt)[:, :, :1]).all(axis=(-1, -2)) & ~plain
    assert 0.4 < same.sum() / (~plain).sum() < 0.6


def test_what_the_model_holds_impossible_is_expected_once_it_was_seen() -> None:
    known = no_correction((1, 2))
    never = jnp.array([[0.0, -jnp.inf]])
    known = with_action(known, jnp.array([1]), never, jnp.ones((1, 2), bool), jnp.ones(1, bool))
    assert correction(known)[0, 1] == LIMIT and correction(known)[0, 0] < 0
