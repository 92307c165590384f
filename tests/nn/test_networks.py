"""Networks against NumPy and against JAX's own convolution."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.core.game import Observation
from coplay.games.stag_hunt import StagHunt, StagHuntConfig
from coplay.nn.layers import Conv3x3, Linear
from coplay.nn.networks import Network, ViewShape, flatten, view_shape

SHAPE = ViewShape(planes=(3, 4, 2), features=5, actions=6)
INPUTS = 3 * 4 * 2 + 5


def slow_linear(linear: Linear, x: np.ndarray) -> np.ndarray:
    """Over the last axis, output by output."""
    weight, bias = np.asarray(linear.weight, np.float64), np.asarray(linear.bias, np.float64)
    return np.stack([(x * weight[o]).sum(-1) + bias[o] for o in range(len(bias))], axis=-1)


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def filled(make: Callable[[jax.Array], Any]) -> Any:
    """A module with random numbers in all places: fresh biases are zero, which would hide a missing
    one, and an orthogonal start takes long to compile."""
    shapes = eqx.filter_eval_shape(make, jax.random.key(0))
    leaves = jax.tree.leaves(shapes)
    values = [random(*leaf.shape, seed=index) / 2 for index, leaf in enumerate(leaves)]
    return jax.tree.unflatten(jax.tree.structure(shapes), values)


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_linear(batch: tuple[int, ...]) -> None:
    linear = filled(lambda key: Linear(4, 3, key))
    x = random(*batch, 4)
    assert linear.weight.shape == (3, 4)
    result = eqx.filter_jit(linear)(x)
    np.testing.assert_allclose(result, slow_linear(linear, x), atol=1e-5)


@pytest.mark.parametrize(("inputs", "outputs"), [(7, 3), (3, 7), (4, 1), (64, 64)])
def test_orthogonal_start(inputs: int, outputs: int) -> None:
    for scale in (1.0, 0.01, 2**0.5):
        extra = () if scale == 2**0.5 else (scale,)  # the root of two is the default
        linear = Linear(inputs, outputs, jax.random.key(2), *extra)
        weight = np.asarray(linear.weight, np.float64)
        assert weight.shape == (outputs, inputs)
        small = weight @ weight.T if outputs <= inputs else weight.T @ weight
        np.testing.assert_allclose(small, scale**2 * np.eye(len(small)), atol=1e-5 * scale)
        assert (np.asarray(linear.bias) == 0).all()


def library_convolution(conv: Conv3x3, x: np.ndarray) -> np.ndarray:
    """`x` [copy, height, width, input]."""
    inputs, outputs = x.shape[-1], conv.linear.bias.shape[-1]
    kernel = np.asarray(conv.linear.weight).T.reshape(3, 3, inputs, outputs)
    result = jax.lax.conv_general_dilated(
        jnp.asarray(x),
        jnp.asarray(kernel),
        (1, 1),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    return np.asarray(result + conv.linear.bias)


def slow_convolution(conv: Conv3x3, x: np.ndarray) -> np.ndarray:
    """One board [height, width, input], cell by cell."""
    height, width, inputs = x.shape
    weight = np.asarray(conv.linear.weight, np.float64).reshape(-1, 3, 3, inputs)
    result = np.tile(np.asarray(conv.linear.bias, np.float64), (height, width, 1))
    for row in range(height):
        for column in range(width):
            for down in range(3):
                for right in range(3):
                    r, c = row + down - 1, column + right - 1
                    if 0 <= r < height and 0 <= c < width:
                        result[row, column] += weight[:, down, right] @ x[r, c]
    return result


def make_conv(key: jax.Array) -> Conv3x3:
    return Conv3x3(2, 5, key)


@pytest.mark.parametrize("board", [(4, 6), (1, 3)])
def test_convolution(board: tuple[int, int]) -> None:
    conv = filled(make_conv)
    x = random(3, *board, 2, seed=1)
    result = np.asarray(jax.jit(conv.__call__)(x))
    np.testing.assert_allclose(result, library_convolution(conv, x), atol=1e-5)
    np.testing.assert_allclose(result[1], slow_convolution(conv, x[1]), atol=1e-5)
    np.testing.assert_allclose(jax.jit(conv.__call__)(x[1]), result[1], atol=1e-5)


def test_convolution_with_a_kernel_per_seat() -> None:
    convs = filled(lambda key: jax.vmap(make_conv)(jax.random.split(key, 3)))
    assert convs.linear.weight.shape == (3, 5, 18)
    x = random(3, 2, 4, 6, 2, seed=2)  # [seat, copy, height, width, plane]
    result = np.asarray(jax.jit(jax.vmap(Conv3x3.__call__))(convs, x))
    for seat in range(3):
        conv = jax.tree.map(lambda leaf, seat=seat: leaf[seat], convs)
        np.testing.assert_allclose(result[seat], library_convolution(conv, x[seat]), atol=1e-5)


def make_network(
    key: jax.Array, channels: tuple[int, ...], hidden: tuple[int, ...], activation: str = "tanh"
) -> Network:
    return Network(
        SHAPE,
        6,
        key=key,
        hidden=hidden,
        channels=channels,
        activation=activation,
        head_scale=0.01,
    )


def slow_network(network: Network, x: np.ndarray, activation: str) -> np.ndarray:
    """One ego view, layer by layer."""
    act = np.tanh if activation == "tanh" else lambda y: np.maximum(y, 0)
    if network.convolutions:
        board = x[:24].reshape(3, 4, 2)
        for convolution in network.convolutions:
            board = act(slow_convolution(convolution, board))
        x = np.concatenate([board.reshape(-1), x[24:]])
    for layer in network.layers:
        x = act(slow_linear(layer, x))
    return slow_linear(network.head, x)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize(("channels", "hidden"), [((), (8, 7)), ((3, 4), (8,)), ((), ())])
def test_network(channels: tuple[int, ...], hidden: tuple[int, ...], activation: str) -> None:
    network = filled(lambda key: make_network(key, channels, hidden, activation))
    x = random(2, 3, INPUTS, seed=3)
    result = np.asarray(eqx.filter_jit(network)(x))
    assert result.shape == (2, 3, 6)
    for at in np.ndindex(2, 3):
        np.testing.assert_allclose(result[at], slow_network(network, x[at], activation), atol=1e-4)


def test_fresh_layers_have_their_shapes_and_scales_and_differ() -> None:
    network = make_network(jax.random.key(6), (2, 2), (6, 6, 6))
    linears = [conv.linear for conv in network.convolutions] + list(network.layers)
    sizes = [linear.weight.shape for linear in linears]
    assert sizes == [(2, 18), (2, 18), (6, 3 * 4 * 2 + 5), (6, 6), (6, 6)]
    assert network.head.weight.shape == (6, 6)
    for linear in linears:
        weight = np.asarray(linear.weight, np.float64)
        np.testing.assert_allclose(weight @ weight.T, 2 * np.eye(len(weight)), atol=1e-5)
    head = np.asarray(network.head.weight, np.float64)
    np.testing.assert_allclose(head @ head.T, 1e-4 * np.eye(6), atol=1e-9)
    square = [np.asarray(linear.weight) for linear in (*network.layers[1:], network.head)]
    square[2] = square[2] * 100 * 2**0.5
    for one, two in [(0, 1), (0, 2), (1, 2)]:
        assert not np.allclose(square[one], square[two], atol=0.1)
    first, second = (np.asarray(linear.weight) for linear in linears[:2])
    assert not np.allclose(first, second, atol=0.1)


def make_views(*lead: int) -> Observation:
    rng = np.random.default_rng(9)
    return Observation(
        planes=jnp.asarray(rng.random((*lead, 3, 4, 2)) < 0.5),
        features=jnp.asarray(random(*lead, 5)),
        legal=jnp.ones((*lead, 6), bool),
    )


def test_flatten_is_planes_row_by_row_then_features_then_identity() -> None:
    views = make_views(4, 3)
    identity = random(3, 2, seed=5)  # [seat, id]
    flat = np.asarray(flatten(views, jnp.asarray(identity)))
    assert flat.shape == (4, 3, INPUTS + 2) and flat.dtype == np.float32
    planes, features = np.asarray(views.planes), np.asarray(views.features)
    for copy, seat in np.ndindex(4, 3):
        expected = [
            float(planes[copy, seat, row, column, plane])
            for row in range(3)
            for column in range(4)
            for plane in range(2)
        ]
        expected += [float(x) for x in features[copy, seat]]
        expected += [float(x) for x in identity[seat]]
        assert flat[copy, seat].tolist() == expected
    assert (np.asarray(flatten(views)) == flat[..., :INPUTS]).all()
    assert (np.asarray(flatten(views, jnp.zeros((3, 0)))) == flat[..., :INPUTS]).all()
    one_for_all = np.asarray(flatten(views, jnp.asarray(identity[1])))
    assert (one_for_all[..., INPUTS:] == identity[1]).all()


def test_flatten_of_a_game_without_a_board() -> None:
    views = Observation(jnp.zeros((2, 0, 0, 0)), jnp.ones((2, 3)), jnp.ones((2, 2), bool))
    assert (np.asarray(flatten(views)) == 1).all() and flatten(views).shape == (2, 3)


def test_view_shape() -> None:
    game = StagHunt(StagHuntConfig(height=3, width=5, players=2, hares=1))
    shape = view_shape(game)
    assert shape.hidden[0] == ((2,), "int16") and shape.hidden[-1] == ((15,), "bool")
    assert dataclasses.replace(shape, hidden=()) == ViewShape(
        (3, 5, 5), 2 * 7 + 1, 7, 2, 2, 2, personas=2, seat_planes=1, on_grid=True, indices=6
    )
    window = StagHunt(StagHuntConfig(height=3, width=5, players=2, hares=1, view=1))
    assert view_shape(window).planes == (3, 3, 5)
