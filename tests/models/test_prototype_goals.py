"""Prototypes as goals: what steps belong to, known in hindsight."""

import jax.numpy as jnp
import numpy as np

from coplay.models.prototype_goals import shares_in_hindsight


def test_the_last_belief_of_an_episode_counts_for_all_of_it() -> None:
    """Two prototypes and a third candidate, which is left out; an episode ends after two steps, the
    next one goes on."""
    first = np.array([[0.2, 0.2, 0.6], [0.6, 0.2, 0.2], [0.5, 0.5, 0.0], [0.1, 0.3, 0.6]])
    belief = jnp.asarray(first)[:, None, None]  # [time, copy, other, goal]
    over = jnp.array([[False], [True], [False], [False]])
    shares = shares_in_hindsight(belief, over, 2)[:, 0, 0]
    expected = [[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.25, 0.75]]
    np.testing.assert_allclose(shares, expected, atol=1e-6)
