"""Random walls for board games: a pool of connected wall maps, drawn once with NumPy.

Only the walls come from the pool. Whatever stands on the board is placed afresh at every reset
(`place`), so a finite pool gives no seat a lasting advantage.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Integer, PRNGKeyArray, Shaped, UInt32

from coplay.core.errors import UserError
from coplay.core.grid import MOVES

PIECES = (
    ((0, 0), (0, 1), (0, 2)),  # straight of three
    ((0, 0), (1, 0), (1, 1)),  # L of three
    ((0, 0), (0, 1), (0, 2), (0, 3)),  # straight of four
    ((0, 0), (1, 0), (2, 0), (2, 1)),  # L of four
)
LARGEST_PIECE = max(map(len, PIECES))


class WallMaps(NamedTuple):
    """A pool of boards; cells are numbered row by row.

    walls: [map, cell] bool.
    free_cells: [map, cell] the free cells first, in order; then the walls.
    free_count: [map] how many cells are free.
    distance: [map, cell, cell] path lengths between free cells (`unreachable` else); without walls
        there is none (shape [0, 0, 0]), because the Manhattan distance is the path length.
    """

    walls: Shaped[Array, "map cell"]
    free_cells: Integer[Array, "map cell"]
    free_count: Integer[Array, " map"]
    distance: Integer[Array, "map from to"]


UNREACHABLE = 30_000
"""Distance of cells that cannot be reached; no board has more cells."""
MOST_BYTES = 8 << 30
"""Memory that all distances may take while they are computed."""
RARE, RARE_AFTER = 0.01, 1000
"""Refused if a smaller share of the first boards drawn is connected: it would take too long."""


def draw_wall_maps(
    height: int, width: int, pieces: int, needed: int, maps: int, seed: int = 0
) -> WallMaps:
    """`maps` boards with `pieces` wall pieces each, connected, with at least `needed` free cells.

    A piece's kind, rotation and position are uniform; one that would overlap another is skipped;
    boards whose free cells are not connected are drawn again.
    """
    cells = height * width
    if cells > UNREACHABLE:
        raise UserError(
            f"board too large: {height}x{width} has {cells:,} cells, more than {UNREACHABLE:,}"
        )
    if pieces > cells:
        raise UserError(f"walls must be at most {cells} on {height}x{width} cells, not {pieces}")
    if pieces and (size := 2 * maps * cells * (height + 2) * (width + 2)) > MOST_BYTES:
        raise UserError(
            f"the distances on {maps:,} wall maps of {height}x{width} cells take "
            f"{size / 2**30:,.0f} GB: lower wall_maps, height or width"
        )
    if needed > cells:
        raise UserError(
            f"board too small: {height}x{width} has {cells} cells for {needed} players and prey; "
            "enlarge height or width, or take fewer of them"
        )
    if pieces == 0:
        walls = np.zeros((1, height, width), bool)
    else:
        walls = _draw_connected(height, width, pieces, needed, maps, seed)
    flat = walls.reshape(len(walls), cells)
    distance = _distances(walls) if pieces else np.zeros((0, 0, 0), np.int16)
    return WallMaps(
        walls=jnp.asarray(flat),
        free_cells=jnp.asarray(np.argsort(flat, axis=1, kind="stable").astype(np.int16)),
        free_count=jnp.asarray((~flat).sum(1).astype(np.int32)),
        distance=jnp.asarray(distance),
    )


def _draw_connected(
    height: int, width: int, pieces: int, needed: int, maps: int, seed: int
) -> np.ndarray:
    rng = np.random.default_rng(seed)
    found: list[np.ndarray] = []
    for attempt in range(1000 * maps):
        walls = np.zeros((height, width), bool)
        for _ in range(pieces):
            shape = np.array(PIECES[rng.integers(len(PIECES))])
            for _ in range(rng.integers(4)):
                shape = np.stack([shape[:, 1], -shape[:, 0]], axis=1)
            shape -= shape.min(0)
            room = np.array([height, width]) - shape.max(0)
            if (room <= 0).any():
                continue
            rows, columns = (shape + rng.integers(room)).T
            if not walls[rows, columns].any():
                walls[rows, columns] = True
        if (~walls).sum() >= needed and _connected(walls):
            found.append(walls)
            if len(found) == maps:
                return np.stack(found)
        elif attempt == RARE_AFTER and len(found) < RARE * RARE_AFTER:
            break
    raise UserError(
        f"board too small: hardly any {height}x{width} board with {pieces} wall pieces leaves "
        f"{needed} connected free cells; enlarge height or width, or lower walls"
    )


def _connected(walls: np.ndarray) -> bool:
    """Whether every free cell can be reached from every other."""
    todo = [tuple(np.argwhere(~walls)[0])]
    seen = walls.copy()
    seen[todo[0]] = True
    while todo:
        row, column = todo.pop()
        for down, right in MOVES:
            r, c = row + down, column + right
            if 0 <= r < len(walls) and 0 <= c < walls.shape[1] and not seen[r, c]:
                seen[r, c] = True
                todo.append((r, c))
    return bool(seen.all())


def _distances(walls: np.ndarray) -> np.ndarray:
    """Path lengths between all cells of all boards: [map, cell, cell] int16."""
    maps, height, width = walls.shape
    cells = height * width
    board = np.full((maps, cells, height + 2, width + 2), UNREACHABLE, np.int16)
    inner = board[:, :, 1:-1, 1:-1]
    free = ~walls[:, None]
    for cell in range(cells):
        inner[:, cell, cell // width, cell % width] = 0
    while True:
        near = np.minimum.reduce(
            [board[:, :, 1 + r : 1 + r + height, 1 + c : 1 + c + width] for r, c in MOVES]
        )
        better = free & (near + 1 < inner)
        if not better.any():
            break
        inner[better] = near[better] + 1
    return inner.reshape(maps, cells, cells)


def random_words(key: PRNGKeyArray, count: int) -> UInt32[Array, " count"]:
    """Random 32-bit words. Splitting a key gives two words per hash where `jax.random.bits` gives
    one, and compiles twice as fast."""
    return jax.random.key_data(jax.random.split(key, (count + 1) // 2)).reshape(-1)[:count]


def bounded(
    bits: UInt32[Array, "*shape"], limit: Int[Array, "*limit"] | int
) -> Int[Array, "*shape"]:
    """Random 32-bit words as integers in [0, limit), limit < 65536: the high word of bits*limit."""
    limit = jnp.asarray(limit, jnp.uint32)
    high, low = bits >> 16, bits & 0xFFFF
    return ((high * limit + ((low * limit) >> 16)) >> 16).astype(jnp.int32)


def place(bits: UInt32[Array, " thing"], count: Int[Array, ""] | int) -> Int[Array, " thing"]:
    """Distinct places in [0, count) for as many things as there are random words, uniformly.

    The beginning of a Fisher-Yates shuffle in which the shuffled board is never built: what stands
    at a position is traced back through the earlier swaps. Elementwise arithmetic only: on CPU a
    random permutation of the board costs several times as much as all the rest of the game.
    """
    things = bits.shape[0]
    swaps = [thing + bounded(bits[thing], count - thing) for thing in range(things)]
    places = []
    for thing, position in enumerate(swaps):
        for earlier in reversed(range(thing)):
            position = jnp.where(position == swaps[earlier], earlier, position)
        places.append(position)
    return jnp.stack(places)
