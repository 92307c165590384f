"""Goal codes and the opponent model, trained on a dataset."""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from coplay.core.errors import UserError
from coplay.core.game import Observation, require_horizon
from coplay.core.progress import Told, untold
from coplay.matches.bayes_filter import Filtered, best_top1, filtered
from coplay.matches.dataset import Dataset, Samples, packed, samples_of
from coplay.models.goal_codes import GoalModel, Steps, check_content, new_goal_model
from coplay.models.goal_loss import goal_loss
from coplay.models.opponent_model import rank
from coplay.nn.networks import view_shape
from coplay.training.players import make_player
from coplay.training.pretrain import DataSplit, Say, Task, fit, write_pretrained
from coplay.training.pretrained import FitConfig, PretrainedGoalsConfig


class ChunkedSamples(NamedTuple):
    """Samples on the device, and where each is in the chunks that recurrent networks run over.

    slots: [chunk, slot] row numbers, -1: empty. place: [row] chunk * slots + slot.
    units: width of the memory that chunks begin with. past: as in `GoalModel`.
    """

    samples: Samples
    slots: Int[Array, "chunk slot"]
    place: np.ndarray
    units: int
    past: int

    def steps(self, chunks_: Int[Array, " chunk"]) -> Steps:
        """Some of the chunks."""
        rows = self.slots[chunks_]
        alive, index = rows >= 0, jnp.maximum(rows, 0)
        picked = jax.tree.map(lambda x: x[index], self.samples)
        later = jnp.roll(picked.segment, -1, axis=1) == picked.segment
        later &= jnp.roll(alive, -1, axis=1) & alive
        later = later.at[:, -1].set(False)

        def backward(count: Array, goes_on: Array) -> tuple[Array, Array]:
            count = jnp.where(goes_on, count + 1, 0)
            return count, count

        start = jnp.zeros(rows.shape[0], jnp.int32)
        left = jax.lax.scan(backward, start, later.T, reverse=True)[1].T
        return Steps(
            observation=Observation(picked.planes, picked.features, picked.legal),
            following=picked.next_planes,
            outcome=jnp.concatenate(
                [picked.next_features[..., self.past :], picked.reward[..., None]], axis=-1
            ),
            joint=picked.action,
            alive=alive,
            first=picked.time == 0,
            left=left,
            target=picked.team,
            start=jnp.zeros((rows.shape[0], self.units)),
        )


def chunk_samples(samples: Samples, length: int, model: GoalModel) -> ChunkedSamples:
    """Samples packed into chunks of `length` slots, for a model."""
    slots = packed(samples.segment, length)
    place = np.empty(len(samples.segment), np.int64)
    flat = slots.reshape(-1)
    place[flat[flat >= 0]] = np.flatnonzero(flat >= 0)
    rows = jax.tree.map(jnp.asarray, samples)
    return ChunkedSamples(rows, jnp.asarray(slots), place, model.memory_size, model.past)


class Predictions(NamedTuple):
    """What a model says of every sample, with codes from the past only.

    action: [row, action] log-probabilities. code: [row, code] means. spread: [row, code] variances.
    """

    action: np.ndarray
    code: np.ndarray
    spread: np.ndarray


CHUNKS = 64  # looked at in one go


@partial(jax.jit, static_argnums=3)
def _predict_samples(
    model: GoalModel, samples: Samples, slots: Int[Array, "chunk slot"], no_goal: bool
) -> tuple[Array, Array, Array]:
    chunks = ChunkedSamples(samples, slots, np.zeros(0), model.memory_size, model.past)
    count = -(-chunks.slots.shape[0] // CHUNKS)
    chunks_ = jnp.minimum(jnp.arange(count * CHUNKS), chunks.slots.shape[0] - 1)

    def some(chunks_: Int[Array, " chunk"]) -> tuple[Array, Array, Array]:
        steps = chunks.steps(chunks_)
        seen, code = model.codes(steps)
        z = jnp.zeros_like(code.mean) if no_goal else code.mean
        action = model.predict_actions(seen, z, steps.observation.legal)
        return action, code.mean, jnp.exp(code.log_variance)

    found = jax.lax.map(some, chunks_.reshape(count, CHUNKS))
    return jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]), found)


