"""How good a world model is: boards, rewards, leaving, and what could never happen."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from coplay.matches.dataset import Samples
from coplay.models.world_model import (
    MOVES,
    WorldModel,
    expected_board,
    likely_board,
    shifted,
    true_moves,
)

BEST_PSNR = 100.0
REWARD_RIGHT = 0.01


class StepErrors(NamedTuple):
    """Predictions of single steps beside the truth, [row, ...].

    exact: the most probable board is the true one. squared: [row, plane] mean squared error of the
    raw probabilities over the plane's cells. reward: the most probable one; reward_error: its
    distance from the true one. leaves: probability. impossible: [row, fault] what the most probable
    board shows that can never happen, see `FAULTS`. legal: all legal actions known as such, and no
    other.
    """

    exact: Bool[Array, " row"]
    squared: Float[Array, "row plane"]
    reward: Float[Array, " row"]
    reward_error: Float[Array, " row"]
    leaves: Float[Array, " row"]
    impossible: Bool[Array, "row fault"]
    legal: Bool[Array, " row"]


FAULTS = ("jumped", "vanished", "appeared", "doubled", "moved thing")
"""A player farther than one cell from where it was, or in a wall; gone although nothing was taken
from its cell; there although it had left; in two cells; a thing where there was none, or a wall
that changed."""


def impossible(
    planes: Float[Array, "row height width plane"],
    board: Float[Array, "row height width plane"],
    seats: int,
) -> Bool[Array, "row fault"]:
    """Which faults a predicted board of zeros and ones shows, after the board `planes`."""
    before, after = planes[..., :seats], board[..., :seats]
    near = sum((shifted(before, one) for one in MOVES), jnp.zeros_like(before)) > 0
    wall = planes[..., seats : seats + 1] > 0
    there = jnp.any(before > 0, axis=(1, 2), keepdims=True)
    jumped = jnp.any((after > 0) & (~near | wall) & there, axis=(1, 2, 3))
    was, is_ = (jnp.any(x > 0, axis=(1, 2)) for x in (before, after))  # [row, seat]
    rest, rest_after = planes[..., seats:], board[..., seats:]
    taken = jnp.any((rest > 0) & (rest_after == 0), axis=-1, keepdims=True)
    took = jnp.any((before > 0) & taken, axis=(1, 2))
    vanished = jnp.any(was & ~is_ & ~took, axis=-1)
    appeared = jnp.any(~was & is_, axis=-1)
    doubled = jnp.any(jnp.sum(after, axis=(1, 2)) > 1, axis=-1)
    things = jnp.any((rest == 0) & (rest_after > 0), axis=(1, 2, 3))
    walls = jnp.any(rest[..., 0] != rest_after[..., 0], axis=(1, 2))
    return jnp.stack([jumped, vanished, appeared, doubled, things | walls], axis=-1)


ROWS = 2048  # looked at in one go


@jax.jit
def _step_errors(model: WorldModel, samples: Samples) -> StepErrors:
    planes, following = (x.astype(jnp.float32) for x in (samples.planes, samples.next_planes))
    beliefs = model(planes, samples.action)
    likely = likely_board(planes, beliefs)
    raw = expected_board(planes, beliefs)
    reward = model.likely_reward(beliefs)
    legal = model.legal(planes)[..., 0, :] > 0
    return StepErrors(
        exact=jnp.all(likely == following, axis=(1, 2, 3)),
        squared=jnp.mean(jnp.square(raw - following), axis=(1, 2)),
        reward=reward,
        reward_error=jnp.abs(reward - samples.reward),
        leaves=jax.nn.sigmoid(beliefs.leaves),
        impossible=impossible(planes, likely, model.seats),
        legal=jnp.all(legal == samples.legal, axis=-1),
    )


def step_errors(model: WorldModel, samples: Samples) -> StepErrors:
    """Every sample's step predicted and compared."""
    count = len(samples.time)
    parts = []
    for first in range(0, count, ROWS):
        index = np.minimum(np.arange(first, first + ROWS), count - 1)
        part = jax.tree.map(lambda x, i=index: jnp.asarray(x[i]), samples)
        found = jax.tree.map(np.asarray, _step_errors(model, part))
        parts.append(jax.tree.map(lambda x, n=count - first: x[:n], found))
    return jax.tree.map(lambda *x: np.concatenate(x), *parts)


def psnr(squared: Any) -> float:
    """Peak signal to noise ratio of the pooled error, in decibels, of values between 0 and 1."""
    mean = float(np.mean(squared, dtype=np.float64))
    return BEST_PSNR if mean <= 10 ** (-BEST_PSNR / 10) else float(-10 * np.log10(mean))


