"""VariBAD: the lower bound against plain loops."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coplay.algorithms.ppo.embedded import History, Others
from coplay.algorithms.varibad.learner import Belief, LatentDecoder, bound_terms, divergence

COPIES, STEPS, SEATS, OTHERS, VIEW, ACTIONS, LATENT, TERMS = 3, 6, 2, 2, 4, 3, 2, 5


def normal_log_density(x: np.ndarray, belief: Belief) -> np.ndarray:
    variance = np.exp(belief.log_variance)
    return np.sum(-0.5 * ((x - belief.mean) ** 2 / variance + np.log(2 * np.pi * variance)), -1)


def test_divergence_is_the_mean_of_log_ratios() -> None:
    rng = np.random.default_rng(0)
    one, other = (Belief(rng.normal(size=LATENT), rng.normal(size=LATENT)) for _ in range(2))
    noise = rng.normal(size=(400_000, LATENT))
    drawn = one.mean + np.exp(0.5 * np.asarray(one.log_variance)) * noise
    ratios = normal_log_density(drawn, one) - normal_log_density(drawn, other)
    exact = divergence(*jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), (one, other)))
    assert abs(float(exact) - ratios.mean()) < 5 * ratios.std() / np.sqrt(len(ratios))


def test_the_bound_counts_the_steps_of_the_same_meeting() -> None:
    rng = np.random.default_rng(1)

    def numbers(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    decoder = LatentDecoder(VIEW, LATENT, 5, OTHERS, ACTIONS, jax.random.key(0))
    decoder = jax.tree.map(lambda x: jnp.asarray(x + 0.5 * numbers(*x.shape)), decoder)
    shape = (COPIES, STEPS, SEATS)
    belief, before = (Belief(numbers(*shape, LATENT), numbers(*shape, LATENT)) for _ in range(2))
    cleared = np.broadcast_to(rng.random((COPIES, STEPS, 1)) < 0.3, shape)
    others = Others(
        None,
        rng.integers(0, ACTIONS, (*shape, OTHERS)).astype(np.int32),
        rng.random((*shape, OTHERS)) < 0.7,
    )
    nothing: Any = None
    history = History(
        nothing, numbers(*shape, VIEW), cleared, rng.random(shape) < 0.7, nothing, others
    )
    steps = rng.integers(0, STEPS, (COPIES, TERMS)).astype(np.int32)
    noise = numbers(COPIES, TERMS, SEATS, LATENT)
    given = jax.tree.map(jnp.asarray, (belief, before, history, steps, noise))
    found = jax.jit(bound_terms)(decoder, *given)
    for copy, term, seat in np.ndindex(COPIES, TERMS, SEATS):
        t = int(steps[copy, term])
        mean, log_variance = (x[copy, t, seat] for x in belief)
        latent = mean + np.exp(log_variance / 2) * noise[copy, term, seat]
        error = 0.0
        for i in range(STEPS):
            low, high = min(i, t), max(i, t)
            if cleared[copy, low + 1 : high + 1, seat].any():
                continue
            x = decoder.view.weight @ history.view[copy, i, seat] + decoder.view.bias
            x = np.tanh(x + decoder.latent.weight @ latent + decoder.latent.bias)
            logits = np.asarray(decoder.action.weight @ x + decoder.action.bias)
            logits = logits.reshape(OTHERS, ACTIONS)
            for other in np.flatnonzero(others.alive[copy, i, seat]):
                taken = others.action[copy, i, seat, other]
                error -= logits[other, taken] - np.log(np.exp(logits[other]).sum())
        np.testing.assert_allclose(found.error[copy, term, seat], error, rtol=1e-4, atol=1e-4)
        assert found.counts[copy, term, seat] == history.alive[copy, t, seat]
    t, rows = steps[0, 0], (0, steps[0, 0], 0)
    pair = (Belief(*(x[rows] for x in one)) for one in (belief, before))
    kl = divergence(*jax.tree.map(jnp.asarray, tuple(pair)))
    np.testing.assert_allclose(found.kl[0, 0, 0], kl, rtol=1e-5)
