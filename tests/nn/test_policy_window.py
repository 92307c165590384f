"""Past steps fused by how near their policies are to the last one."""

import jax.numpy as jnp
import numpy as np

from coplay.nn.policy_window import PolicyWindow

CELL = PolicyWindow(inputs=2, actions=3, steps=4, temperature=0.5)
KNOWN = np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 5.0], [7.0, 7.0], [2.0, -1.0]], np.float32)
POLICIES = np.array(
    [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.6, 0.3, 0.1], [0.4, 0.4, 0.2], [0.2, 0.5, 0.3]],
    np.float32,
)


def fused(now: int) -> np.ndarray:
    """What the past of step `now` comes to, in plain Python."""
    past = range(max(0, now - 3), now)
    last = POLICIES[now - 1]
    weights = [np.exp(-np.sum(last * np.log(last / POLICIES[s])) / 0.5) for s in past]
    return np.asarray(sum(w * KNOWN[s] for w, s in zip(weights, past, strict=True)) / sum(weights))


def test_past_steps_count_by_the_distance_of_their_policies() -> None:
    alive = jnp.ones((5, 1), bool)
    start, first = jnp.zeros((1, CELL.size)), jnp.arange(5)[:, None] == 0
    log_policy = jnp.log(jnp.asarray(POLICIES))[:, None]
    shown, memories = CELL.unroll(jnp.asarray(KNOWN)[:, None], start, first, alive, log_policy)
    np.testing.assert_array_equal(shown[0, 0], [*KNOWN[0], 0, 0])  # no past
    for now in range(1, 5):
        np.testing.assert_allclose(shown[now, 0], [*KNOWN[now], *fused(now)], rtol=1e-5)
    # Step by step, as when acting.
    memory = start
    for now in range(5):
        memory = CELL.next(jnp.asarray(KNOWN[now])[None], memory)
        np.testing.assert_allclose(CELL.shown(memory), shown[now], rtol=1e-5)
        memory = CELL.told(memory, log_policy[now])
        np.testing.assert_allclose(memory, memories[now], rtol=1e-5)


def test_a_policy_that_never_does_something_is_far_and_not_infinitely() -> None:
    sure = jnp.log(jnp.asarray([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))
    memory = jnp.zeros((1, CELL.size))
    for policy in sure:
        memory = CELL.told(CELL.next(jnp.ones((1, 2)), memory), policy[None])
    weights = CELL.weights(CELL.next(jnp.ones((1, 2)), memory))
    np.testing.assert_allclose(weights[0], [0.5, 0.0, 0.5], atol=1e-6)
