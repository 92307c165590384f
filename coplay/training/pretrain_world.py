"""The world model, trained on a dataset."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from coplay.core.progress import Told, untold
from coplay.matches.dataset import Dataset, Samples, samples_of
from coplay.matches.world_model_quality import figures, step_errors
from coplay.models.world_model import (
    UNKNOWN,
    Transition,
    WorldModel,
    WorldModelConfig,
    refuse_unseen,
    world_loss,
)
from coplay.training.pretrain import DataSplit, Say, Task, fit, write_pretrained
from coplay.training.pretrained import FitConfig, fresh_world


def reward_values(reward: np.ndarray, most: int) -> np.ndarray:
    """[most] the rewards that occur, the most frequent first, then `UNKNOWN`."""
    values, counts = np.unique(np.round(reward.astype(np.float64), 4), return_counts=True)
    kept = values[np.argsort(-counts, kind="stable")][:most]
    return np.concatenate([kept, np.full(most - len(kept), UNKNOWN)]).astype(np.float32)


def pretrain_world(
    data: Path,
    dataset: Dataset,
    config: WorldModelConfig,
    options: FitConfig,
    out: Path,
    say: Say,
    told: Told = untold,
) -> dict[str, Any]:
    """Train, measure on held-out episodes, write the folder; the summary."""
    game = dataset.game
    refuse_unseen(game)
    source = DataSplit.of(data, dataset, options)
    samples, test = samples_of(source.train), samples_of(source.held)
    values = reward_values(samples.reward, config.reward_values)
    start = eqx.tree_at(
        lambda model: model.values,
        fresh_world(game, config, options.seed),
        jnp.asarray(values),
    )
    rows: Samples = jax.tree.map(jnp.asarray, samples)

    def pick(index: Int[Array, " item"]) -> Transition:
        one: Samples = jax.tree.map(lambda x: x[index], rows)
        return Transition(
            planes=one.planes,
            action=one.action,
            following=one.next_planes,
            reward=one.reward,
            leaves=one.terminated,
            legal=one.legal,
            alive=jnp.ones(index.shape, bool),
        )

    def loss(
        model: WorldModel, batch: Transition, key: PRNGKeyArray, progress: Float[Array, ""]
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        return world_loss(model, batch)

    task = Task(
        items=len(samples.time),
        per_batch=options.batch,
        pick=pick,
        loss=loss,
        measure=lambda model: figures(step_errors(model, test), test),
    )
    model, record = fit(start, task, options, say, told)
    found = figures(step_errors(model, test), test)
    return write_pretrained(out, "world-model", source, config, options, model, record, found)
