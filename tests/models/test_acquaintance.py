"""What is expected of co-players when an episode begins."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from coplay.models.acquaintance import CONCENTRATION, next_episode
from coplay.models.goal_inference import FORGET, Prototypes

KEEP = 0.9


def model() -> Prototypes:
    made = Prototypes(3, 2, jax.random.key(0))
    return eqx.tree_at(lambda x: x.prior, made, jnp.log(jnp.array([0.5, 0.3, 0.2])))


def test_expected_shares_are_the_mean_of_a_dirichlet_distribution() -> None:
    inference, rng = model(), np.random.default_rng(0)
    episodes, counts = jnp.zeros((1, 3)), np.zeros(3)
    for _ in range(5):
        memory = jnp.asarray(-rng.uniform(0.0, 2.0, (1, 3)))
        believed = np.asarray(inference.weights(memory))[0]
        counts = KEEP * counts + believed
        first, episodes = next_episode(inference, memory, episodes, KEEP)
        np.testing.assert_allclose(episodes[0], counts, rtol=1e-5)
        wanted = counts + CONCENTRATION * np.array([0.5, 0.3, 0.2])
        np.testing.assert_allclose(inference.weights(first)[0], wanted / wanted.sum(), rtol=1e-4)


def test_what_was_always_seen_can_still_be_given_up() -> None:
    inference, episodes = model(), jnp.zeros((1, 3))
    for _ in range(100):
        first, episodes = next_episode(
            inference, jnp.array([[0.0, -FORGET, -FORGET]]), episodes, KEEP
        )
    assert inference.weights(first)[0, 0] > 0.85
    assert first.min() >= -FORGET
    after = inference.update(first, jnp.array([[-8.0, -0.1, -8.0]]))
    assert inference.weights(after)[0, 1] > 0.5


def test_without_earlier_episodes_nothing_is_expected_but_the_prior() -> None:
    """An episode that showed nothing leaves the prior as it was."""
    inference = model()
    first, _ = next_episode(inference, jnp.zeros((1, 3)), jnp.zeros((1, 3)), KEEP)
    np.testing.assert_allclose(inference.weights(first)[0], [0.5, 0.3, 0.2], rtol=1e-5)
