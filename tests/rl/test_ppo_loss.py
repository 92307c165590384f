"""The PPO loss against loops over samples, seats and actions in plain Python."""

import math
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coplay.nn import categorical
from coplay.rl.ppo_loss import PPOTerms, ppo_loss

SETTINGS = settings(max_examples=12, deadline=None, derandomize=True, database=None)
SAMPLES, SEATS, ACTIONS = 8, 3, 4
WEIGHTS = {"clip": 0.2, "entropy_weight": 0.05, "value_weight": 0.7}


class Samples(NamedTuple):
    """logits and legal: [sample, seat, action]; the rest [sample, seat]."""

    logits: np.ndarray
    value: np.ndarray
    old_logits: np.ndarray
    old_value: np.ndarray
    legal: np.ndarray
    action: np.ndarray
    advantage: np.ndarray
    target: np.ndarray
    alive: np.ndarray


def made_up(seed: int) -> Samples:
    """Alive seats take legal actions; the others may hold anything, also illegal ones."""
    rng = np.random.default_rng(seed)
    shape = (SAMPLES, SEATS)
    legal = rng.random((*shape, ACTIONS)) < 0.6
    alive = rng.random(shape) < 0.7
    alive[0] = True
    action = rng.integers(ACTIONS, size=shape)
    legal[alive & ~legal.any(-1), 0] = True
    for sample, seat in np.argwhere(alive):
        action[sample, seat] = rng.choice(np.flatnonzero(legal[sample, seat]))
    legal[~legal.any(-1)] = True
    logits = rng.normal(size=(*shape, ACTIONS))
    value = rng.normal(size=shape)
    return Samples(
        logits=logits,
        value=value,
        old_logits=logits + rng.normal(scale=0.4, size=logits.shape),
        old_value=value + rng.normal(scale=0.3, size=shape),
        legal=legal,
        action=action,
        advantage=rng.normal(size=shape),
        target=rng.normal(size=shape),
        alive=alive,
    )


def slow_log_policy(logits: np.ndarray, legal: np.ndarray) -> dict[int, float]:
    """Log-probabilities of the legal actions alone."""
    kept = {a: float(logits[a]) for a in range(ACTIONS) if legal[a]}
    total = sum(math.exp(x) for x in kept.values())
    return {a: x - math.log(total) for a, x in kept.items()}


def slow_loss(samples: Samples, value_clip: float | None) -> tuple[float, dict[str, list[float]]]:
    """The loss, and for every term the mean of each seat."""
    total, count = 0.0, 0
    parts: dict[str, list[list[float]]] = {
        name: [[] for _ in range(SEATS)] for name in PPOTerms._fields
    }
    for sample in range(SAMPLES):
        for seat in range(SEATS):
            at = (sample, seat)
            if not samples.alive[at]:
                continue
            new = slow_log_policy(samples.logits[at], samples.legal[at])
            old = slow_log_policy(samples.old_logits[at], samples.legal[at])
            advantage, value = float(samples.advantage[at]), float(samples.value[at])
            target, before = float(samples.target[at]), float(samples.old_value[at])
            ratio = math.exp(new[int(samples.action[at])] - old[int(samples.action[at])])
            within = min(max(ratio, 1 - WEIGHTS["clip"]), 1 + WEIGHTS["clip"])
            policy = -min(ratio * advantage, within * advantage)
            error = (value - target) ** 2
            if value_clip is not None:
                near = before + min(max(value - before, -value_clip), value_clip)
                error = max(error, (near - target) ** 2)
            entropy = -sum(math.exp(x) * x for x in new.values())
            total += policy - WEIGHTS["entropy_weight"] * entropy
            total += WEIGHTS["value_weight"] * error / 2
            count += 1
            parts["policy_loss"][seat].append(policy)
            parts["value_loss"][seat].append(error / 2)
            parts["entropy"][seat].append(entropy)
            parts["kl"][seat].append(sum(math.exp(old[a]) * (old[a] - new[a]) for a in new))
            parts["clip_fraction"][seat].append(float(abs(ratio - 1) > WEIGHTS["clip"]))
    means = {
        name: [sum(mine) / len(mine) for mine in lists]  # sample 0 is alive everywhere
        for name, lists in parts.items()
    }
    return total / count, means


def loss_of(
    varied: tuple[Any, Any], samples: Samples, value_clip: float | None
) -> tuple[Any, PPOTerms]:
    logits, value = varied
    return ppo_loss(
        categorical.log_policy(logits, samples.legal),
        value,
        categorical.log_policy(samples.old_logits, samples.legal),
        samples.old_value,
        samples.action,
        samples.advantage,
        samples.target,
        samples.alive,
        value_clip=value_clip,
        **WEIGHTS,
    )


gradients = jax.jit(jax.value_and_grad(loss_of, has_aux=True), static_argnames="value_clip")


