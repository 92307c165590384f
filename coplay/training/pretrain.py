"""Training a model on a dataset: minibatches compiled by the epoch, a folder with the result.

config.json   metrics.jsonl   model.npz   summary.json

The folder appears when the training is done, whole or not at all.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from coplay.core.config import to_json
from coplay.core.errors import UserError
from coplay.core.files import replacing, write_json
from coplay.core.manifest import whole_folder
from coplay.core.progress import Told, untold
from coplay.core.version import VERSION
from coplay.matches.dataset import Dataset, refuse_if_taken
from coplay.rl.optimisers import learning_rate, make_transform, take_step
from coplay.training import checkpoints
from coplay.training.pretrained import FitConfig, Pretrained

Model = Any  # an equinox module
Say = Callable[[str], None]


class Task(NamedTuple):
    """What to fit.

    items: how many there are to draw minibatches from. per_batch: how many make one.
    pick: (items' numbers) -> a batch. loss: (model, batch, key, progress) -> loss and its terms.
    measure: model -> figures on what is held out.
    """

    items: int
    per_batch: int
    pick: Callable[[Int[Array, " item"]], Any]
    loss: Callable[..., tuple[Float[Array, ""], dict[str, Float[Array, ""]]]]
    measure: Callable[[Model], dict[str, Any]]


def fit(
    model: Model, task: Task, config: FitConfig, say: Say, told: Told = untold
) -> tuple[Model, list[dict[str, Any]]]:
    """The fitted model, and a row of figures after each epoch; the first is before learning."""
    per_epoch = max(task.items // task.per_batch, 1)
    total = per_epoch * config.epochs
    optimiser = config.optimiser
    size = min(task.per_batch, task.items)

    def epoch(
        carry: tuple[Any, Any], key: PRNGKeyArray, first: Int[Array, ""]
    ) -> tuple[tuple[Any, Any], dict[str, Float[Array, ""]]]:
        order_key, loss_key = jax.random.split(key)
        order = jax.random.permutation(order_key, task.items)[: per_epoch * size]
        numbers = jnp.arange(per_epoch)

        def step(carry: tuple[Any, Any], drawn: tuple) -> tuple[tuple[Any, Any], dict]:
            model, state = carry
            index, key, number = drawn
            progress = (first + number) / total
            grad, terms = jax.grad(task.loss, has_aux=True)(model, task.pick(index), key, progress)
            rate = learning_rate(optimiser, progress)
            return take_step(optimiser, model, grad, state, rate), terms

        drawn = (order.reshape(per_epoch, size), jax.random.split(loss_key, per_epoch), numbers)
        carry, terms = jax.lax.scan(step, carry, drawn)
        return carry, jax.tree.map(jnp.mean, terms)

    run = jax.jit(epoch)
    carry: tuple[Any, Any] = (model, make_transform(optimiser).init(model))
    rows: list[dict[str, Any]] = [{"epoch": 0, "seconds": 0.0} | task.measure(model)]
    key, spent = jax.random.key(config.seed), 0.0
    told("epochs", 0, config.epochs)
    for number in range(config.epochs):
        begun = time.perf_counter()
        carry, terms = run(carry, jax.random.fold_in(key, number), jnp.int32(number * per_epoch))
        learned = {name: float(value) for name, value in terms.items()}
        spent += time.perf_counter() - begun
        if not all(np.isfinite(value) for value in learned.values()):
            raise UserError(
                f"epoch {number + 1}: the loss is no number any more; a smaller "
                "optimiser.learning_rate or optimiser.max_grad_norm usually helps"
            )
        measured = task.measure(carry[0])
        rows.append({"epoch": number + 1, "seconds": round(spent, 2)} | learned | measured)
        shown = {name: value for name, value in measured.items() if isinstance(value, float)}
        words = ", ".join(f"{name} {value:.4g}" for name, value in shown.items())
        say(f"epoch {number + 1} of {config.epochs}: {words}")
        told("epochs", number + 1, config.epochs)
    return carry[0], rows


# --- folders -----------------------------------------------------------------------------------


class DataSplit(NamedTuple):
    """What a model is trained on. data: the folder of the dataset. train, held: its parts."""

    data: Path
    dataset: Dataset
    train: Dataset
    held: Dataset

    @classmethod
    def of(cls, data: Path, dataset: Dataset, options: FitConfig) -> "DataSplit":
        return cls(data, dataset, *dataset.split(options.held_out))


def write_pretrained(
    out: Path,
    part: str,
    source: DataSplit,
    config: Any,
    options: FitConfig,
    model: Any,
    rows: list[dict[str, Any]],
    figures: dict[str, Any],
) -> dict[str, Any]:
    """Write the folder, whole or not at all; the summary. rows: the record of training."""
    data, dataset, train, held = source
    game = dataset.game_name, dataset.game_config
    about = Pretrained(part, str(data), *game, dataset.kinds, config, options)
    summary = {
        "part": part,
        "samples": train.samples,
        "held_out_samples": held.samples,
        "seconds": rows[-1]["seconds"],
        **figures,
    }
    refuse_if_taken(out)
    with whole_folder(out) as unfinished:
        described = {"coplay": VERSION, "versions": checkpoints.versions()} | to_json(about)
        write_json(unfinished / "config.json", described)
        with replacing(unfinished / "metrics.jsonl") as path:
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        checkpoints.save(unfinished / "model.npz", model, {"part": part})
        write_json(unfinished / "summary.json", summary)
    return summary
