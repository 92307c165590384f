"""Boards in plain Python, for games written out in their tests: one cell and one player at a time.

Nothing here comes from the compiled games but `played`, which records one.
"""

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coplay.core.compilation import QUICK
from tests.games.reference import DIRECTIONS, STAY, Cell, path_lengths


@dataclass(frozen=True)
class Ground:
    """What does not change in an episode."""

    height: int
    width: int
    horizon: int
    view: int | None = None
    walls: frozenset[Cell] = frozenset()

    def open(self, cell: Cell) -> bool:
        on_board = 0 <= cell[0] < self.height and 0 <= cell[1] < self.width
        return on_board and cell not in self.walls

    def cell(self, number: Any) -> Cell:
        return divmod(int(number), self.width)

    def all(self) -> set[Cell]:
        return {(r, c) for r in range(self.height) for c in range(self.width)}

    def length(self, start: Cell, end: Cell) -> int:
        return path_lengths(self.height, self.width, self.walls, start)[end]


def ground_of(game: Any, board: Any) -> Ground:
    """The ground of a compiled game with this wall map."""
    config = game.config
    walls = np.flatnonzero(np.asarray(game.maps.walls)[int(board)])
    cells = frozenset(divmod(int(wall), config.width) for wall in walls)
    return Ground(config.height, config.width, config.horizon, config.view, cells)


def step_to(cell: Cell, move: int) -> Cell:
    down, right = DIRECTIONS.get(move, (0, 0))
    return cell[0] + down, cell[1] + right


def legal_moves(ground: Ground, here: Cell) -> list[int]:
    """The moves that stay on the board, and staying."""
    return [*(move for move in DIRECTIONS if ground.open(step_to(here, move))), STAY]


def planes(
    ground: Ground, cells: list[Cell], seat: int, layers: list[dict[Cell, int]]
) -> list[list[list[int]]]:
    """[row][column][plane]: the players ego-first, walls, then what each layer has on a cell."""
    row, column = cells[seat]
    rows, columns = range(ground.height), range(ground.width)
    if ground.view is not None:
        rows = range(row - ground.view, row + ground.view + 1)
        columns = range(column - ground.view, column + ground.view + 1)
    order = [(seat + k) % len(cells) for k in range(len(cells))]
    return [
        [
            [int(cells[s] == (r, c)) for s in order]
            + [int(not ground.open((r, c)))]
            + [layer.get((r, c), 0) for layer in layers]
            for c in columns
        ]
        for r in rows
    ]


def features(last: list[int], seat: int, actions: int) -> list[float]:
    """The last action of each player one-hot, ego-first."""
    order = [(seat + k) % len(last) for k in range(len(last))]
    return [float(last[s] == action) for s in order for action in range(actions)]


def even(choices: list[int], actions: int) -> list[Fraction]:
    return [Fraction(choices.count(a), len(choices)) for a in range(actions)]


def go(
    ground: Ground,
    here: Cell,
    targets: Collection[Cell],
    allowed: list[int],
    otherwise: list[Fraction],
) -> list[Fraction]:
    """To a random one of the nearest targets by a random allowed move that shortens the way; where
    there is no such move, what `otherwise` says. A target named twice counts twice."""
    chances = [Fraction(0)] * len(otherwise)
    if targets:
        least = min(ground.length(here, cell) for cell in targets)
        nearest = [cell for cell in targets if ground.length(here, cell) == least]
        for cell in nearest:
            moves = [
                m
                for m in allowed
                if m in DIRECTIONS and ground.length(step_to(here, m), cell) < least
            ]
            for move in moves:
                chances[move] += Fraction(1, len(nearest) * len(moves))
    rest = 1 - sum(chances)
    return [chance + rest * other for chance, other in zip(chances, otherwise, strict=True)]


def played(game: Any, copies: int, steps: int) -> tuple[Any, Any, Any, Any, Any]:
    """Play in which seats follow scripted players, legal actions or anything at all, each for a
    while: states, views, scripted probabilities, actions and outcomes, [copy, time, ...]; the last
    state comes after the last step."""
    names = list(game.scripted)
    rng = np.random.default_rng(3)
    kind = rng.integers(len(names) + 2, size=(copies, 1, game.seats)) * np.ones((1, steps, 1), int)
    anew = rng.integers(len(names) + 2, size=kind.shape)
    kind = np.where(rng.random(kind.shape) < 0.1, anew, kind)
    noise = rng.gumbel(size=(copies, steps, game.seats, game.actions)).astype(np.float32)

    def rollout(game: Any, key: Any, kind: Any, noise: Any) -> Any:
        def step(state: Any, given: Any) -> Any:
            key, kind, noise = given
            egos = jax.vmap(game.ego_state, (None, 0))(state, jnp.arange(game.seats))
            policies = {n: jax.vmap(p, (None, 0))(game, egos) for n, p in game.scripted.items()}
            seen = game.observe(state)
            wishes = [*policies.values(), seen.legal, jnp.ones_like(seen.legal)]
            chances = jnp.stack([wish.astype(jnp.float32) for wish in wishes], axis=1)
            chances = chances[jnp.arange(game.seats), kind]
            actions = jnp.argmax(jnp.log(chances) + noise, axis=-1)
            following, outcome = game.step(key, state, actions)
            return following, (state, seen, policies, actions, outcome)

        last, rows = jax.lax.scan(
            step, game.reset(key), (jax.random.split(key, steps), kind, noise)
        )
        states = jax.tree.map(lambda x, y: jnp.concatenate([x, y[None]]), rows[0], last)
        return states, *rows[1:]

    run = jax.jit(jax.vmap(rollout, (None, 0, 0, 0)), compiler_options=QUICK)
    keys = jax.random.split(jax.random.key(1), copies)
    return jax.tree.map(np.asarray, run(game, keys, kind, noise))
