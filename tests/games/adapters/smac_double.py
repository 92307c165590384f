"""Stand-ins for SMAC's `StarCraft2Env` and SMACv2's wrapper: interfaces as in their source, and
rules that fit in a few lines. Each unit has 3 points; attacking wears down the enemies, who wear
down the first unit alive; standing still wins nothing."""

import random
from typing import Any

import numpy as np


class FakeStarCraft2Env:
    """Actions as in SMAC: 0 nothing (the dead only), 1 stop, 2 to 5 move, 6 and up attack."""

    def __init__(
        self,
        map_name: str = "3m",
        seed: int | None = None,
        continuing_episode: bool = False,
        step_limit: int = 12,
    ):
        if map_name != "3m":
            raise ValueError(f"no map {map_name}")
        self.continuing_episode = continuing_episode
        self.n_agents, self.n_actions, self.episode_limit = 3, 9, step_limit
        self.rng = np.random.default_rng(seed)
        self.closed = False

    def get_env_info(self) -> dict[str, int]:
        return {
            "state_shape": 7,
            "obs_shape": 4,
            "n_actions": self.n_actions,
            "n_agents": self.n_agents,
            "episode_limit": self.episode_limit,
        }

    def reset(self) -> tuple[list[np.ndarray], np.ndarray]:
        self.health, self.enemies, self.time = np.full(3, 3.0), np.full(3, 2.0), 0
        return self.get_obs(), self.get_state()

    def get_obs(self) -> list[np.ndarray]:
        return [np.array([h, *self.enemies]) if h > 0 else np.zeros(4) for h in self.health]

    def get_state(self) -> np.ndarray:
        return np.concatenate([self.health, self.enemies, [self.time]])

    def get_avail_actions(self) -> list[list[int]]:
        fight = [int(e > 0) for e in self.enemies]
        return [[0, 1, 1, 1, 1, 1, *fight] if h > 0 else [1] + [0] * 8 for h in self.health]

    def step(self, actions: list[int]) -> tuple[float, bool, dict[str, Any]]:
        assert not self.closed and len(actions) == self.n_agents
        reward, legal = 0.0, self.get_avail_actions()
        for agent, action in enumerate(actions):
            assert legal[agent][int(action)], "an illegal action"
            if action >= 6 and self.enemies[action - 6] > 0:
                self.enemies[action - 6] -= 1
                reward += 1
        standing = int((self.enemies > 0).sum())
        alive = np.flatnonzero(self.health > 0)
        if standing and len(alive):
            self.health[alive[0]] -= self.rng.random() * standing
        self.time += 1
        won, lost = not standing, not (self.health > 0).any()
        info: dict[str, Any] = {"battle_won": won}
        limit = self.time >= self.episode_limit and not (won or lost)
        if limit and self.continuing_episode:
            info["episode_limit"] = True
        return reward + 10.0 * won, won or lost or limit, info

    def render(self, mode: str = "human") -> np.ndarray | None:
        return np.full((600, 1900, 3), 7, np.uint8) if mode == "rgb_array" else None

    def close(self) -> None:
        self.closed = True


class FakeDistribution:
    """As those of SMACv2: a generator without a seed, and Python's own."""

    def __init__(self, config: dict[str, Any]):
        config["env_key"] = "written by the wrapper"
        self.rng = np.random.default_rng()
        self.inner = FakeInner()

    def generate(self) -> list[float]:
        return [float(self.rng.random()), self.inner.generate(), random.random()]


class FakeInner:
    def __init__(self) -> None:
        self.rng = np.random.default_rng()

    def generate(self) -> float:
        return float(self.rng.random())


class FakeCapabilityWrapper:
    """As SMACv2's `StarCraftCapabilityEnvWrapper`: it draws each battle by `capability_config` and
    leaves all else to the environment inside."""

    def __init__(self, **kwargs: Any):
        self.distribution_config = kwargs.pop("capability_config")
        self.env_key_to_distribution_map = {
            key: FakeDistribution(config)
            for key, config in self.distribution_config.items()
            if key not in ("n_units", "n_enemies")
        }
        self.given = kwargs
        known = {name: kwargs[name] for name in ("seed", "continuing_episode") if name in kwargs}
        self.env = FakeStarCraft2Env(**known)

    def reset(self) -> None:
        draws = self.env_key_to_distribution_map.values()
        self.drawn = [part for draw in draws for part in draw.generate()]
        self.env.reset()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)
