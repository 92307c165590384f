"""Partners that act as people did: behaviour cloning of recorded games.

Each dataset becomes one partner. A network learns which action a person chose, from the views that
the person had. What it learns of few games is coarse, so training stops where games that it was not
given are predicted best.
"""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from coplay.core.config import to_json
from coplay.core.errors import UserError, unknown
from coplay.evaluation.partners.config import Order
from coplay.matches.dataset import Dataset, Samples, load_dataset, samples_of
from coplay.nn import categorical
from coplay.nn.networks import flatten, make_network, view_shape
from coplay.training.partner_packs import NETWORK, FamilyData, stack

LEARNING_RATE = 1e-3
BATCH = 64
"""Samples in a gradient step."""
HELD_OUT = 0.2
"""The share of a person's episodes by which the best epoch is found."""


class Cloned(NamedTuple):
    """A network that acts as somebody did. loss: of predicting held-out actions, in nats; chance:
    of choosing among legal actions at random. epochs: until the best of them."""

    actor: Any
    loss: float
    chance: float
    epochs: int


def person_data(order: Order) -> list[tuple[Path, Dataset]]:
    """The datasets of the order, of its game and with the people that it names."""
    config = order.config
    if not config.people:
        raise UserError(
            "the family 'people' needs recorded games: give --people FOLDER (coplay serve RUN "
            "--seat 1 records them), or leave it out of --families"
        )
    found = []
    for path in map(Path, config.people):
        dataset = load_dataset(path)
        if (dataset.game_name, to_json(dataset.game_config)) != (
            order.game_name,
            to_json(order.game),
        ):
            raise UserError(
                f"{path} is of {dataset.game_name} with {to_json(dataset.game_config)}, the pack "
                f"of {order.game_name} with {to_json(order.game)}"
            )
        if config.people_kind not in dataset.kinds:
            raise unknown(f"player in {path}", config.people_kind, dataset.kinds)
        if len(dataset.episodes.length) < 2:
            raise UserError(f"{path} holds one game: record two at least")
        found.append((path, dataset))
    return found


def make_people(order: Order) -> FamilyData:
    """A partner for each dataset of people."""
    config = order.config
    actors, hows = [], []
    for number, (path, dataset) in enumerate(person_data(order)):
        order.watcher.say(f"partner {number + 1} of {len(config.people)} of the family 'people'")
        key = jax.random.fold_in(jax.random.key(config.seed), 5000 + number)
        learned, held = (
            _rows_of(samples_of(part), dataset.kinds.index(config.people_kind))
            for part in dataset.split(HELD_OUT)
        )
        for rows in (learned, held):
            if not len(rows.kind):
                raise UserError(
                    f"{path}: '{config.people_kind}' plays in too few games: record more"
                )
        made = clone(key, order.made, learned, held, config.people_epochs)
        actors.append(made.actor)
        hows.append(
            {
                "person": path.name,
                "samples": len(learned.kind),
                "epochs": made.epochs,
                "held_out_loss": round(made.loss, 4),
                "chance_loss": round(made.chance, 4),
            }
        )
    return FamilyData(stack(actors), hows)


def _rows_of(samples: Samples, kind: int) -> Samples:
    mine = samples.kind == kind
    return jax.tree.map(lambda x: x[mine], samples)


def clone(key: Any, game: Any, learned: Samples, held: Samples, epochs: int) -> Cloned:
    """Learn to choose as in the samples `learned`; the best epoch is that of the lowest loss on
    `held`."""
    begin, order_key = jax.random.split(key)
    actor = make_network(NETWORK, view_shape(game), game.actions, begin, 0.01)
    optimiser = optax.adam(LEARNING_RATE)
    size = min(BATCH, len(learned.kind))
    steps = len(learned.kind) // size
    inputs, targets = _inputs(learned), _inputs(held)

    @jax.jit
    def epoch(actor: Any, state: Any, key: Any) -> tuple[Any, Any, Float[Array, ""]]:
        rows = jax.random.permutation(key, len(learned.kind))[: steps * size].reshape(steps, size)

        def step(carry: tuple, row: Any) -> tuple[tuple, None]:
            actor, state = carry
            slope = jax.grad(_loss)(actor, *jax.tree.map(lambda x: x[row], inputs))
            change, state = optimiser.update(slope, state)
            return (optax.apply_updates(actor, change), state), None

        (actor, state), _ = jax.lax.scan(step, (actor, state), rows)
        return actor, state, _loss(actor, *targets)

    state = optimiser.init(actor)
    legal = np.asarray(held.legal).sum(-1)
    best = Cloned(actor, float(_loss(actor, *targets)), float(np.log(legal).mean()), 0)
    for number in range(epochs):
        actor, state, loss = epoch(actor, state, jax.random.fold_in(order_key, number))
        if float(loss) < best.loss:
            best = best._replace(actor=actor, loss=float(loss), epochs=number + 1)
    return best


def _inputs(samples: Samples) -> tuple[Any, Any, Any]:
    """Views as the network sees them, legal actions, and what was done."""
    view = jax.tree.map(jnp.asarray, samples.view)
    return flatten(view, jnp.zeros(0)), view.legal, jnp.asarray(samples.action[:, 0], jnp.int32)


def _loss(actor: Any, seen: Any, legal: Any, action: Any) -> Float[Array, ""]:
    return -jnp.mean(categorical.take(categorical.log_policy(actor(seen), legal), action))
