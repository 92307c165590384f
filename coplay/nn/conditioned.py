"""What models with codes share: boards seen from the own cell, small networks, and networks that
are told a code."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from coplay.nn.ego_centred import seen_from
from coplay.nn.layers import Linear
from coplay.nn.networks import Network, ViewShape


def centred_shape(planes: tuple[int, int, int]) -> tuple[int, int, int]:
    """The shape of what `centred` makes of planes of this shape."""
    height, width, number = planes
    return 2 * height - 1, 2 * width - 1, number + 1


def centred(
    planes: Float[Array, "*batch height width plane"],
) -> Float[Array, "*batch rows columns planes"]:
    """Planes moved so that the ego player, whose plane is the first, is in the middle of a window
    that always holds the whole board; one more plane says which cells are on the board.

    What a player does depends on where things are from it: in the window that is the same input
    wherever on the board it stands. Zeros if the ego player is not on the board.
    """
    board = jnp.ones_like(planes[..., :1])
    return seen_from(planes[..., 0], jnp.concatenate([planes, board], axis=-1))


class Conditioned(eqx.Module):
    """A network of a view and a code, whose part of the view is computed once for many codes."""

    view: Linear
    code: Linear
    layers: tuple[Linear, ...]
    head: Linear

    def __init__(
        self, inputs: int, code: int, hidden: tuple[int, ...], outputs: int, key: PRNGKeyArray
    ):
        keys = jax.random.split(key, len(hidden) + 2)
        self.view = Linear(inputs, hidden[0], keys[0])
        self.code = Linear(code, hidden[0], keys[1], 1.0)
        self.layers = tuple(
            Linear(a, b, k) for a, b, k in zip(hidden[:-1], hidden[1:], keys[2:-1], strict=True)
        )
        self.head = Linear(hidden[-1], outputs, keys[-1], 0.1)

    def given(
        self, seen: Float[Array, "*#batch width"], z: Float[Array, "*#batch code"]
    ) -> Float[Array, "*batch outputs"]:
        """`seen`: what `self.view` made of the view."""
        x = jax.nn.relu(seen + self.code(z))
        for layer in self.layers:
            x = jax.nn.relu(layer(x))
        return self.head(x)

    def __call__(
        self, view: Float[Array, "*#batch inputs"], z: Float[Array, "*#batch code"]
    ) -> Float[Array, "*batch outputs"]:
        return self.given(self.view(view), z)


class GatedPolicy(eqx.Module):
    """Logits of actions from a view of any kind and a code. The part of the view is computed once
    for many codes. As in `EquivariantPolicy`, a code scales and shifts the units of the first
    layer."""

    first: Linear
    code: Linear
    gate: Linear
    layers: tuple[Linear, ...]
    head: Linear

    def __init__(
        self, inputs: int, code: int, hidden: tuple[int, ...], actions: int, key: PRNGKeyArray
    ):
        keys = jax.random.split(key, len(hidden) + 3)
        self.first = Linear(inputs, hidden[0], keys[0])
        self.code = Linear(code, hidden[0], keys[1], 1.0)
        self.gate = Linear(code, hidden[0], keys[2], 1.0)
        self.layers = tuple(
            Linear(a, b, k) for a, b, k in zip(hidden[:-1], hidden[1:], keys[3:-1], strict=True)
        )
        self.head = Linear(hidden[-1], actions, keys[-1], 0.1)

    @property
    def actions(self) -> int:
        return self.head.weight.shape[-2]

    def view(self, seen: Float[Array, "*batch inputs"]) -> Float[Array, "*batch width"]:
        """What is made of the views; numbers beyond those it was made for are not looked at."""
        return self.first(seen[..., : self.first.weight.shape[-1]])

    def given(
        self, viewed: Float[Array, "*#batch width"], z: Float[Array, "*#batch code"]
    ) -> Float[Array, "*batch action"]:
        """Logits. `viewed`: what `view` made of the views."""
        x = jax.nn.relu(viewed * (1 + self.gate(z)) + self.code(z))
        for layer in self.layers:
            x = jax.nn.relu(layer(x))
        return self.head(x)

    def __call__(
        self, seen: Float[Array, "*#batch inputs"], z: Float[Array, "*#batch code"]
    ) -> Float[Array, "*batch action"]:
        return self.given(self.view(seen), z)


def encoder(
    planes: tuple[int, int, int], features: int, outputs: int, key: PRNGKeyArray, width: int
) -> Network:
    """A network with one hidden layer on planes of this shape and so many other numbers."""
    return Network(
        ViewShape(planes, features, actions=0),
        outputs,
        key=key,
        hidden=(width,),
        channels=(),
        activation="relu",
        head_scale=0.1,
    )