def predict_samples(model: GoalModel, chunks: ChunkedSamples, no_goal: bool = False) -> Predictions:
    """What the model says of all samples; no_goal: as if every code were 0."""
    found = _predict_samples(model, chunks.samples, chunks.slots, no_goal)
    return Predictions(*(np.asarray(x)[chunks.place] for x in found))


def shares(
    action: np.ndarray, kind: np.ndarray, log_probs: np.ndarray, kinds: tuple[str, ...], name: str
) -> dict[str, float]:
    """Top-1 overall and by kind."""
    right = log_probs.argmax(-1) == action
    found = {name: float(right.mean())}
    for index, title in enumerate(kinds):
        if (kind == index).any():
            found[f"{name}/{title}"] = float(right[kind == index].mean())
    return found


def fresh_model(dataset: Dataset, config: PretrainedGoalsConfig, seed: int) -> GoalModel:
    game = dataset.game
    check_content(config, view_shape(game))
    return new_goal_model(config, view_shape(game), game.seats, jax.random.key(seed))


def pretrain_goals(
    data: Path,
    dataset: Dataset,
    config: PretrainedGoalsConfig,
    options: FitConfig,
    out: Path,
    say: Say,
    told: Told = untold,
) -> dict[str, Any]:
    """Train, measure on held-out episodes, write the folder; the summary."""
    source = DataSplit.of(data, dataset, options)
    length = require_horizon(dataset.game)
    start = fresh_model(dataset, config, options.seed)
    chunks, test = (
        chunk_samples(samples_of(part, config.discount), length, start)
        for part in (source.train, source.held)
    )
    best = best_of(source.held)
    rows = np.asarray(test.samples.action)[:, 0], np.asarray(test.samples.kind)

    def measure(model: GoalModel) -> dict[str, Any]:
        found = predict_samples(model, test).action
        taken = np.take_along_axis(found, rows[0][:, None].astype(int), axis=1)
        before = rank(jnp.asarray(found), jnp.asarray(rows[0], jnp.int32))
        return {
            **shares(*rows, found, dataset.kinds, "top1"),
            "top3": float((before < 3).mean()),
            "held_out_loss": float(-taken.mean()),
        }

    def loss(
        model: GoalModel, batch: Steps, key: PRNGKeyArray, progress: Float[Array, ""]
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        share = config.anneal
        kl_scale = jnp.minimum(progress / share, 1.0) if share else jnp.float32(1)
        return goal_loss(model, batch, key, kl_scale)

    task = Task(
        items=chunks.slots.shape[0],
        per_batch=max(options.batch // length, 1),
        pick=chunks.steps,
        loss=loss,
        measure=measure,
    )
    model, record = fit(start, task, options, say, told)
    figures = {name: record[-1][name] for name in ("top1", "top3")}
    if best is not None:
        figures |= best_figures(best.hits(), rows[1], dataset.kinds, record[-1]["top1"])
    return write_pretrained(out, "goals", source, config, options, model, record, figures)


def best_figures(
    hits: np.ndarray, kind: np.ndarray, kinds: tuple[str, ...], top1: float
) -> dict[str, Any]:
    """The best possible top-1 overall and by kind, and a model's share of it. hits: [row]."""
    best = best_top1(hits)
    found: dict[str, Any] = {"bayes_top1": best.expected, "bayes_interval": list(best.interval)}
    for index, title in enumerate(kinds):
        if (kind == index).any():
            found[f"bayes_top1/{title}"] = best_top1(hits[kind == index]).expected
    share = top1 / max(best.expected, 1e-9)
    return found | {"share_of_bayes": share, "verdict": best.words(top1)}


def best_of(dataset: Dataset) -> Filtered | None:
    """What the Bayes filter says; None if the mix has players whose policy is not known."""
    try:
        players = tuple(make_player(kind, dataset.game) for kind in dataset.kinds)
        return filtered(dataset, players)
    except UserError:
        return None
