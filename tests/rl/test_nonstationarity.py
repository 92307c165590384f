"""Measures of how policies move, against plain loops."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy.spatial.distance import jensenshannon

from coplay.rl.nonstationarity import js_distance, mean_cosine, policy_shift

RNG = np.random.default_rng(0)
SAMPLES, SEATS, ACTIONS = 7, 3, 4
shift = jax.jit(partial(policy_shift, clip=0.2))


def policies() -> np.ndarray:
    return np.asarray(jax.nn.log_softmax(jnp.asarray(RNG.normal(size=(SAMPLES, SEATS, ACTIONS)))))


def test_policy_shift_by_hand() -> None:
    old, new = policies(), policies()
    action = RNG.integers(ACTIONS, size=(SAMPLES, SEATS))
    acting = RNG.random((SAMPLES, SEATS)) < 0.7
    acting[0] = False
    found = shift(old, new, action, acting)
    kl = (np.exp(old) * (old - new)).sum(-1)
    ratio = np.ones((SAMPLES, SEATS))
    for s in range(SAMPLES):
        for i in range(SEATS):
            if acting[s, i]:
                ratio[s, i] = np.exp(new[s, i, action[s, i]] - old[s, i, action[s, i]])
    joint = ratio.prod(1)[acting.any(1)]
    for i in range(SEATS):
        mine = acting[:, i]
        np.testing.assert_allclose(found["policy_shift_kl"][i], kl[mine, i].mean(), rtol=1e-5)
        others = np.delete(ratio, i, axis=1).prod(1)
        np.testing.assert_allclose(
            found["policy_shift_others"][i], np.abs(others - 1)[mine].mean(), rtol=1e-5
        )
        outside = np.abs(ratio[mine, i] - 1) > 0.2
        np.testing.assert_allclose(found["policy_shift_clip"][i], outside.mean(), rtol=1e-6)
    total = np.where(acting, kl, 0).sum(1)[acting.any(1)].mean()
    np.testing.assert_allclose(found["policy_shift_kl_joint"], total, rtol=1e-5)
    ess = joint.sum() ** 2 / (len(joint) * (joint**2).sum())
    np.testing.assert_allclose(found["policy_shift_ess"], ess, rtol=1e-5)


def test_nothing_moved() -> None:
    old = policies()
    action, acting = np.zeros((SAMPLES, SEATS), int), np.ones((SAMPLES, SEATS), bool)
    found = shift(old, old, action, acting)
    np.testing.assert_allclose(found["policy_shift_ess"], 1.0, rtol=1e-6)
    for name in (
        "policy_shift_kl",
        "policy_shift_kl_joint",
        "policy_shift_others",
        "policy_shift_clip",
    ):
        np.testing.assert_allclose(found[name], 0.0, atol=1e-6)


def test_mean_cosine() -> None:
    gradients = {"a": jnp.asarray([[1.0, 0], [0, 2], [-3, 0]]), "b": jnp.zeros((3, 1))}
    np.testing.assert_allclose(jax.jit(mean_cosine)(gradients), [-0.5, 0.0, -0.5], atol=1e-6)


def test_js_distance_is_scipys() -> None:
    one, other = policies(), policies()
    expected = jensenshannon(np.exp(one), np.exp(other), base=2, axis=-1)
    found = jax.jit(js_distance)(one, other)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
