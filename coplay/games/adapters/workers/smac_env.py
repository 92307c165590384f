"""SMAC, SMACv2 and SMAClite as parallel environments: one adapter to their common interface.

That interface is `get_env_info()`, `reset()`, `get_obs()`, `get_state()`, `get_avail_actions()`,
`step(actions)` and `close()`. A dead unit stays in its seat until the battle is over: it sees
zeros, its only legal action is to do nothing, and it shares the team's reward, as in the published
results.
"""

import importlib
from typing import Any

import numpy as np

LIBRARIES = {
    "smac": ("smac.env", "StarCraft2Env"),
    "smacv2": ("smacv2.env.starcraft2.wrapper", "StarCraftCapabilityEnvWrapper"),
    "smaclite": ("smaclite.env", "SMACliteEnv"),
}
"""library -> module and class of its environment."""

INSTALL = {
    "smac": "pip install git+https://github.com/oxwhirl/smac.git (the project called smac on PyPI "
    "is a different one), and StarCraft II with its SMAC maps in the folder SC2PATH",
    "smacv2": "pip install git+https://github.com/oxwhirl/smacv2.git, and StarCraft II with its "
    "SMAC maps in the folder SC2PATH",
    "smaclite": "pip install git+https://github.com/uoe-agents/smaclite.git; it needs no StarCraft",
}


def environment_class(library: str) -> Any:
    """The class of a library's environment; ModuleNotFoundError says how to get it. The project
    of the name smac on PyPI, which optimises hyperparameters, is recognised."""
    module, name = LIBRARIES[library]
    try:
        return getattr(importlib.import_module(module), name)
    except (ModuleNotFoundError, AttributeError) as error:
        raise ModuleNotFoundError(
            f"{library} is not installed ({error}): {INSTALL[library]}"
        ) from error


def make(library: str, map_name: str = "", module: str = "", **options: Any) -> "SmacParallel":
    """A battle of a library; module: `MODULE:CLASS` of an environment with the same interface."""
    if module:
        place, _, name = module.partition(":")
        kind = getattr(importlib.import_module(place), name)
    else:
        kind = environment_class(library)
    return SmacParallel(kind, map_name, options)


class SmacParallel:
    """See the module docstring. The environment is made at the first reset, with the seed of that
    episode: SMAC takes seeds only when it is made. Later episodes go on from there."""

    score_names = ("won",)

    def __init__(self, kind: Any, map_name: str, options: dict[str, Any]):
        self.kind, self.options = kind, dict(options)
        if map_name:
            self.options["map_name"] = map_name
        self.env: Any = None
        self.won = 0.0
        info = self._start(None).get_env_info()
        self.close()
        self.possible_agents = [f"unit_{number}" for number in range(info["n_agents"])]
        self.agents: list[str] = []
        self._actions, self._seen = int(info["n_actions"]), int(info["obs_shape"])
        self.world_size = int(info["state_shape"])

    def _start(self, seed: int | None) -> Any:
        """The environment, made if there is none yet."""
        if self.env is None:
            seeded = {} if seed is None else {"seed": seed}
            try:
                self.env = self.kind(**self.options, **seeded)
            except TypeError:  # it takes seeds when an episode begins
                self.env = self.kind(**self.options)
        return self.env

    def observation_space(self, agent: str) -> Any:
        from gymnasium import spaces

        return spaces.Dict(
            {
                "observation": spaces.Box(-np.inf, np.inf, (self._seen,), np.float32),
                "action_mask": spaces.Box(0, 1, (self._actions,), np.int8),
            }
        )

    def action_space(self, agent: str) -> Any:
        from gymnasium import spaces

        return spaces.Discrete(self._actions)

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict, dict]:
        """Begin a battle."""
        env = self._start(seed)
        try:
            env.reset(seed=seed)
        except TypeError:  # SMAC's own takes no seed
            env.reset()
        self.agents, self.won = list(self.possible_agents), 0.0
        return self._views(), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, int]) -> tuple[dict, dict, dict, dict, dict]:
        """All units act. A battle that runs out of time is truncated, any other end terminates."""
        agents = self.agents
        given = self.env.step([actions[agent] for agent in agents])
        if len(given) == 3:  # SMAC: reward, terminated, info
            reward, over, info = given
            cut = bool(over and info.get("episode_limit", False))
        else:  # as gymnasium: observations, reward, terminated, truncated, info
            _, reward, over, cut, info = given
            over = bool(over or cut)
        reward = float(np.mean(reward))
        self.won = float(bool(info.get("battle_won", False)))
        views = self._views()
        self.agents = [] if over else agents
        return (
            views,
            dict.fromkeys(agents, reward),
            dict.fromkeys(agents, bool(over and not cut)),
            dict.fromkeys(agents, bool(cut)),
            {agent: {} for agent in agents},
        )

    def scores(self) -> tuple[float, ...]:
        """The numbers of `score_names`, of the battle that ended last."""
        return (self.won,)

    def global_state(self) -> np.ndarray:
        """The global state, [number], which only critics are shown."""
        return np.asarray(self.env.get_state(), np.float32).reshape(-1)

    def _views(self) -> dict[str, dict[str, np.ndarray]]:
        seen, legal = self.env.get_obs(), self.env.get_avail_actions()
        return {
            agent: {
                "observation": np.asarray(seen[number], np.float32).reshape(-1),
                "action_mask": np.asarray(legal[number], np.int8),
            }
            for number, agent in enumerate(self.possible_agents)
        }

    def close(self) -> None:
        if self.env is not None:
            self.env.close()
            self.env = None
