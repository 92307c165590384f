"""What can be read from goal codes: a linear probe, how soon it knows, and views in two
dimensions."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int


class Probe(NamedTuple):
    """Softmax of a linear function of standardised codes."""

    weight: np.ndarray
    bias: np.ndarray
    centre: np.ndarray
    scale: np.ndarray

    def __call__(self, code: np.ndarray) -> np.ndarray:
        """[row, class] probabilities."""
        logits = (code - self.centre) / self.scale @ self.weight.T + self.bias
        logits -= logits.max(1, keepdims=True)
        probs = np.exp(logits)
        return probs / probs.sum(1, keepdims=True)


def fit_probe(code: np.ndarray, label: np.ndarray, classes: int, steps: int = 400) -> Probe:
    """Logistic regression with a little decay, by full gradients."""
    centre, scale = code.mean(0), code.std(0) + 1e-6
    x, y = jnp.asarray((code - centre) / scale), jnp.asarray(label, jnp.int32)
    optimiser = optax.adam(0.05)

    def loss(weights: tuple[Array, Array], x: Array, y: Int[Array, " row"]) -> Float[Array, ""]:
        weight, bias = weights
        entropy = optax.softmax_cross_entropy_with_integer_labels(x @ weight.T + bias, y)
        return jnp.mean(entropy) + 1e-4 * jnp.sum(jnp.square(weight))

    @jax.jit
    def run(x: Array, y: Array) -> tuple[Array, Array]:
        start = (jnp.zeros((classes, x.shape[1])), jnp.zeros(classes))

        def step(carry: tuple, _: None) -> tuple[tuple, None]:
            weights, state = carry
            change, state = optimiser.update(jax.grad(loss)(weights, x, y), state)
            return (optax.apply_updates(weights, change), state), None

        return jax.lax.scan(step, (start, optimiser.init(start)), None, length=steps)[0][0]

    weight, bias = (np.asarray(value) for value in run(x, y))
    return Probe(weight, bias, centre, scale)


def by_step(right: np.ndarray, time: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Counts and shares of what is right at each step of the episode."""
    counts = np.bincount(time, minlength=steps)[:steps]
    shares = np.bincount(time, weights=right, minlength=steps)[:steps] / np.maximum(counts, 1)
    return counts, shares


class Recognised(NamedTuple):
    """How soon players of a kind are recognised.

    share: of the segments (episodes of one seat) in which they ever are. steps: mean number of
    their actions that were seen before, over those segments. segments: how many there are.
    """

    share: float
    steps: float
    segments: int


def recognition(
    probability: np.ndarray, segment: np.ndarray, time: np.ndarray, sure: float = 0.9
) -> Recognised:
    """From the probability given to a kind, of steps of players of that kind."""
    known = probability >= sure
    first = np.full(int(segment.max()) + 1, -1) if len(segment) else np.zeros(0, int)
    for number, step in zip(segment[known][::-1], time[known][::-1], strict=True):
        first[number] = step
    segments = np.unique(segment)
    found = first[segments]
    there = found >= 0
    steps = float(found[there].mean()) if there.any() else float("nan")
    return Recognised(float(there.mean()) if len(segments) else 0.0, steps, len(segments))


def principal(code: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes on their first two principal axes, and the share of variance of every axis."""
    centred = code - code.mean(0)
    _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    share = np.square(sizes) / np.maximum(np.square(sizes).sum(), 1e-12)
    flat = centred @ axes[:2].T
    return np.pad(flat, ((0, 0), (0, 2 - flat.shape[1]))), share


def tsne(code: np.ndarray, perplexity: float = 30.0, steps: int = 500, seed: int = 0) -> np.ndarray:
    """Codes in two dimensions such that near ones stay near (t-SNE, exact; for some thousand)."""
    count = len(code)
    squared = np.square(code).sum(1)
    distance = np.maximum(squared[:, None] + squared[None] - 2 * code @ code.T, 0)
    np.fill_diagonal(distance, np.inf)
    target = np.log(min(perplexity, (count - 1) / 3))
    low, high, beta = np.zeros(count), np.full(count, np.inf), np.full(count, 1.0)
    nearest = distance.min(1, keepdims=True)
    for _ in range(60):  # bisection of each point's width, by the entropy of its neighbours
        weight = np.exp(-(distance - nearest) * beta[:, None])
        share = weight / weight.sum(1, keepdims=True)
        entropy = -(share * np.log(np.maximum(share, 1e-30))).sum(1)
        wide = entropy > target
        low, high = np.where(wide, beta, low), np.where(wide, high, beta)
        beta = np.where(np.isinf(high), 2 * beta, (low + np.minimum(high, 1e30)) / 2)
    joint = (share + share.T) / (2 * count)
    joint = np.maximum(joint, 1e-12)
    flat = principal(code)[0]
    flat = 1e-2 * flat / np.maximum(flat.std(0), 1e-9)
    flat += np.random.default_rng(seed).normal(scale=1e-4, size=flat.shape)
    speed, gain = np.zeros_like(flat), np.ones_like(flat)
    rate = max(count / 12 / 4, 50.0)
    for step in range(steps):
        more = 12.0 if step < steps // 4 else 1.0
        size = np.square(flat).sum(1)
        kernel = 1 / (1 + np.maximum(size[:, None] + size[None] - 2 * flat @ flat.T, 0))
        np.fill_diagonal(kernel, 0)
        pull = (more * joint - np.maximum(kernel / kernel.sum(), 1e-12)) * kernel
        slope = 4 * (pull.sum(1)[:, None] * flat - pull @ flat)
        same = np.sign(slope) == np.sign(speed)
        gain = np.maximum(np.where(same, 0.8 * gain, gain + 0.2), 0.01)
        speed = (0.5 if step < steps // 4 else 0.8) * speed - rate * gain * slope
        flat = flat + speed
        flat -= flat.mean(0)
    return flat
