"""Layers that read indices give what layers that read all numbers give, and learn the same."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.games.registry import make_game
from coplay.games.stag_hunt import StagHunt, StagHuntConfig
from coplay.nn import sparse_views
from coplay.nn.config import NetworkConfig
from coplay.nn.networks import (
    SparseObservation,
    as_read,
    flatten,
    make_network,
    read,
    view_shape,
)
from coplay.nn.sparse_views import SparseView, sparse_product

PLACES, NUMBERS, SAMPLES = 11, 2, 9


def example(sets: int, indices: int) -> tuple[Any, SparseView, Any]:
    """Weights, sparse inputs, and the same inputs in full; some indices are absent."""
    rng = np.random.default_rng(indices)
    drawn = np.argsort(rng.random((sets, SAMPLES, PLACES)), axis=-1)[..., :indices]
    absent = rng.random(drawn.shape) < 0.2
    full = np.zeros((sets, SAMPLES, PLACES + NUMBERS), np.float32)
    for where in np.argwhere(~absent):
        full[where[0], where[1], drawn[tuple(where)]] = 1.0
    full[..., PLACES:] = rng.normal(size=(sets, SAMPLES, NUMBERS))
    weight = rng.normal(size=(sets, 5, PLACES + NUMBERS)).astype(np.float32)
    # A game names what is absent by the number behind its last one, which is beyond the places.
    view = SparseView(np.where(absent, PLACES + 1, drawn).astype(np.int32), full[..., PLACES:])
    return weight, view, full


@pytest.mark.parametrize("unrolled", [64, 2])
@pytest.mark.parametrize("sets", [1, 3])
def test_products_and_gradients_are_those_of_the_full_view(
    sets: int, unrolled: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse_views, "UNROLLED", unrolled)
    weight, view, full = example(sets, 4)

    def sparse(weight: Any, view: Any) -> Any:
        return jax.vmap(sparse_product)(weight, view)

    def whole(weight: Any, full: Any) -> Any:
        return jnp.einsum("soi,sni->sno", weight, full)

    np.testing.assert_allclose(sparse(weight, view), whole(weight, full), rtol=1e-5, atol=1e-5)
    towards = np.random.default_rng(0).normal(size=(sets, SAMPLES, 5)).astype(np.float32)

    def score(function: Any, weight: Any, rest: Any) -> Any:
        x = (
            view._replace(rest=rest)
            if function is sparse
            else jnp.concatenate([full[..., :PLACES], rest], axis=-1)
        )
        return jnp.sum(jnp.tanh(function(weight, x)) * towards)

    for part in (0, 1):
        found = jax.grad(lambda *x: score(sparse, *x), part)(weight, view.rest)
        wanted = jax.grad(lambda *x: score(whole, *x), part)(weight, view.rest)
        assert np.abs(wanted).max() > 0.1
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_other_processors_multiply_and_get_the_same() -> None:
    weight, view, _ = example(1, 4)
    rows = sparse_views.rows_of(jnp.asarray(weight[0, :, :PLACES]))
    indices = jnp.clip(jnp.asarray(view.indices[0]), 0, PLACES)
    np.testing.assert_allclose(
        sparse_views._multiplied(rows, indices), sparse_views.summed(rows, indices), atol=1e-6
    )
    gradient = jax.random.normal(jax.random.key(0), (SAMPLES, 5))
    by_product, by_sums = (
        back(jnp.zeros_like(rows), indices, gradient)
        for back in (sparse_views._multiplied_back, sparse_views._scattered)
    )
    np.testing.assert_allclose(by_product, by_sums, atol=1e-6)


DEVICES = """
import re
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as Spec
from coplay.nn.sparse_views import SparseView, sparse_product

weight, rest = (jax.random.normal(jax.random.key(0), size) for size in ((2, 5, 13), (2, 8, 3, 2)))
indices = jax.random.randint(jax.random.key(1), (2, 8, 3, 6), 0, 12)

