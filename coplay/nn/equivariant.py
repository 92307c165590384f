"""Networks that are the same in the mirror.

The rules of games on boards know no direction: turn or mirror a board, and what a player does turns
with it. A network built that way need not learn everything once for each direction, and cannot tell
players apart by where they happened to go.

A mirroring g is one of the eight that map a square to itself (four for a board that is not square).
Hidden layers have each of their channels once for every mirroring: h[g, c]. For a mirrored board
they are the same numbers in another order, so all layers are plain matrix products whose matrices
are made of fewer numbers:

    first   h[g, c]  = Σ_x (g W_c)[x] board[x]            W_c mirrored by g
    hidden  h'[g, d] = Σ_{k, c} W[d, g⁻¹ k, c] h[k, c]
    moves   o[m]     = mean over g of Σ_c V[g⁻¹ m, c] h[g, c]        other actions: V[a, c]
"""

import math
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from coplay.core.grid import MOVES

Board = tuple[int, int, int]  # height, width, planes


class Mirrorings(NamedTuple):
    """Tables of the mirrorings of a board.

    between: [g, k] the mirroring g⁻¹ k. turned: [g, move] what a move becomes. back: [move, g] the
    move that g turns into `move`.
    """

    between: np.ndarray
    turned: np.ndarray
    back: np.ndarray


@cache
def mirrorings(square: bool) -> Mirrorings:
    """Mirroring g turns rows around if g & 1, columns if g & 2, then swaps the two if g & 4."""
    count = 8 if square else 4
    matrices = []
    for g in range(count):
        matrix = np.diag([-1 if g & 1 else 1, -1 if g & 2 else 1])
        matrices.append(matrix[::-1] if g & 4 else matrix)
    number = {matrix.tobytes(): g for g, matrix in enumerate(map(np.ascontiguousarray, matrices))}
    move = {step: index for index, step in enumerate(MOVES)}
    turned = np.array([[move[tuple((m @ step).tolist())] for step in MOVES] for m in matrices])
    between = np.array(
        [[number[np.ascontiguousarray(m.T @ k).tobytes()] for k in matrices] for m in matrices]
    )
    return Mirrorings(between, turned, np.argsort(turned, axis=1).T)


def mirror(
    planes: Float[Array, "*batch height width plane"], g: int
) -> Float[Array, "*batch rows columns plane"]:
    """Boards mirrored by g."""
    if g & 1:
        planes = jnp.flip(planes, -3)
    if g & 2:
        planes = jnp.flip(planes, -2)
    return jnp.swapaxes(planes, -3, -2) if g & 4 else planes


class Tied(eqx.Module):
    """A hidden layer, see the module docstring. weight: [d, k · c] of the mirroring that changes
    nothing. bias: [d]."""

    weight: Float[Array, "outputs inputs"]
    bias: Float[Array, " outputs"]
    square: bool = eqx.field(static=True)

    def expanded(self) -> tuple[Float[Array, "inputs more"], Float[Array, " more"]]:
        """The plain matrix and its bias."""
        between = mirrorings(self.square).between
        outputs, count = self.weight.shape[0], len(between)
        each = self.weight.reshape(outputs, count, -1)[:, between]  # [d, g, k, c]
        full = jnp.moveaxis(each, 1, 0).reshape(count * outputs, -1)
        return full.T, jnp.tile(self.bias, count)


class ExpandedPolicy(NamedTuple):
    """A `EquivariantPolicy` as plain matrices, [input, output]. code, gate: for one mirroring,
    since
    they are the same for all. layers: with their biases."""

    board: Float[Array, "cells width"]
    rest: Float[Array, "numbers width"]
    bias: Float[Array, " width"]
    code: Float[Array, "code channel"]
    gate: Float[Array, "code channel"]
    layers: tuple[tuple[Float[Array, "inputs outputs"], Float[Array, " outputs"]], ...]
    head: Float[Array, "inputs action"]
    head_bias: Float[Array, " action"]

    def view(self, seen: Float[Array, "*batch inputs"]) -> Float[Array, "*batch width"]:
        """What is made of the views, flattened boards first; numbers beyond are not looked at."""
        size, more = self.board.shape[0], self.rest.shape[0]
        rest = seen[..., size : size + more] @ self.rest
        return seen[..., :size] @ self.board + rest + self.bias

    def given(
        self, viewed: Float[Array, "*#batch width"], z: Float[Array, "*#batch code"]
    ) -> Float[Array, "*batch action"]:
        """Logits. `viewed`: what `view` made of the views."""
        count = self.board.shape[1] // self.gate.shape[1]
        gate, shift = (jnp.tile(z @ matrix, count) for matrix in (self.gate, self.code))
        x = jax.nn.relu(viewed * (1 + gate) + shift)
        for matrix, bias in self.layers:
            x = jax.nn.relu(x @ matrix + bias)
        return x @ self.head + self.head_bias