def compiled(
    samples: Samples, value_clip: float | None
) -> tuple[float, dict[str, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    narrow = Samples(*(x.astype(np.float32) if x.dtype == np.float64 else x for x in samples))
    (loss, terms), gradient = gradients((narrow.logits, narrow.value), narrow, value_clip)
    parts = {name: np.asarray(x) for name, x in terms._asdict().items()}
    return float(loss), parts, (np.asarray(gradient[0]), np.asarray(gradient[1]))


@pytest.mark.parametrize("value_clip", [None, 0.2])
@SETTINGS
@given(seed=st.integers(0, 10**6))
def test_loss_and_terms(value_clip: float | None, seed: int) -> None:
    samples = made_up(seed)
    loss, terms, _ = compiled(samples, value_clip)
    expected, means = slow_loss(samples, value_clip)
    assert loss == pytest.approx(expected, abs=2e-5)
    assert set(terms) == set(means)
    for name, values in means.items():
        assert terms[name].shape == (SEATS,)
        np.testing.assert_allclose(terms[name], values, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("value_clip", [None, 0.2])
def test_gradient_is_the_slope(value_clip: float | None) -> None:
    """All entries, by central differences of the plain loss in double precision."""
    samples, step = made_up(7), 1e-6
    _, _, gradient = compiled(samples, value_clip)
    for name, slopes in zip(("logits", "value"), gradient, strict=True):
        values = getattr(samples, name)
        for at in np.ndindex(values.shape):
            sides = []
            for sign in (1, -1):
                moved = values.copy()
                moved[at] += sign * step
                sides.append(slow_loss(samples._replace(**{name: moved}), value_clip)[0])
            slope = (sides[0] - sides[1]) / (2 * step)
            assert slopes[at] == pytest.approx(slope, abs=1e-5), (name, at)
            if name == "logits" and not samples.legal[at]:
                assert slopes[at] == 0.0, "an illegal action has no gradient"


def test_the_samples_show_everything() -> None:
    """Ratios and values within and beyond the limits, both signs of the advantage."""
    seen = set()
    for seed in range(10):
        samples = made_up(seed)
        assert not samples.alive.all()
        for at in map(tuple, np.argwhere(samples.alive)):
            action = int(samples.action[at])
            new = slow_log_policy(samples.logits[at], samples.legal[at])
            old = slow_log_policy(samples.old_logits[at], samples.legal[at])
            ratio = math.exp(new[action] - old[action])
            side = "above" if ratio > 1.2 else "below" if ratio < 0.8 else "within"
            seen.add((side, samples.advantage[at] > 0))
            seen.add(("far", abs(samples.value[at] - samples.old_value[at]) > 0.2))
        illegal = ~np.take_along_axis(samples.legal, samples.action[..., None], -1)[..., 0]
        if (illegal & ~samples.alive).any():
            seen.add(("illegal", True))
    sides = {(side, sign) for side in ("above", "below", "within") for sign in (True, False)}
    assert sides | {("far", True), ("far", False), ("illegal", True)} == seen


@pytest.mark.parametrize("value_clip", [None, 0.2])
@SETTINGS
@given(seed=st.integers(0, 10**6))
def test_dead_samples_count_for_nothing(value_clip: float | None, seed: int) -> None:
    samples = made_up(seed)
    rng = np.random.default_rng(seed + 1)
    dead = ~samples.alive

    def spoilt(values: np.ndarray) -> np.ndarray:
        changed = values.copy()
        if values.dtype == bool:
            changed[dead] = np.roll(values[dead], 1, axis=-1)  # still one legal action
        elif values.dtype == np.float64:
            changed[dead] = rng.uniform(-1e8, 1e8, size=values[dead].shape)
        else:
            changed[dead] = rng.integers(ACTIONS, size=values[dead].shape)
        return changed

    spoilt_samples = Samples(*(spoilt(x) for x in samples))._replace(alive=samples.alive)
    loss, terms, gradient = compiled(samples, value_clip)
    again, spoilt_terms, spoilt_gradient = compiled(spoilt_samples, value_clip)
    assert loss == again
    for name, values in terms.items():
        assert (values == spoilt_terms[name]).all(), name
    for mine, other in zip(gradient, spoilt_gradient, strict=True):
        assert (mine == other).all()
        assert (mine[dead] == 0).all() and (other[dead] == 0).all()


def test_nobody_alive() -> None:
    samples = made_up(0)._replace(alive=np.zeros((SAMPLES, SEATS), bool))
    loss, terms, gradient = compiled(samples, 0.2)
    assert loss == 0.0
    assert all((values == 0).all() for values in terms.values())
    assert all((values == 0).all() for values in gradient)


def test_the_same_policy_has_no_kl_and_nothing_clipped() -> None:
    samples = made_up(2)
    samples = samples._replace(old_logits=samples.logits)
    _, terms, _ = compiled(samples, None)
    np.testing.assert_allclose(terms["kl"], 0.0, atol=1e-6)
    assert (terms["clip_fraction"] == 0).all()
