"""Dispersion in plain Python, one number after the other."""

import math
from typing import NamedTuple

MOVES = {0: (0, -1), 1: (0, 1), 2: (-1, 0), 3: (1, 0), 4: (0, 0)}


class PlainDispersion(NamedTuple):
    """places, food: [(x, y)]. left: numbers of the food that is there. time: steps played."""

    places: list[tuple[int, int]]
    food: list[tuple[float, float]]
    left: set[int]
    time: int


def step(
    game: PlainDispersion, actions: list[int], size: int, horizon: int, reach: float, share: bool
) -> tuple[PlainDispersion, list[float], bool, bool]:
    """The game after a step, rewards, whether it is done, and whether it is cut."""
    places = []
    for (x, y), action in zip(game.places, actions, strict=True):
        dx, dy = MOVES[action]
        places.append((min(max(x + dx, -size), size), min(max(y + dy, -size), size)))
    rewards, left = [0.0] * len(places), set(game.left)
    for number in game.left:
        eaters = [
            s for s, place in enumerate(places) if math.dist(place, game.food[number]) <= reach
        ]
        for seat in eaters:
            rewards[seat] += 1 / len(eaters)
        if eaters:
            left.remove(number)
    if share:
        rewards = [sum(rewards) / len(rewards)] * len(rewards)
    after = PlainDispersion(places, game.food, left, game.time + 1)
    return after, rewards, not left, bool(left) and after.time >= horizon