def loss(weight, indices, rest):
    return jnp.sum(jnp.tanh(jax.vmap(sparse_product)(weight, SparseView(indices, rest))))

gradient = jax.jit(jax.grad(loss))
alone = gradient(weight, indices, rest)
mesh = Mesh(np.array(jax.devices()), ("copy",))
whole, shared = (NamedSharding(mesh, Spec(*axes)) for axes in ((), (None, "copy")))
given = jax.device_put((weight, indices, rest), (whole, shared, shared))
with jax.set_mesh(mesh):
    program = gradient.lower(*given).compile()
assert len(jax.devices()) == 4
np.testing.assert_allclose(program(*given), alone, atol=1e-5)
print(len(re.findall(r" all-reduce(?:-start)?\\(", program.as_text())))
"""


def test_devices_that_share_samples_sum_a_gradient_once() -> None:
    flags = "--xla_force_host_platform_device_count=4"
    variables = os.environ | {"XLA_FLAGS": flags, "PYTHONPATH": str(Path(__file__).parents[2])}
    given = [sys.executable, "-c", DEVICES]
    found = subprocess.run(given, check=True, capture_output=True, text=True, env=variables)
    assert found.stdout.split() == ["1"]


@pytest.mark.parametrize(("kind", "walls"), [("mlp", 0), ("centred", 0), ("mlp", 3)])
def test_networks_read_indices_where_a_game_gives_them(kind: Any, walls: int) -> None:
    game = make_game("stag-hunt", players=3, height=5, width=5, walls=walls, wall_maps=8)
    shape = view_shape(game)
    network = make_network(
        NetworkConfig(kind=kind, hidden=(8,)),
        type(shape)(shape.planes, shape.features + 2, shape.actions),
        3,
        jax.random.key(0),
        1.0,
    )
    state = jax.vmap(game.reset)(jax.random.split(jax.random.key(1), 16))
    seen, identity = jax.vmap(game.observe)(state), jnp.eye(3, 2)
    view = read(network, seen, identity)
    assert isinstance(view, SparseView)
    wanted = network(flatten(seen, identity))
    np.testing.assert_allclose(network(view), wanted, rtol=1e-5, atol=1e-5)
    kept = as_read(NetworkConfig(kind=kind, hidden=(8,)), shape, seen)
    assert isinstance(kept, SparseObservation) and kept.indices.dtype == jnp.int16
    again = read(network, kept, identity)
    np.testing.assert_array_equal(network(again), network(view))


def test_a_game_that_shows_something_else_is_read_in_full() -> None:
    """Indices of the game it is built on would hide what it changes."""

    class Dark(StagHunt):
        def observe(self, state: Any) -> Any:
            seen = super().observe(state)
            return seen._replace(planes=jnp.zeros_like(seen.planes))

    game = Dark(StagHuntConfig())  # type: ignore[call-arg]
    assert game.observe(game.reset(jax.random.key(0))).indices is None
    assert not game.has_sparse_view
    assert StagHunt(StagHuntConfig()).has_sparse_view


def test_full_views_are_read_where_there_are_no_indices_or_too_many() -> None:
    narrow = make_game("stag-hunt", players=2, view=1)
    shape = view_shape(narrow)
    network = make_network(NetworkConfig(hidden=(8,)), shape, 3, jax.random.key(0), 1.0)
    seen = narrow.observe(narrow.reset(jax.random.key(1)))
    assert seen.indices is None
    assert not isinstance(read(network, seen), SparseView)
    many = seen._replace(indices=jnp.zeros((2, flatten(seen).shape[-1] // 2), jnp.int32))
    assert not isinstance(read(network, many), SparseView)
    convolved = make_network(NetworkConfig(kind="cnn"), shape, 3, jax.random.key(0), 1.0)
    few = seen._replace(indices=jnp.zeros((2, 3), jnp.int32))
    assert isinstance(read(network, few), SparseView)
    assert not isinstance(read(convolved, few), SparseView)
