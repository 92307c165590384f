"""Personas, trained on a dataset: codes of whole lives, and players that act by them."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from coplay.games.game import Game, Observation
from coplay.minds.goal_codes import refuse_unknown_features
from coplay.minds.networks import view_shape
from coplay.minds.personas import (
    Lives,
    PersonaConfig,
    PersonaModel,
    new_persona_model,
    persona_loss,
)
from coplay.training.dataset import Dataset, Samples, horizon_of, packed, samples_of
from coplay.training.pretrain import (
    FitConfig,
    Say,
    Source,
    Task,
    fit,
    load_weights,
    read_pretrained,
    write_pretrained,
)

LINES = 64  # looked at in one go


def fresh_personas(game: Game, config: PersonaConfig, seed: int) -> PersonaModel:
    refuse_unknown_features(game)
    return new_persona_model(config, view_shape(game), game.seats, jax.random.key(seed))


class Packed:
    """The first steps of all lives of a dataset, in lines."""

    def __init__(self, dataset: Dataset, steps: int):
        samples = samples_of(dataset)
        early = samples.time < steps
        self.samples: Samples = jax.tree.map(lambda x: jnp.asarray(x[early]), samples)
        self.slots = packed(samples.life[early], steps)

    def pick(self, lines: Int[Array, " line"]) -> Lives:
        """Some of the lines."""
        rows = jnp.asarray(self.slots)[lines]
        alive, index = rows >= 0, jnp.maximum(rows, 0)
        planes, features, legal, action, life = jax.tree.map(
            lambda x: x[index],
            (*self.samples.view, self.samples.action[:, 0], self.samples.life),
        )
        return Lives(
            Observation(planes, features, legal), action, jnp.where(alive, life, -1), alive
        )


def codes_of_lives(model: PersonaModel, lives: Packed) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of all lives, in order, and their codes [life, code]."""

    @jax.jit
    def codes(model: PersonaModel, lines: Int[Array, " line"]) -> Array:
        some = lives.pick(lines)
        return model.codes(model.see(some.observation), some).mean

    count = -(-len(lives.slots) // LINES)
    lines = np.minimum(np.arange(count * LINES), len(lives.slots) - 1).reshape(count, LINES)
    found = np.concatenate([np.asarray(codes(model, jnp.asarray(some))) for some in lines])
    flat = lives.slots.reshape(-1)
    place = np.flatnonzero(flat >= 0)
    number, first = np.unique(
        np.asarray(lives.samples.life)[flat[place]], return_index=True
    )  # any slot of a life has its code
    return number, found.reshape(-1, found.shape[-1])[place[first]]


def pretrain_personas(
    data: Path, dataset: Dataset, config: PersonaConfig, options: FitConfig, out: Path, say: Say
) -> dict[str, Any]:
    """Train, measure on held-out episodes, write the folder; the summary."""
    source = Source.of(data, dataset, options)
    length = min(config.steps, horizon_of(dataset.game))
    lives, test = (Packed(part, length) for part in (source.train, source.held))

    @jax.jit
    def held_out(model: PersonaModel) -> dict[str, Array]:
        some = jnp.arange(min(512, len(test.slots)))
        return persona_loss(model, test.pick(some), jax.random.key(0), 1.0)[1]

    def loss(
        model: PersonaModel, batch: Lives, key: PRNGKeyArray, progress: Float[Array, ""]
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        warm = jnp.minimum(progress / config.anneal, 1.0) if config.anneal else jnp.float32(1)
        return persona_loss(model, batch, key, warm)

    task = Task(
        items=len(lives.slots),
        per_batch=max(options.batch // length, 1),
        pick=lives.pick,
        loss=loss,
        measure=lambda model: {
            name.replace("persona", "held_out"): float(value)
            for name, value in held_out(model).items()
        },
    )
    model, record = fit(fresh_personas(dataset.game, config, options.seed), task, options, say)
    codes = codes_of_lives(model, lives)[1]
    bank = codes[np.random.default_rng(options.seed).integers(0, len(codes), config.lives)]
    model = eqx.tree_at(lambda model: model.bank, model, jnp.asarray(bank))
    figures = {name: x for name, x in record[-1].items() if name.startswith("held_out")}
    return write_pretrained(out, "personas", source, config, options, model, record, figures)


def load_personas(folder: Path) -> tuple[PersonaModel, Any]:
    """Pretrained personas, and what their folder says about them."""
    about = read_pretrained(folder, "personas", PersonaConfig)
    like = jax.eval_shape(lambda: fresh_personas(about.made_game, about.model, 0))
    return load_weights(folder, like), about
