"""Which values of positions mislead a search on Snowdrift, if they are exact otherwise.

A plain-Python search by HOP's settings, whose co-players are known: nobody (exploiters change
nothing) or three ND. A position is worth the most that two guides get from it: one that cleans, and
counts its own removals only, and one that never works.

    python benchmarks/guides_on_snowdrift.py
"""

import argparse
import math
import random
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

SIZE, HORIZON, DRIFTS = 6, 25, 6
REWARD, COST = 6.0, 4.0
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1), (0, 0))
STAY, REMOVE = 4, 5
SIMULATIONS, DRAWS, DEPTH, EXPLORATION = 64, 2, 8, 1.25

Cell = tuple[int, int]


class Position(NamedTuple):
    """cells: of the planner and of the cleaners. drifts: that are left. time: steps played."""

    cells: tuple[Cell, ...]
    drifts: frozenset[Cell]
    time: int

    @property
    def over(self) -> bool:
        """Whether nothing more can be had."""
        return not self.drifts or self.time >= HORIZON


@dataclass(frozen=True)
class Values:
    """How positions are valued. cleaning: what a cleaner counts for a drift it removes alone; None:
    the reward with its cost. guide: discount of the guides' returns. search: of the search."""

    cleaning: float | None
    guide: float
    search: float


def legal(position: Position) -> list[int]:
    """The planner's actions."""
    (row, column), drifts = position.cells[0], position.drifts
    found = [
        action
        for action, (down, right) in enumerate(MOVES)
        if 0 <= row + down < SIZE and 0 <= column + right < SIZE
    ]
    return [*found, REMOVE] if (row, column) in drifts else found


def cleaner(cell: Cell, drifts: frozenset[Cell], rng: random.Random) -> int:
    """ND: on a drift remove it, else go to a nearest one."""
    if cell in drifts:
        return REMOVE
    ways = [(row - cell[0], column - cell[1]) for row, column in drifts]
    near = min(abs(down) + abs(right) for down, right in ways)
    good = set()
    for down, right in ways:
        if abs(down) + abs(right) == near:
            good |= {0} if down < 0 else {1} if down > 0 else set()
            good |= {2} if right < 0 else {3} if right > 0 else set()
    return rng.choice(sorted(good))


def step(position: Position, action: int, rng: random.Random) -> tuple[Position, float]:
    """The position after everybody's action, and the planner's reward."""
    cells, drifts, time = position
    actions = [action, *(cleaner(cell, drifts, rng) for cell in cells[1:])]
    removing = [cell for cell, one in zip(cells, actions, strict=True) if one == REMOVE]
    gone = set(removing)
    mine = COST / removing.count(cells[0]) if action == REMOVE else 0.0
    moved = tuple(
        cell if one == REMOVE else (cell[0] + MOVES[one][0], cell[1] + MOVES[one][1])
        for cell, one in zip(cells, actions, strict=True)
    )
    return Position(moved, drifts - gone, time + 1), REWARD * len(gone) - mine


def guided(position: Position, values: Values, rng: random.Random) -> float:
    """The value of a position: the most that one of the guides gets."""
    brought = []
    for cleans in (True, False) if len(position.cells) > 1 else (True,):
        here, factor, total = position, 1.0, 0.0
        while not here.over:
            action = cleaner(here.cells[0], here.drifts, rng) if cleans else STAY
            here, reward = step(here, action, rng)
            if cleans:
                counted = reward if values.cleaning is None else values.cleaning
                reward = counted if action == REMOVE else 0.0
            total, factor = total + factor * reward, factor * values.guide
        brought.append(total)
    return max(brought)


class Node:
    """A position in a tree, with visits and sums of returns of its actions."""

    def __init__(self, position: Position, values: Values, rng: random.Random):
        self.position = position
        self.actions = [] if position.over else legal(position)
        self.raw = guided(position, values, rng)
        self.visits, self.value = 1, self.raw
        self.taken = dict.fromkeys(self.actions, 0)
        self.sums = dict.fromkeys(self.actions, 0.0)
        self.children: dict[int, tuple[Node, float]] = {}
        self.prior: dict[int, float] = {}
        if self.actions:
            usual = cleaner(position.cells[0], position.drifts, rng)
            even = 2 / 3 / len(self.actions)
            self.prior = {action: even + (action == usual) / 3 for action in self.actions}

    def choose(self, untried: float) -> int:
        """The action by PUCT, with Q scaled to 0 … 1; untried: the score of actions not taken."""
        known = {a: self.sums[a] / self.taken[a] for a in self.actions if self.taken[a]}
        low, high = min([self.value, *known.values()]), max([self.value, *known.values()])

        def score(action: int) -> float:
            q = (known[action] - low) / max(high - low, 1e-8) if action in known else untried
            wish = EXPLORATION * self.prior[action] * math.sqrt(self.visits)
            return q + wish / (self.taken[action] + 1)

        return max(self.actions, key=score)


def search(position: Position, values: Values, rng: random.Random) -> dict[int, float]:
    """Q of the planner's actions."""
    root = Node(position, values, rng)
    for _ in range(SIMULATIONS):
        node, way = root, list[tuple[Node, int, float]]()
        fresh = False
        while node.actions and not fresh and len(way) < DEPTH:
            action = node.choose(1e6 if node is root else 0.0)
            fresh = action not in node.children
            if fresh:
                after, reward = step(node.position, action, rng)
                node.children[action] = Node(after, values, rng), reward
            child, reward = node.children[action]
            way.append((node, action, reward))
            node = child
        gained = node.raw
        for passed, action, reward in reversed(way):
            gained = reward + values.search * gained
            passed.taken[action] += 1
            passed.sums[action] += gained
            passed.value = (passed.value * passed.visits + gained) / (passed.visits + 1)
            passed.visits += 1
    return {action: root.sums[action] / root.taken[action] for action in root.actions}


def play(seed: int, cleaners: int, values: Values) -> float:
    """The planner's reward in one episode."""
    rng = random.Random(seed)
    board = [(row, column) for row in range(SIZE) for column in range(SIZE)]
    cells = rng.sample(board, 1 + cleaners + DRIFTS)
    here = Position(tuple(cells[: 1 + cleaners]), frozenset(cells[1 + cleaners :]), 0)
    total = 0.0
    while not here.over:
        number = DRAWS if cleaners else 1  # without cleaners nothing happens by chance
        draws = [search(here, values, rng) for _ in range(number)]
        summed = {action: sum(draw[action] for draw in draws) for action in draws[0]}
        best = max(summed, key=summed.__getitem__)
        here, reward = step(here, best, rng)
        total += reward
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--episodes", type=int, default=16)
    episodes = parser.parse_args().episodes
    print("cleaner counts | guides' discount | search's discount | exploiters | three ND")
    for counted in (REWARD, None):
        for guide, discount in ((0.8, 0.8), (0.8, 0.9), (0.8, 0.99), (0.95, 0.9)):
            values = Values(counted, guide, discount)
            row = [f"{REWARD:g}" if counted else f"{REWARD - COST:g}", f"{guide}", f"{discount}"]
            for cleaners in (0, 3):
                got = np.array([play(seed, cleaners, values) for seed in range(episodes)])
                row.append(f"{got.mean():.2f} ± {got.std(ddof=1) / math.sqrt(episodes):.2f}")
            print(" | ".join(row), flush=True)


if __name__ == "__main__":
    main()
