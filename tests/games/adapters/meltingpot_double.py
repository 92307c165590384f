"""A small module with the interface of Melting Pot's `meltingpot.substrate`, as far as the adapter
asks for it: two players, pictures of 16 x 8 pixels, an episode that ends by chance or at frame 6.
"""

import random
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

FRAMES = 6


class Config(SimpleNamespace):
    """A substrate's configuration."""


def config() -> Config:
    def array(shape: tuple[int, ...]) -> SimpleNamespace:
        return SimpleNamespace(shape=shape)

    seen = {
        "RGB": array((16, 8, 3)),
        "INVENTORY": array((2,)),
        "READY_TO_SHOOT": array(()),
        "INTERACTION_INVENTORIES": array((2, 2)),
        "WORLD.RGB": array((24, 24, 3)),
    }
    return Config(
        default_player_roles=("default", "default"),
        timestep_spec=SimpleNamespace(observation=seen),
        action_spec=SimpleNamespace(num_values=8),
        lab2d_settings_builder=lambda roles, config: {"maxEpisodeLengthFrames": FRAMES},
    )


class Substrate:
    """Draws its map and its end with Python's generator, as Melting Pot does."""

    def __init__(self) -> None:
        self.time, self.over, self.closed = 0, False, False
        # As in the library, every picture is written into the same memory.
        self.pictures = [np.zeros((16, 8, 3), np.uint8) for _ in range(2)]

    def reset(self) -> Any:
        self.time, self.map = 0, random.randrange(200)
        return self._timestep(False, 0.0)

    def step(self, actions: list[int]) -> Any:
        assert not self.over and len(actions) == 2 and all(type(a) is int for a in actions)
        self.time += 1
        by_chance = random.random() < 0.2
        self.over = by_chance or self.time == FRAMES
        return self._timestep(self.over, 0.0 if self.over else 1.0, actions)

    def _timestep(self, last: bool, discount: float, actions: Any = (0, 0)) -> Any:
        for player, picture in enumerate(self.pictures):
            picture[:] = self.map + player + self.time
        seen = [
            {
                "RGB": self.pictures[player],
                "INVENTORY": np.array([self.time, -1e30]),
                "READY_TO_SHOOT": np.float64(1.0),
                "INTERACTION_INVENTORIES": np.full((2, 2), 7.0),
                "WORLD.RGB": np.full((24, 24, 3), self.map, np.uint8),
            }
            for player in range(2)
        ]
        reward = [np.array(float(action)) for action in actions]
        self.over = last
        return SimpleNamespace(
            last=lambda: last, discount=discount, reward=reward, observation=seen
        )

    def close(self) -> None:
        self.closed = True


def module() -> ModuleType:
    made: Any = ModuleType("meltingpot.substrate")
    made.SUBSTRATES = frozenset({"tiny", "prisoners_dilemma_in_the_matrix__repeated"})
    made.get_config = lambda name: config()
    made.build_from_config = lambda config, roles: Substrate()
    return made