def figures(errors: StepErrors, samples: Samples) -> dict[str, float]:
    """The figures of a world model, over all samples."""
    return {
        "exact": float(errors.exact.mean()),
        "psnr": psnr(errors.squared),
        "board_mse": float(errors.squared.mean(dtype=np.float64)),
        "reward_right": float((errors.reward_error <= REWARD_RIGHT).mean()),
        "reward_mse": float(np.square(errors.reward_error, dtype=np.float64).mean()),
        "leaves_right": float(((errors.leaves > 0.5) == samples.terminated).mean()),
        "legal_right": float(errors.legal.mean()),
        "impossible": float(errors.impossible.any(-1).mean()),
    }


class OpenLoopErrors(NamedTuple):
    """Open-loop imagination: from a real board on, each prediction made from the one before with
    the actions that were really taken.

    exact, squared: [start, horizon] of the boards so far. reward_error: of the rewards.
    alive: [start, horizon] the ego player was still in the game.
    """

    exact: np.ndarray
    squared: np.ndarray
    reward_error: np.ndarray
    alive: np.ndarray


def open_loop(model: WorldModel, samples: Samples, horizon: int, starts: int) -> OpenLoopErrors:
    """Imagine `horizon` steps from `starts` samples spread over all of them."""
    count = len(samples.time)
    start = np.linspace(0, count - 1, min(starts, count)).astype(int)
    # [start, horizon] the real rows; a segment's later rows follow each other.
    index = np.minimum(start[:, None] + np.arange(horizon), count - 1)
    alive = (samples.segment[index] == samples.segment[start][:, None]) & (
        start[:, None] + np.arange(horizon) < count
    )

    @jax.jit
    def run(model: WorldModel, planes: Array, action: Array, truth: Array, reward: Array) -> tuple:
        def step(board: Float[Array, "start height width plane"], row: tuple) -> tuple:
            action, truth, reward = row
            beliefs = model(board, action)
            raw = expected_board(board, beliefs)
            board = likely_board(board, beliefs)
            truth = truth.astype(jnp.float32)
            gained = model.likely_reward(beliefs)
            return board, (
                jnp.all(board == truth, axis=(1, 2, 3)),
                jnp.mean(jnp.square(raw - truth), axis=(1, 2, 3)),
                jnp.abs(gained - reward),
            )

        rows = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), (action, truth, reward))
        return jax.lax.scan(step, planes, rows)[1]

    found = run(
        model,
        jnp.asarray(samples.planes[start], jnp.float32),
        jnp.asarray(samples.action[index]),
        jnp.asarray(samples.next_planes[index]),
        jnp.asarray(samples.reward[index]),
    )
    exact, squared, error = (np.asarray(x).T for x in found)
    return OpenLoopErrors(exact, squared, error, alive)


def calibration(
    model: WorldModel, samples: Samples, bins: int, rows: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How often predictions of moves and of things come true: counts, mean predicted probability
    and observed share, per bin of the predicted probability."""
    pick = np.linspace(0, len(samples.time) - 1, min(rows, len(samples.time))).astype(int)

    @jax.jit
    def run(model: WorldModel, planes: Array, action: Array, following: Array) -> tuple:
        planes, following = planes.astype(jnp.float32), following.astype(jnp.float32)
        beliefs = model(planes, action)
        way, known = true_moves(planes, following, model.seats)
        ways: Int[Array, " way"] = jnp.arange(1 + len(MOVES))
        there = jax.nn.sigmoid(beliefs.there)
        return (
            jax.nn.softmax(beliefs.move, axis=-1),
            way[..., None] == ways,
            jnp.broadcast_to(known[..., None], beliefs.move.shape),
            there,
            following[..., model.seats :],
        )

    found = run(
        model,
        jnp.asarray(samples.planes[pick]),
        jnp.asarray(samples.action[pick]),
        jnp.asarray(samples.next_planes[pick]),
    )
    way, true, known, there, actual = (np.asarray(x) for x in found)
    predicted = np.concatenate([way[known], there.reshape(-1)])
    observed = np.concatenate([true[known], actual.reshape(-1) > 0])
    place = np.minimum((predicted * bins).astype(int), bins - 1)
    counts = np.bincount(place, minlength=bins)
    safe = np.maximum(counts, 1)
    return (
        counts,
        np.bincount(place, weights=predicted, minlength=bins) / safe,
        np.bincount(place, weights=observed, minlength=bins) / safe,
    )