class EquivariantPolicy(eqx.Module):
    """Logits of actions, of which the first four are moves, from a board, other numbers and a code
    that have no direction. The part of the view is computed once for many codes. A code scales and
    shifts the channels of the first layer, so that it can say which of them count: with shifts
    alone, prototypes took many times longer to tell apart what players are after.

    hidden: widths of the hidden layers, rounded up to whole channels.
    """

    board: Float[Array, "channel cells"]
    rest: Float[Array, "channel numbers"]
    code: Float[Array, "channel code"]
    gate: Float[Array, "channel code"]
    bias: Float[Array, " channel"]
    layers: tuple[Tied, ...]
    head: Float[Array, "action channel"]
    head_bias: Float[Array, " still"]
    shape: Board = eqx.field(static=True)

    def __init__(
        self,
        shape: Board,
        numbers: int,
        code: int,
        hidden: tuple[int, ...],
        actions: int,
        key: PRNGKeyArray,
    ):
        self.shape = shape
        count = len(mirrorings(self.square).between)
        channels = [-(-width // count) for width in hidden]
        keys = iter(jax.random.split(key, 5 + len(hidden)))

        def matrix(outputs: int, inputs: int) -> Float[Array, "outputs inputs"]:
            some = jax.random.normal(next(keys), (outputs * inputs,))
            return some.reshape(outputs, inputs) / math.sqrt(max(inputs, 1))

        self.board = matrix(channels[0], math.prod(shape))
        self.rest = matrix(channels[0], numbers)
        self.code = matrix(channels[0], code)
        self.gate = matrix(channels[0], code)
        self.bias = jnp.zeros(channels[0])
        self.layers = tuple(
            Tied(matrix(d, count * c), jnp.zeros(d), self.square) for c, d in pairwise(channels)
        )
        self.head = matrix(actions, channels[-1])
        self.head_bias = jnp.zeros(actions - len(MOVES))

    @property
    def square(self) -> bool:
        return self.shape[0] == self.shape[1]

    @property
    def actions(self) -> int:
        return self.head.shape[-2]

    def expanded(self) -> ExpandedPolicy:
        """The same network as plain matrices."""
        tables = mirrorings(self.square)
        count, actions = len(tables.between), self.head.shape[0]
        boards = self.board.reshape(-1, *self.shape)
        full = [mirror(boards, g).reshape(boards.shape[0], -1) for g in range(count)]
        moves, still = self.head[tables.back], self.head[len(MOVES) :, None]
        still = jnp.broadcast_to(still, (actions - len(MOVES), *moves.shape[1:]))
        head = jnp.concatenate([moves, still]).reshape(actions, -1) / count
        return ExpandedPolicy(
            board=jnp.concatenate(full).T,
            rest=jnp.tile(self.rest.T, count),
            bias=jnp.tile(self.bias, count),
            code=self.code.T,
            gate=self.gate.T,
            layers=tuple(layer.expanded() for layer in self.layers),
            head=head.T,
            head_bias=jnp.concatenate([jnp.zeros(len(MOVES)), self.head_bias]),
        )

    def view(self, seen: Float[Array, "*batch inputs"]) -> Float[Array, "*batch width"]:
        """See `ExpandedPolicy.view`."""
        return self.expanded().view(seen)

    def given(
        self, viewed: Float[Array, "*#batch width"], z: Float[Array, "*#batch code"]
    ) -> Float[Array, "*batch action"]:
        """See `ExpandedPolicy.given`."""
        return self.expanded().given(viewed, z)

    def __call__(
        self, seen: Float[Array, "*#batch inputs"], z: Float[Array, "*#batch code"]
    ) -> Float[Array, "*batch action"]:
        plain = self.expanded()
        return plain.given(plain.view(seen), z)
