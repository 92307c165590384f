"""Corrections of a model: what a player does beside what was predicted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.models.correction import (
    CHANGE,
    LEAD,
    LIMIT,
    MEMORIES,
    PRIOR,
    Correction,
    correction,
    no_correction,
    sample_groups,
    with_action,
)
from coplay.models.personas import AVOIDED
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


def by_hand(actions: list[int], given: np.ndarray) -> np.ndarray:
    """The corrections after these actions of two, all of them legal, by plain Python. given: what
    the model gives to both."""
    memories = [(np.zeros(2), np.zeros(2), 0.0) for _ in MEMORIES]
    weight, rates = np.array([1.0, np.exp(-LEAD)]), np.ones((2, 2))
    weight /= weight.sum()
    for action in actions:
        rate = weight @ rates
        corrected = given * rate / np.sum(given * rate)
        by_count = given * rates / np.sum(given * rates, axis=1, keepdims=True)
        weight = weight * by_count[:, action]
        weight = (1 - CHANGE) * weight / weight.sum() + CHANGE * weight[::-1] / weight.sum()
        for number, (most, memory) in enumerate(zip(MEMORIES, memories, strict=True)):
            taken, predicted, steps = memory
            fade = min(1.0, most / (steps + 1))
            taken = fade * (taken + (np.arange(2) == action))
            memories[number] = taken, fade * (predicted + corrected / rate), fade * (steps + 1)
        rates = np.array(
            [(m * n / predicted + PRIOR) / (n + PRIOR) for m, predicted, n in memories]
        )
    return np.log(weight @ rates)


@pytest.mark.parametrize("actions", [[0] * 30, [0] * 30 + [1] * 3, [1, 0, 0, 1]])
def test_corrections_equal_plain_python(actions: list[int]) -> None:
    given = np.array([0.8, 0.2])
    known, both = no_correction((1, 2)), jnp.ones((1, 2), bool)
    for action in actions:
        predicted = categorical.log_policy(jnp.log(given) + correction(known), both)
        known = with_action(known, jnp.array([action]), predicted, both, jnp.ones(1, bool))
    np.testing.assert_allclose(correction(known)[0], by_hand(actions, given), rtol=1e-3)


def test_what_a_player_never_did_is_soon_expected_when_it_changes() -> None:
    given, both = jnp.log(jnp.array([[0.5, 0.5]])), jnp.ones((1, 2), bool)

    def seen(known: Correction, action: int, steps: int) -> Correction:
        for _ in range(steps):
            predicted = categorical.log_policy(given + correction(known), both)
            known = step(known, jnp.array([action]), predicted, both, jnp.ones(1, bool))
        return known

    step = jax.jit(with_action)
    known = seen(no_correction((1, 2)), 0, 300)
    assert correction(known)[0, 1] < np.log(0.02)
    known = seen(known, 1, 5)
    expected = categorical.log_policy(given + correction(known), both)
    assert np.exp(expected[0, 1]) > 0.2


def test_steps_that_do_not_count_and_actions_that_are_not_legal_change_nothing() -> None:
    taken, predicted, steps = (jnp.full((1, 2, 2), x) for x in (1.0, 2.0, 3.0))
    start = Correction(taken, predicted, steps, jnp.zeros(1))
    legal = jnp.array([[True, False]])
    gone = with_action(start, jnp.array([0]), jnp.zeros((1, 2)), legal, jnp.zeros(1, bool))
    jax.tree.map(np.testing.assert_array_equal, gone, start)
    new = with_action(start, jnp.array([0]), jnp.zeros((1, 2)), legal, jnp.ones(1, bool))
    assert (new.taken[..., 0] == 2).all() and (new.taken[..., 1] == 1).all()
    assert (new.predicted[..., 1] == 2).all()


def test_corrections_are_limited() -> None:
    taken, predicted, steps = (jnp.full((2, 1), x) for x in (9.0, 1e-5, 500.0))
    seldom = Correction(taken, predicted, steps, jnp.zeros(()))
    assert correction(seldom) == LIMIT


def test_imagined_players_are_known_as_they_are_or_not_at_all() -> None:
    tilt, known = sample_groups(jax.random.key(0), (40, 50), 3, ACTIONS)
    found = np.asarray(correction(known))
    steps = np.asarray(known.steps[..., -1, 0])
    met = steps > 0
    assert 0.4 < met.mean() < 0.6
    np.testing.assert_allclose(found[~met], 0.0, atol=1e-6)
    often = steps > 0.5 * MEMORIES[-1]
    rate = np.exp(np.asarray(tilt))[often]
    np.testing.assert_allclose(np.exp(found[often]), rate, atol=0.15)
    assert 0.4 < (steps[met] < MEMORIES[-1] ** 0.5).mean() < 0.6
    plain = ~np.asarray(tilt).any(axis=(-1, -2))
    assert 0.2 < plain.mean() < 0.35
    lowest = np.asarray(tilt).min(axis=(-1, -2))
    assert set(np.unique(lowest)) == {0.0, -AVOIDED, -LIMIT}
    assert 0.4 < (lowest == -LIMIT).sum() / (lowest < 0).sum() < 0.6
    same = (np.asarray(tilt) == np.asarray(tilt)[:, :, :1]).all(axis=(-1, -2)) & ~plain
    assert 0.4 < same.sum() / (~plain).sum() < 0.6


def test_what_the_model_holds_impossible_is_expected_once_it_was_seen() -> None:
    known = no_correction((1, 2))
    never = jnp.array([[0.0, -jnp.inf]])
    known = with_action(known, jnp.array([1]), never, jnp.ones((1, 2), bool), jnp.ones(1, bool))
    assert correction(known)[0, 1] == LIMIT and correction(known)[0, 0] < 0
