"""Networks for sets of entities: views whose lists become numbers that do not hang on their order.

Each entity of a list goes through the same two layers, together with what is known beside the
lists. What these make of all that are there is added up, and its greatest values are taken
(Deep Sets, Zaheer et al., 2017; PointNet, Qi et al., 2017). An entity that is not there changes
nothing, whatever its numbers are.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from coplay.core.entities import EntityList
from coplay.nn.layers import Activation, Linear, activation_function


class ListEncoder(eqx.Module):
    """From the entities of one list to 2 * width numbers.

    entity: layer of an entity's numbers (and of its place in the list, one-hot, if the list is
    numbered). around: layer of all that is in no list, but planes; None if there is nothing.
    """

    entity: Linear
    around: Linear | None
    second: Linear
    entities: EntityList = eqx.field(static=True)
    activation: Activation = eqx.field(static=True)

    def __init__(
        self,
        entities: EntityList,
        around: int,
        width: int,
        activation: Activation,
        key: PRNGKeyArray,
    ):
        """around: how many numbers are in no list."""
        entity_key, around_key, second_key = jax.random.split(key, 3)
        count, size = len(entities.places), len(entities.places[0])
        self.entity = Linear(size + count * entities.numbered, width, entity_key)
        self.around = Linear(around, width, around_key) if around else None
        self.second = Linear(width, width, second_key)
        self.entities = entities
        self.activation = activation

    def __call__(
        self, features: Float[Array, "*batch feature"], around: Float[Array, "*batch number"]
    ) -> Float[Array, "*batch pooled"]:
        """The sum over those that are there, divided by the length of the list, then the greatest
        values; zeros if none is there."""
        act, entities = activation_function(self.activation), self.entities
        listed = features[..., np.array(entities.places)]  # [..., entity, number]
        there = jnp.ones(listed.shape[:-1], bool)
        if entities.there is not None:
            there = listed[..., entities.there] != 0
        if entities.numbered:
            number = jnp.broadcast_to(jnp.eye(there.shape[-1]), (*there.shape, there.shape[-1]))
            listed = jnp.concatenate([listed, number], axis=-1)
        units = self.entity(listed)
        if self.around is not None:
            units = units + self.around(around)[..., None, :]
        units = act(self.second(act(units)))
        there = there[..., None]
        mean = jnp.mean(jnp.where(there, units, 0.0), axis=-2)
        most = jnp.max(jnp.where(there, units, -jnp.inf), axis=-2)
        most = jnp.where(jnp.any(there, axis=-2), most, 0.0)
        return jnp.concatenate([mean, most], axis=-1)


class EntityEncoder(eqx.Module):
    """Inputs of a network in which what was made of each list, at the end, replaces the lists.

    lists: one encoder for each. board: the shape of the planes, which stand before the features.
    features: how many numbers follow the planes: those of the view, then what else there is (an
    identity, a goal).
    """

    lists: tuple[ListEncoder, ...]
    board: tuple[int, int, int] = eqx.field(static=True)
    features: int = eqx.field(static=True)

    def __init__(
        self,
        entities: tuple[EntityList, ...],
        board: tuple[int, int, int],
        features: int,
        width: int,
        activation: Activation,
        key: PRNGKeyArray,
    ):
        """width: units of each layer."""
        around = features - sum(len(places) for one in entities for places in one.places)
        keys = jax.random.split(key, len(entities))
        self.lists = tuple(
            ListEncoder(one, around, width, activation, key)
            for one, key in zip(entities, keys, strict=True)
        )
        self.board = board
        self.features = features

    @property
    def outputs(self) -> int:
        """How many numbers come out."""
        pooled = sum(2 * one.second.bias.shape[-1] for one in self.lists)
        return math.prod(self.board) + len(self._around) + pooled

    @property
    def _around(self) -> np.ndarray:
        """The features that are in no list."""
        listed = [np.array(one.entities.places).reshape(-1) for one in self.lists]
        return np.setdiff1d(np.arange(self.features), np.concatenate(listed))

    def __call__(self, x: Float[Array, "*batch inputs"]) -> Float[Array, "*batch outputs"]:
        """Planes, flattened, and features."""
        begin = math.prod(self.board)
        features = x[..., begin:]
        around = features[..., self._around]
        pooled = [one(features, around) for one in self.lists]
        return jnp.concatenate([x[..., :begin], around, *pooled], axis=-1)
