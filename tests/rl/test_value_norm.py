"""Running statistics of values against plain sums."""

import jax.numpy as jnp
import numpy as np

from coplay.rl.value_norm import LEAST_VARIANCE, new_norm, statistics, updated

RNG = np.random.default_rng(0)


def test_before_anything_was_seen_values_are_as_they_are() -> None:
    mean, deviation = statistics(new_norm())
    assert (float(mean), float(deviation)) == (0.0, 1.0)


def test_debiased_means_are_weighted_means_of_what_was_seen() -> None:
    decay, norm = 0.9, new_norm()
    batches = [RNG.normal(5.0, 2.0, size=(4, 3)).astype(np.float32) for _ in range(6)]
    masks = [RNG.random((4, 3)) < 0.7 for _ in range(6)]
    for values, mask in zip(batches, masks, strict=True):
        norm = updated(norm, jnp.asarray(values), jnp.asarray(mask), decay)
    weight = np.array([decay ** (5 - i) for i in range(6)])
    weight /= weight.sum()
    means = np.array([x[m].mean() for x, m in zip(batches, masks, strict=True)])
    squares = np.array([(x[m] ** 2).mean() for x, m in zip(batches, masks, strict=True)])
    mean, deviation = statistics(norm)
    np.testing.assert_allclose(mean, weight @ means, rtol=1e-5)
    np.testing.assert_allclose(deviation**2, weight @ squares - (weight @ means) ** 2, rtol=1e-4)


def test_nothing_new_changes_nothing_and_the_variance_has_a_floor() -> None:
    norm = updated(new_norm(), jnp.full((3,), 2.0), jnp.ones(3, bool), 0.9)
    same = updated(norm, jnp.full((3,), 9.0), jnp.zeros(3, bool), 0.9)
    assert norm == same
    assert float(statistics(norm)[1]) == np.float32(np.sqrt(LEAST_VARIANCE))
