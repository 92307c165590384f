"""Boards seen from the own cell: the other planes shifted so that the own player is in the middle.

How far away something is, and in which direction, is then an input of its own; in a plain view it
is a matter of two cells, and a network has to learn it for each pair of them. The own plane stays
as it is, so that the edges of the board are known. Planes are ego-first: the own player is on
plane 0.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

Board = tuple[int, int, int]  # height, width, planes


def centred_size(board: Board) -> int:
    """How many numbers a centred board has."""
    height, width, planes = board
    return height * width + (2 * height - 1) * (2 * width - 1) * (planes - 1)


def centre(x: Float[Array, "*batch input"], board: Board) -> Float[Array, "*batch centred"]:
    """Flattened views with their boards centred; what follows the board stays. Where the own player
    is not on the board, nothing else is seen."""
    height, width, planes = board
    size = height * width * planes
    seen = x[..., :size].reshape(*x.shape[:-1], height, width, planes)
    own, others = seen[..., 0], seen[..., 1:]
    parts = [part.reshape(*x.shape[:-1], -1) for part in (own, seen_from(own, others))]
    return jnp.concatenate([*parts, x[..., size:]], axis=-1)


def seen_from(
    own: Float[Array, "*batch height width"], planes: Float[Array, "*batch height width plane"]
) -> Float[Array, "*batch rows columns plane"]:
    """Planes in a window that always holds the whole board, with the cell where `own` is 1 in the
    middle; zeros where it is nowhere 1.

    One axis after the other, as small matrix products for each board: on CPU quicker than gathers,
    or than sums over all places where the player may be.
    """
    height, width = own.shape[-2:]
    down = jnp.einsum("...h,hik->...ik", jnp.max(own, axis=-1), _shifts(height))
    right = jnp.einsum("...w,wjl->...jl", jnp.max(own, axis=-2), _shifts(width))
    shifted = jnp.einsum("...ik,...klp->...ilp", down, planes)
    return jnp.einsum("...jl,...ilp->...ijp", right, shifted)


def centre_indices(indices: Int[Array, "*batch index"], board: Board) -> Int[Array, "*batch index"]:
    """Where centred views are 1, from where plain ones are (`Game.sparse_view`). The own player
    comes first; it is on the board."""
    height, width, planes = board
    size = height * width * planes
    table = jnp.asarray(_moved_indices(board))
    me = jnp.minimum(indices[..., :1], size - 1)
    # By a table: on CPU cheaper than dividing.
    place = me // planes * size + jnp.minimum(indices, size - 1)
    shifted = table.at[place].get(mode="promise_in_bounds")
    return jnp.where(indices < size, shifted, indices + centred_size(board) - size)


def _moved_indices(board: Board) -> np.ndarray:
    """[own cell * marks of the board + mark] where a mark of a plain board is on a centred one."""
    height, width, planes = board
    own = np.arange(height * width)[:, None]
    cell, plane = np.divmod(np.arange(height * width * planes), planes)
    down = cell // width - own // width + height - 1
    right = cell % width - own % width + width - 1
    shifted = height * width + (down * (2 * width - 1) + right) * (planes - 1) + plane - 1
    return np.where(plane == 0, cell, shifted).astype(np.int32).reshape(-1)


def _shifts(length: int) -> np.ndarray:
    """[own, shifted, place] whether `place` lies at `shifted`, seen from `own`."""
    own, shifted, place = np.ogrid[:length, : 2 * length - 1, :length]
    return (place - own + length - 1 == shifted).astype(np.float32)
