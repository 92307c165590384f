"""Rates of actions: learned from what was legal and what was taken."""

import jax.numpy as jnp
import numpy as np

from coplay.models.action_rates import (
    ActionCounts,
    log_rates,
    no_counts,
    random_policy,
    with_action,
)

ACTIONS = 4


def test_rates_are_found_although_not_all_actions_are_always_legal() -> None:
    """A player that takes legal actions by fixed weights; one of them is often illegal."""
    rng = np.random.default_rng(0)
    weight = np.array([4.0, 1.0, 0.25, 1.0])
    counts = no_counts((1, ACTIONS))
    for _ in range(3000):
        legal = np.array([rng.random() < 0.3, True, True, True])
        p = weight * legal / (weight * legal).sum()
        action = rng.choice(ACTIONS, p=p)
        counts = ActionCounts(*(0.999 * x for x in counts))  # what is long ago fades
        counts = with_action(counts, jnp.array([action]), jnp.array([legal]), jnp.ones(1))
    rates = log_rates(counts)
    for legal in (np.ones(ACTIONS, bool), np.array([False, True, True, True])):
        wanted = weight * legal / (weight * legal).sum()
        found = np.exp(np.asarray(random_policy(rates, jnp.asarray(legal)[None])))[0]
        np.testing.assert_allclose(found, wanted, atol=0.04)


def test_before_anything_is_seen_all_legal_actions_are_alike() -> None:
    legal = jnp.array([True, False, True, True])
    known = random_policy(log_rates(no_counts((ACTIONS,))), legal)
    np.testing.assert_allclose(np.exp(known), np.exp(random_policy(None, legal)), atol=1e-6)


def test_an_action_counts_by_its_weight() -> None:
    counts = no_counts((2, ACTIONS))
    legal = jnp.ones((2, ACTIONS), bool)
    counts = with_action(counts, jnp.array([1, 1]), legal, jnp.array([0.0, 0.5]))
    np.testing.assert_allclose(counts.taken, [[0, 0, 0, 0], [0, 0.5, 0, 0]])
    np.testing.assert_allclose(counts.expected, [[0] * 4, [0.125] * 4])
