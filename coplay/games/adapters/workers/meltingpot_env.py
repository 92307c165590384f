"""Substrates of Melting Pot as parallel environments.

A substrate steps all players at once and gives each a picture and a few numbers. Players of an
evaluation may see what Melting Pot lets them see in its scenarios, and no more: the picture of the
whole world is for films alone. An episode that ends by chance, as Melting Pot's do, has ended; one
that reaches the substrate's last frame was cut.
"""

import importlib
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

LIBRARY = "meltingpot"
INSTALL = (
    "pip install dm-meltingpot (it downloads its assets while it is installed; without a way to "
    "them, unpack its source archive, pip install dmlab2d and what its setup.py lists, and put the "
    "folder into PYTHONPATH: substrates need no assets)"
)
SEEN = ("HUNGER", "INVENTORY", "MY_OFFER", "OFFERS", "READY_TO_SHOOT", "STAMINA", "VOTING")
"""Numbers that a player may see beside its picture. The reward of all together, which Melting Pot
also allows, is left out: it would tell what others got."""
WORLD = "WORLD.RGB"
MOST_NUMBERS = 1000.0
"""Numbers are cut to this size; some say with a huge one that there is nothing to say."""


def substrates() -> Any:
    """Melting Pot's module of substrates; ModuleNotFoundError says how to get it."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # it imports TensorFlow, which is talkative
    try:
        return importlib.import_module("meltingpot.substrate")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"Melting Pot is not installed ({error}): {INSTALL}") from error


def make(substrate: str, shrink: int = 1, render_mode: str | None = None) -> "MeltingPotParallel":
    """A substrate by its name. shrink: each square of so many pixels is seen as their mean; a cell
    of a substrate is 8 pixels wide. render_mode: None, or rgb_array to have pictures."""
    return MeltingPotParallel(substrate, shrink, render_mode is not None)


class MeltingPotParallel:
    """See the module docstring. The substrate is built at the first reset, with its seed."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"]}

    def __init__(self, substrate: str, shrink: int, film: bool):
        self.substrate, self.shrink, self.film = substrate, shrink, film
        config = substrates().get_config(substrate)
        self.roles = tuple(config.default_player_roles)
        spec = config.timestep_spec.observation
        self.numbers = [name for name in SEEN if name in spec]
        self._size = sum(int(np.prod(spec[name].shape)) for name in self.numbers)
        height, width, _ = spec["RGB"].shape
        if shrink < 1 or height % shrink or width % shrink:
            raise ValueError(f"shrink={shrink} must divide the picture's {height} x {width} pixels")
        self._picture = (height // shrink, width // shrink, 3)
        self._actions = int(config.action_spec.num_values)
        self.possible_agents = [f"player_{number}" for number in range(len(self.roles))]
        self.agents: list[str] = []
        self.env: Any = None
        self.limit, self.steps = 0, 0
        self._last: Any = None
        self._draws = random.Random()

    def observation_space(self, agent: str) -> Any:
        from gymnasium import spaces

        return spaces.Dict(
            {
                "planes": spaces.Box(0, 255, self._picture, np.uint8),
                "features": spaces.Box(-np.inf, np.inf, (self._size,), np.float32),
            }
        )

    def action_space(self, agent: str) -> Any:
        from gymnasium import spaces

        return spaces.Discrete(self._actions)

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict, dict]:
        """Begin an episode. A seed draws the map, the places, and the end."""
        if seed is not None:
            self._draws = random.Random(seed)
            self._close()
        with self._drawing():
            if self.env is None:
                module = substrates()
                config = module.get_config(self.substrate)
                self.env = module.build_from_config(config, roles=self.roles)
                self.limit = _frames(config, self.roles)
            timestep = self.env.reset()
        self.agents, self.steps = list(self.possible_agents), 0
        return self._views(timestep), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, int]) -> tuple[dict, dict, dict, dict, dict]:
        """All players act."""
        agents = self.agents
        with self._drawing():
            timestep = self.env.step([int(actions[agent]) for agent in agents])
        self.steps += 1
        over = bool(timestep.last())
        cut = over and (self.steps == self.limit or float(timestep.discount) > 0)
        rewards = {
            agent: float(given) for agent, given in zip(agents, timestep.reward, strict=True)
        }
        views = self._views(timestep)
        self.agents = [] if over else agents
        return (
            views,
            rewards,
            dict.fromkeys(agents, over and not cut),
            dict.fromkeys(agents, cut),
            {agent: {} for agent in agents},
        )

    def render(self) -> np.ndarray | None:
        """The whole world."""
        if self._last is None or not self.film:
            return None
        return np.asarray(self._last.observation[0].get(WORLD, self._last.observation[0]["RGB"]))

    def close(self) -> None:
        self._close()

    def _close(self) -> None:
        if self.env is not None:
            self.env.close()
            self.env = None

    def _views(self, timestep: Any) -> dict[str, dict[str, np.ndarray]]:
        self._last = timestep
        views = {}
        for agent, seen in zip(self.possible_agents, timestep.observation, strict=True):
            parts = [np.reshape(seen[name], -1) for name in self.numbers]
            numbers = np.concatenate(parts) if parts else np.zeros(0)
            views[agent] = {
                # A copy: the substrate writes the next picture into the same memory.
                "planes": _smaller(np.array(seen["RGB"]), self.shrink),
                "features": np.clip(numbers, -MOST_NUMBERS, MOST_NUMBERS).astype(np.float32),
            }
        return views

    @contextmanager
    def _drawing(self) -> Iterator[None]:
        """Melting Pot draws maps and seeds with Python's own generator: it gets that of this
        environment, and everybody else's is put back."""
        others = random.getstate()
        random.setstate(self._draws.getstate())
        try:
            yield
        finally:
            self._draws.setstate(random.getstate())
            random.setstate(others)


def _frames(config: Any, roles: tuple[str, ...]) -> int:
    """The frame after which an episode is cut at the latest; 0: the substrate does not say."""
    settings = config.lab2d_settings_builder(roles=roles, config=config)
    return int(settings.get("maxEpisodeLengthFrames", 0))


def _smaller(picture: np.ndarray, by: int) -> np.ndarray:
    """The picture with each square of pixels as their mean."""
    if by == 1:
        return picture
    rows, columns = picture.shape[0] // by, picture.shape[1] // by
    return picture.reshape(rows, by, columns, by, 3).mean((1, 3)).astype(np.uint8)
