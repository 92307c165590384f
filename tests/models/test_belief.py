"""Beliefs against closed forms."""

import jax.numpy as jnp
import numpy as np

from coplay.models import belief as beliefs


def test_bayes_by_hand() -> None:
    belief = jnp.array([0.5, 0.3, 0.2])
    likelihood = jnp.array([[0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])
    for chances in likelihood:
        belief = beliefs.after_action(belief, jnp.log(chances), 0.0, jnp.full(3, 1 / 3))
    joint = np.array([0.5, 0.3, 0.2]) * [0.1 * 0.2, 0.6 * 0.2, 0.3 * 0.6]
    np.testing.assert_allclose(belief, joint / joint.sum(), rtol=1e-5)


def test_long_evidence_stays_finite_and_a_share_of_the_prior_keeps_doubt() -> None:
    prior = jnp.array([0.5, 0.5])
    sure = prior
    doubting = prior
    for _ in range(300):
        sure = beliefs.after_action(sure, jnp.log(jnp.array([0.9, 1e-4])), 0.0, prior)
        doubting = beliefs.after_action(doubting, jnp.log(jnp.array([0.9, 1e-4])), 0.02, prior)
    np.testing.assert_allclose(sure, [1.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(doubting, [0.99, 0.01], atol=1e-3)
    impossible = beliefs.after_action(jnp.array([1.0, 0.0]), jnp.array([-200.0, 0.0]), 0.0, prior)
    np.testing.assert_allclose(impossible, prior, err_msg="all weight gone: back to the prior")


def test_exponential_prior_moves_as_slowly_as_the_paper_says() -> None:
    weights = beliefs.first_weights("exponential", 0.995, 2)
    np.testing.assert_allclose(weights, [100.0, 100.0], rtol=1e-5)  # 0.5 / (1 - 0.995)
    expected = np.array([0.5, 0.5])
    for _ in range(10):
        weights = beliefs.with_episode(0.995, weights, jnp.array(1))
        expected = 0.995 * expected + 0.005 * np.array([0.0, 1.0])
    prior = beliefs.habit_prior("exponential", 0.5, weights)
    np.testing.assert_allclose(prior, expected, rtol=1e-5)
    assert 0.52 < prior[1] < 0.53


def test_dirichlet_prior_counts_and_forgets() -> None:
    weights = beliefs.first_weights("dirichlet", 1.0, 3)
    np.testing.assert_allclose(beliefs.habit_prior("dirichlet", 0.5, weights), [1 / 3] * 3)
    for _ in range(4):
        weights = beliefs.with_episode(1.0, weights, jnp.array(2))
    np.testing.assert_allclose(
        beliefs.habit_prior("dirichlet", 0.5, weights), [0.5 / 5.5, 0.5 / 5.5, 4.5 / 5.5]
    )
    weights = beliefs.first_weights("dirichlet", 0.9, 2)
    for _ in range(100):
        weights = beliefs.with_episode(0.9, weights, jnp.array(0))
    assert beliefs.habit_prior("dirichlet", 0.5, weights)[0] > 0.95
    for _ in range(10):  # the co-player changes its habit: 10 * (1 - 0.9^10) against 10 * 0.9^10
        weights = beliefs.with_episode(0.9, weights, jnp.array(1))
    kept = 0.9**10
    expected = (10 * (1 - kept) + 0.5) / 11
    np.testing.assert_allclose(
        beliefs.habit_prior("dirichlet", 0.5, weights)[1], expected, rtol=1e-3
    )


def test_an_episode_that_shows_nothing_changes_nothing() -> None:
    weights = jnp.array([[3.0, 1.0], [3.0, 1.0]])
    after = beliefs.with_episode(0.5, weights, jnp.array([-1, 0]))
    np.testing.assert_allclose(after, [[3.0, 1.0], [2.5, 0.5]])


def test_realised_goals_are_followed_by_the_prior_and_lost_ones_are_ruled_out() -> None:
    belief = jnp.array([[0.6, 0.3, 0.1], [0.6, 0.3, 0.1]])
    prior = jnp.array([[0.0, 0.5, 0.5], [0.0, 0.5, 0.5]])
    open_ = jnp.array([[False, True, True]] * 2)
    after = beliefs.after_step(belief, prior, jnp.array([True, False]), open_)
    np.testing.assert_allclose(after, [[0.0, 0.5, 0.5], [0.0, 0.75, 0.25]], rtol=1e-6)
