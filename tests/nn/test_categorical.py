"""Categorical distributions against NumPy in double precision, and sampling at its edges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from coplay.nn import categorical

SETTINGS = settings(max_examples=60, deadline=None, derandomize=True, database=None)
ROWS, ACTIONS = 6, 5
BELOW_ONE = float(np.nextafter(np.float32(1), np.float32(0)))
NOTHING = -104.0  # exp of less is zero in float32, subnormal numbers included

log_policy = jax.jit(categorical.log_policy)
sample = jax.jit(categorical.sample)
drawn = jax.jit(lambda uniform, logits, legal: sample(uniform, log_policy(logits, legal)))

# Ordinary logits, and ones so far apart that probabilities vanish.
number = st.floats(-20, 20, width=32) | st.sampled_from([0.0, -80.0, -95.0, -1e4, 1e4, -1e9])
logit_arrays = arrays(np.float32, (ROWS, ACTIONS), elements=number)
legal_arrays = arrays(bool, (ROWS, ACTIONS)).map(
    lambda x: np.where(x.any(1, keepdims=True), x, np.arange(ACTIONS) == 2)
)
uniforms = arrays(
    np.float32,
    (ROWS,),
    elements=st.floats(0, BELOW_ONE, width=32) | st.sampled_from([0.0, BELOW_ONE, 1e-38]),
)


def slow_log_policy(logits: np.ndarray, legal: np.ndarray) -> np.ndarray:
    """In double precision; minus infinity for illegal actions."""
    masked = np.where(legal, logits.astype(np.float64), -np.inf)
    top = masked.max(-1, keepdims=True)
    return masked - top - np.log(np.exp(masked - top).sum(-1, keepdims=True))


@SETTINGS
@given(logits=logit_arrays, legal=legal_arrays)
def test_log_policy(logits: np.ndarray, legal: np.ndarray) -> None:
    result = np.asarray(log_policy(logits, legal))
    assert np.isfinite(result).all()
    usual = (legal & (logits > -1e8)).any(1)  # some legal action is better than `NEVER`
    result, legal, expected = result[usual], legal[usual], slow_log_policy(logits, legal)[usual]
    np.testing.assert_allclose(np.exp(result.astype(np.float64)), np.exp(expected), atol=1e-6)
    np.testing.assert_allclose(result[legal], expected[legal], rtol=1e-5, atol=1e-5)
    assert (np.exp(result)[~legal] == 0).all()


@SETTINGS
@given(uniform=uniforms, logits=logit_arrays, legal=legal_arrays)
@example(
    uniform=np.full(ROWS, BELOW_ONE, np.float32),
    logits=np.zeros((ROWS, ACTIONS), np.float32),
    legal=np.tril(np.ones((ROWS, ACTIONS), bool)),
)
@example(
    uniform=np.zeros(ROWS, np.float32),
    logits=np.zeros((ROWS, ACTIONS), np.float32),
    legal=np.concatenate([np.triu(np.ones((ACTIONS, ACTIONS), bool)), np.eye(1, 5, dtype=bool)]),
)
def test_sample_is_the_inverse_of_the_cumulative_distribution(
    uniform: np.ndarray, logits: np.ndarray, legal: np.ndarray
) -> None:
    logits = np.where(legal, np.maximum(logits, -1e6), logits)  # illegal ones may be anything
    action = np.asarray(drawn(uniform, logits, legal))
    log_probs = slow_log_policy(logits, legal)
    for row in range(ROWS):
        taken = int(action[row])
        assert legal[row, taken]
        assert log_probs[row, taken] > NOTHING
        probs = np.exp(log_probs[row])
        probs[log_probs[row] < NOTHING] = 0.0
        ends = np.cumsum(probs)
        target = float(uniform[row]) * ends[-1]
        # Rounding may move an edge by a few units in the last place.
        assert ends[taken] - probs[taken] - 1e-6 <= target <= ends[taken] + 1e-6
        if np.abs(ends[:-1] - target).min() > 1e-6:
            assert taken == np.searchsorted(ends, target, side="right")


@pytest.mark.parametrize("uniform", [0.0, 1e-45, 1e-38, 0.5, 1 - 1e-6, BELOW_ONE])
def test_never_an_action_of_probability_zero_at_the_extremes(uniform: float) -> None:
    """Random policies in which actions at both ends are illegal or have vanished."""
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=5, size=(20_000, ACTIONS)).astype(np.float32)
    legal = rng.random(logits.shape) < 0.5
    legal[np.arange(len(legal)), rng.integers(ACTIONS, size=len(legal))] = True
    lost = (rng.random(logits.shape) < 0.3) & (np.cumsum(legal, 1) > 1)
    logits[lost] = -200.0
    action = np.asarray(drawn(np.full(len(logits), uniform, np.float32), logits, legal))
    rows = np.arange(len(logits))
    assert legal[rows, action].all()
    assert (slow_log_policy(logits, legal)[rows, action] > NOTHING).all()


def test_frequencies_are_the_probabilities() -> None:
    logits = np.array([0.3, -1.0, 2.0, -1e9, 0.0, 1.0], np.float32)
    legal = np.array([True, True, True, True, True, False])
    probs = np.exp(slow_log_policy(logits, legal))
    log_probs = jnp.asarray(log_policy(logits, legal))
    draws = 40_000
    even = (np.arange(draws, dtype=np.float32) + 0.5) / draws
    random = np.asarray(jax.random.uniform(jax.random.key(1), (draws,)))
    for uniform, error in ((even, 3 / draws), (random, 5 * np.sqrt(probs / draws))):
        action = np.asarray(sample(uniform, jnp.broadcast_to(log_probs, (draws, 6))))
        frequency = np.bincount(action, minlength=6) / draws
        assert (np.abs(frequency - probs) <= error).all(), (frequency, probs)


def test_sample_over_several_axes() -> None:
    rng = np.random.default_rng(2)
    log_probs = np.asarray(log_policy(rng.normal(size=(4, 3, ACTIONS)), np.ones((4, 3, 5), bool)))
    uniform = rng.random((4, 3)).astype(np.float32)
    action = np.asarray(sample(uniform, log_probs))
    assert action.shape == (4, 3) and action.dtype == np.int32
    for at in np.ndindex(4, 3):
        edges = np.cumsum(np.exp(log_probs[at].astype(np.float64)))
        assert action[at] == np.searchsorted(edges, uniform[at], side="right")


@SETTINGS
@given(logits=logit_arrays, others=logit_arrays, legal=legal_arrays)
def test_entropy_and_kl(logits: np.ndarray, others: np.ndarray, legal: np.ndarray) -> None:
    logits, others = np.maximum(logits, -1e4), np.maximum(others, -1e4)
    first, second = slow_log_policy(logits, legal), slow_log_policy(others, legal)
    one, two = log_policy(logits, legal), log_policy(others, legal)
    entropy, kl = np.asarray(categorical.entropy(one)), np.asarray(categorical.kl(one, two))
    for row in range(ROWS):
        kept = np.flatnonzero(legal[row])
        probs = np.exp(first[row, kept])
        assert entropy[row] == pytest.approx(-(probs * first[row, kept]).sum(), abs=1e-4)
        expected = (probs * (first[row, kept] - second[row, kept])).sum()
        assert kl[row] == pytest.approx(expected, rel=1e-4, abs=1e-4)
    assert (np.asarray(categorical.kl(one, one)) == 0).all()


def test_known_entropies() -> None:
    logits, legal = np.zeros((5, 5), np.float32), np.tril(np.ones((5, 5), bool))
    entropy = categorical.entropy(log_policy(logits, legal))
    np.testing.assert_allclose(entropy, np.log([1, 2, 3, 4, 5]), atol=1e-6)


def test_mixed_with_chance() -> None:
    legal = jnp.asarray([True, True, False])
    log_probs = categorical.log_policy(jnp.asarray([2.0, 0.0, 5.0]), legal)
    found = categorical.mixed(log_probs, legal, 0.25)
    expected = 0.75 * np.exp(log_probs) + 0.25 * np.array([0.5, 0.5, 0.0])
    np.testing.assert_allclose(np.exp(found), expected, atol=1e-6)
    assert found[2] == categorical.ILLEGAL


def test_take() -> None:
    rng = np.random.default_rng(4)
    values, action = rng.normal(size=(4, 3, 5)).astype(np.float32), rng.integers(5, size=(4, 3))
    values[action == 2, 0] = -1e9
    result = np.asarray(categorical.take(jnp.asarray(values), jnp.asarray(action)))
    for at in np.ndindex(4, 3):
        assert result[at] == values[(*at, action[at])]


def test_gradients_stay_finite_and_leave_illegal_actions_alone() -> None:
    legal = np.array([[True, True, False, False, True], [False, False, False, True, False]])
    logits = np.array([[1.0, -200.0, 3.0, 0.0, 2.0], [0.0, 1.0, 2.0, 3.0, 4.0]], np.float32)

    def total(logits: jax.Array) -> jax.Array:
        log_probs = categorical.log_policy(logits, jnp.asarray(legal))
        chosen = categorical.take(log_probs, jnp.array([4, 3]))
        return jnp.sum(chosen + 0.1 * categorical.entropy(log_probs))

    gradient = np.asarray(jax.grad(total)(jnp.asarray(logits)))
    assert np.isfinite(gradient).all()
    assert (gradient[~legal] == 0).all()
    assert gradient[0, 4] > 0 > gradient[0, 0]
