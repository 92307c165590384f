"""Networks for sets of entities against NumPy: order, absence, gradients, and every network."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.core.entities import EntityList, in_a_row
from coplay.core.errors import UserError
from coplay.nn.config import NetworkConfig
from coplay.nn.entities import EntityEncoder
from coplay.nn.layer_norm import LayerNormNetwork
from coplay.nn.networks import (
    Network,
    ViewShape,
    make_network,
    read,
    reads_indices,
    view_shape,
)
from coplay.nn.recurrent import GRUNetwork

FOODS = EntityList("foods", in_a_row(1, 3, 2), there=1)
UNITS = EntityList("units", ((7, 9), (8, 10)), there=0, numbered=True)
SHAPE = ViewShape((2, 1, 1), 13, 4, entities=(FOODS, UNITS))
"""Two cells, then features: 0, 11 and 12 are in no list."""
BOARD, WIDTH = 2, 5
RNG = np.random.default_rng(0)


def filled(make: Any) -> Any:
    """A module with random numbers in all places."""
    shapes = eqx.filter_eval_shape(make, jax.random.key(0))
    return jax.tree.map(lambda x: RNG.normal(size=x.shape).astype(np.float32) / 2, shapes)


def network_of(kind: str, shape: ViewShape = SHAPE) -> Any:
    """An actor of each kind of network, as a function of inputs, and the module itself."""
    options: Any = {"hidden": (6,), "channels": (), "activation": "tanh", "set_width": WIDTH}
    if kind == "plain":
        net = filled(lambda key: Network(shape, 4, key=key, head_scale=1.0, **options))
        return net, jax.jit(lambda net, x: net(x))
    if kind == "recurrent":
        net = filled(lambda key: GRUNetwork(shape, 4, 3, key=key, head_scale=1.0, **options))
        return net, jax.jit(lambda net, x: net.step(x, jnp.ones((*x.shape[:-1], 3)))[0])
    net = filled(lambda key: LayerNormNetwork(shape, 4, key=key, **options))
    return net, jax.jit(lambda net, x: net.step(x, jnp.ones((*x.shape[:-1], 0)))[0])


def views(count: int) -> np.ndarray:
    """Random inputs in which everything is there."""
    return RNG.normal(size=(count, BOARD + 13)).astype(np.float32)


def by_hand(encoder: EntityEncoder, x: np.ndarray) -> np.ndarray:
    """One input, entity by entity."""
    features = x[BOARD:]
    around = features[[0, 11, 12]]
    parts = [x[:BOARD], around]
    for one in encoder.lists:
        entities, units = one.entities, []
        for number, places in enumerate(entities.places):
            numbers = list(features[list(places)])
            assert entities.there is not None and one.around is not None
            if numbers[entities.there] == 0:
                continue
            if entities.numbered:
                numbers += [float(number == k) for k in range(len(entities.places))]
            first = np.asarray(one.entity.weight) @ numbers + np.asarray(one.entity.bias)
            first += np.asarray(one.around.weight) @ around + np.asarray(one.around.bias)
            second = np.asarray(one.second.weight) @ np.tanh(first) + np.asarray(one.second.bias)
            units.append(np.tanh(second))
        if units:
            parts += [np.sum(units, axis=0) / len(entities.places), np.max(units, axis=0)]
        else:
            parts += [np.zeros(WIDTH), np.zeros(WIDTH)]
    return np.concatenate(parts)


def test_like_numpy_entity_by_entity() -> None:
    encoder = filled(
        lambda key: EntityEncoder(SHAPE.entities, SHAPE.planes, 13, WIDTH, "tanh", key)
    )
    x = views(4)
    x[1, [BOARD + 2, BOARD + 7]] = 0  # a food and a unit are not there
    x[2, [BOARD + 2, BOARD + 4, BOARD + 6]] = 0  # no food
    found = np.asarray(jax.jit(EntityEncoder.__call__)(encoder, x.reshape(2, 2, -1)))
    assert found.shape == (2, 2, encoder.outputs)
    for one, expected in zip(found.reshape(4, -1), x, strict=True):
        np.testing.assert_allclose(one, by_hand(encoder, expected), atol=1e-5)


KINDS = ("plain", "recurrent", "layer norm")


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_does_not_matter_unless_it_says_something(kind: str) -> None:
    network, outputs = network_of(kind)
    x = views(3)
    foods, units = x.copy(), x.copy()
    a, b, c = (BOARD + np.array(places) for places in FOODS.places)
    foods[:, np.concatenate([a, b, c])] = x[:, np.concatenate([c, a, b])]
    first, second = (BOARD + np.array(places) for places in UNITS.places)
    units[:, np.concatenate([first, second])] = x[:, np.concatenate([second, first])]
    plain, turned, exchanged = (np.asarray(outputs(network, y)) for y in (x, foods, units))
    np.testing.assert_allclose(turned, plain, atol=1e-5)
    assert (np.abs(exchanged - plain).max(axis=-1) > 1e-3).all()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_there_does_not_matter(kind: str) -> None:
    network, outputs = network_of(kind)
    x = views(3)
    x[:, [BOARD + 4, BOARD + 8]] = 0  # the second food, the second unit
    other = x.copy()
    other[:, [BOARD + 3, BOARD + 10]] += 7.0
    np.testing.assert_array_equal(outputs(network, x), outputs(network, other))
    other[:, BOARD + 1] += 7.0  # of the first food, which is there
    assert (np.abs(outputs(network, x) - outputs(network, other)).max(axis=-1) > 1e-3).all()


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_reach_all_parts_also_where_nothing_is_there(kind: str) -> None:
    network, outputs = network_of(kind)
    x = views(5)

    def loss(network: Any, x: Any) -> Any:
        return jnp.sum(jnp.square(outputs(network, x)))

    gradients = jax.tree.leaves(jax.grad(loss)(network, x))
    assert all(np.abs(one).max() > 1e-6 for one in gradients)
    x[:, [BOARD + place for place in (2, 4, 6, 7, 8)]] = 0
    gradients = jax.tree.leaves(jax.grad(loss)(network, x))
    assert all(np.isfinite(one).all() for one in gradients)


def test_numbers_behind_the_view_stay_where_they_are_read() -> None:
    """An identity or a goal follows the features; lists keep their places."""
    network, outputs = network_of("plain", SHAPE.with_more(2))
    x = np.concatenate([views(3), RNG.normal(size=(3, 2))], axis=1).astype(np.float32)
    a, b, c = (BOARD + np.array(places) for places in FOODS.places)
    turned, told = x.copy(), x.copy()
    turned[:, np.concatenate([a, b, c])] = x[:, np.concatenate([c, a, b])]
    told[:, -1] += 1.0
    np.testing.assert_allclose(outputs(network, turned), outputs(network, x), atol=1e-5)
    assert (np.abs(outputs(network, told) - outputs(network, x)).max(axis=-1) > 1e-3).all()


def test_other_networks_begin_as_they_did() -> None:
    """Lists that nobody reads as sets change nothing."""
    with_lists, without = (
        make_network(NetworkConfig(hidden=(6,)), shape, 4, jax.random.key(3), 1.0)
        for shape in (SHAPE, ViewShape(SHAPE.planes, SHAPE.features, SHAPE.actions))
    )
    assert with_lists.sets is None and eqx.tree_equal(with_lists, without)


def test_lists_are_not_read_by_indices() -> None:
    """Where a view is 1 says nothing about the numbers of entities."""
    shape = ViewShape((9, 9, 3), 13, 4, indices=5, entities=(FOODS,))
    assert reads_indices(NetworkConfig(), shape)
    assert not reads_indices(NetworkConfig(kind="entities"), shape)


def test_a_game_declares_its_lists_and_networks_read_them() -> None:
    game = coplay.make_game("dispersion", players=3)
    shape = view_shape(game)
    assert shape.entities == game.entities
    config = NetworkConfig(kind="entities", hidden=(6,), entity_width=4)
    network = make_network(config, shape, 5, jax.random.key(0), 1.0)
    assert network.sets is not None and network.sets.outputs == 3 + 2 * 4
    seen = game.observe(game.reset(jax.random.key(0)))
    assert network(read(network, seen)).shape == (3, 5)


@pytest.mark.parametrize(
    ("planes", "option"), [((3, 3, 1), "--network.kind cnn"), ((0, 0, 0), "--network.kind mlp")]
)
def test_views_without_lists_are_refused(planes: Any, option: str) -> None:
    with pytest.raises(UserError, match=option):
        make_network(
            NetworkConfig(kind="entities"), ViewShape(planes, 4, 3), 3, jax.random.key(0), 1.0
        )
