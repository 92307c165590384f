"""The world model, trained on a dataset."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from coplay.evaluation.world_quality import figures, judge
from coplay.games.game import Game
from coplay.minds.networks import view_shape
from coplay.minds.world_model import (
    Transition,
    WorldConfig,
    WorldModel,
    refuse_unseen,
    world_loss,
)
from coplay.training.dataset import Dataset, Samples, samples_of
from coplay.training.pretrain import (
    FitConfig,
    Say,
    Task,
    about_dataset,
    fit,
    load_weights,
    read_pretrained,
    write_pretrained,
)

MOST_VALUES = 256


def reward_values(reward: np.ndarray) -> np.ndarray:
    """The rewards that occur, in order; the most frequent ones if there are very many."""
    values, counts = np.unique(np.round(reward.astype(np.float64), 4), return_counts=True)
    if len(values) > MOST_VALUES:
        values = np.sort(values[np.argsort(-counts)[:MOST_VALUES]])
    return values


def fresh_world(game: Game, config: WorldConfig, values: np.ndarray, seed: int) -> WorldModel:
    refuse_unseen(game)
    return WorldModel(config, game, view_shape(game).planes[2], values, jax.random.key(seed))


def pretrain_world(
    data: Path, dataset: Dataset, config: WorldConfig, options: FitConfig, out: Path, say: Say
) -> dict[str, Any]:
    """Train, measure on held-out episodes, write the folder; the summary."""
    game = dataset.game
    refuse_unseen(game)
    train, held = dataset.split(options.held_out)
    samples, test = samples_of(train), samples_of(held)
    values = reward_values(samples.reward)
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
        measure=lambda model: figures(judge(model, test), test),
    )
    model, record = fit(fresh_world(game, config, values, options.seed), task, options, say)
    summary = {
        "part": "world-model",
        "samples": train.samples,
        "held_out_samples": held.samples,
        "seconds": record[-1]["seconds"],
        **figures(judge(model, test), test),
    }
    about = about_dataset("world-model", data, dataset, config, options)
    write_pretrained(out, about, model, record, summary)
    return summary


def load_world(folder: Path) -> tuple[WorldModel, Any]:
    """A pretrained world model, and what its folder says about it."""
    about = read_pretrained(folder, "world-model", WorldConfig)
    game = about.made_game
    with np.load(folder / "model.npz", allow_pickle=False) as saved:
        values = saved[".values"]
    like = jax.eval_shape(lambda: fresh_world(game, about.model, values, 0))
    return load_weights(folder, like), about
