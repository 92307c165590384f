"""SMAC, SMACv2 and SMAClite as parallel environments: one adapter to what they have in common.

That is `get_obs()`, `get_state()`, `get_avail_actions()`, `step(actions)` and `close()`. Where they
differ, the adapter asks the environment at hand:

| | SMAC, SMACv2 | SMAClite |
|---|---|---|
| sizes | `get_env_info()` | `n_agents`, `n_actions`, `obs_size`, `state_size` |
| seeds | when it is made | at every reset |
| a step gives | reward, whether it is over, info | as gymnasium's environments |
| time limit | its own | none: the adapter counts steps |
| picture | `render(mode)` | `render()` |

A dead unit stays in its seat until the battle is over: it sees zeros, its only legal action is to
do nothing, and it shares the team's reward, as in the published results.
"""

import contextlib
import copy
import importlib
import io
import random
from typing import Any

import numpy as np

from coplay.games.adapters.workers.smac_maps import battle_options
from coplay.games.adapters.workers.source import accepts

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
    "smaclite": "pip install gymnasium pygame scikit-learn 'rtree>=1.2', then pip install "
    "--no-deps git+https://github.com/uoe-agents/smaclite.git; it needs no StarCraft",
}

WIDEST = 640  # pixels of a picture's longer side, at most


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


def make(
    library: str,
    map_name: str = "",
    module: str = "",
    render_mode: str | None = None,
    **options: Any,
) -> "SmacParallel":
    """A battle of a library. module: `MODULE:CLASS` of an environment with the same interface."""
    with _quiet():
        if module:
            place, _, name = module.partition(":")
            kind = getattr(importlib.import_module(place), name)
        else:
            kind = environment_class(library)
        if render_mode and library == "smaclite":
            options["render_mode"] = render_mode
        return SmacParallel(kind, battle_options(library, map_name, options))


class SmacParallel:
    """See the module docstring. The environment is made at the first reset, with the seed of that
    episode: SMAC takes seeds only when it is made. Later battles of StarCraft go on from there.

    options: of the environment; `episode_limit` is the adapter's.
    """

    score_names = ("won",)

    def __init__(self, kind: Any, options: dict[str, Any]):
        self.kind, self.options = kind, dict(options)
        self.limit = int(self.options.pop("episode_limit", 0))
        self.env: Any = None
        self.steps, self.won = 0, 0.0
        units, self._actions, self._seen, self.world_size = _sizes(self._start(None))
        self.close()
        self.possible_agents = [f"unit_{number}" for number in range(units)]
        self.agents: list[str] = []

    def _start(self, seed: int | None) -> Any:
        """The environment, made if there is none yet."""
        if self.env is None:
            # SMACv2 writes into its capability_config.
            options = {
                name: copy.deepcopy(value) if isinstance(value, dict) else value
                for name, value in self.options.items()
            }
            if seed is not None and accepts(self.kind, "seed"):
                options["seed"] = seed
            with _quiet():
                self.env = self.kind(**options)
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
        if accepts(env.reset, "seed"):
            env.reset(seed=seed)
        else:
            if seed is not None:
                _seed_draws(env, seed)
            env.reset()
        if hasattr(env, "last_actions"):
            # SMAClite shows the last actions of the battle before in the state; SMAC shows zeros.
            env.last_actions = np.zeros_like(env.last_actions)
        self.agents, self.steps, self.won = list(self.possible_agents), 0, 0.0
        return self._views(), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, int]) -> tuple[dict, dict, dict, dict, dict]:
        """All units act. A battle that runs out of time is truncated, and so is one whose
        StarCraft had to be started anew, of which SMAC tells nothing. Any other end terminates."""
        agents = self.agents
        given = self.env.step([int(actions[agent]) for agent in agents])
        self.steps += 1
        if len(given) == 3:  # SMAC: reward, terminated, info
            reward, over, info = given
            cut = bool(over and (info.get("episode_limit", False) or not info))
        else:  # as gymnasium: observations, reward, terminated, truncated, info
            _, reward, ended, cut, info = given
            cut = bool(cut or self.steps == self.limit) and not ended
            over = bool(ended or cut)
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

    def render(self) -> np.ndarray | None:
        """A picture, [pixel row, pixel column, RGB], made smaller by a whole factor."""
        if accepts(self.env.render, "mode"):
            picture = self.env.render(mode="rgb_array")
        else:
            picture = self.env.render()
        return None if picture is None else _smaller(np.asarray(picture))

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


def _sizes(env: Any) -> tuple[int, int, int, int]:
    """How many units and actions there are, and numbers in an observation and in the state."""
    if hasattr(env, "get_env_info"):
        info = env.get_env_info()
        names = ("n_agents", "n_actions", "obs_shape", "state_shape")
        units, actions, seen, state = (int(info[name]) for name in names)
    else:
        names = ("n_agents", "n_actions", "obs_size", "state_size")
        units, actions, seen, state = (int(getattr(env, name)) for name in names)
    return units, actions, seen, state


def _seed_draws(env: Any, seed: int) -> None:
    """Seed what SMACv2 draws teams and places with: generators of its own, and Python's."""
    random.seed(seed)
    number, waiting = 0, [vars(env).get("env_key_to_distribution_map", {})]
    while waiting:
        held = waiting.pop(0)
        parts = held if isinstance(held, dict) else vars(held)
        for name, part in parts.items():
            if isinstance(part, np.random.Generator):
                number += 1
                parts[name] = np.random.default_rng((seed, number))
            elif hasattr(part, "generate"):
                waiting.append(part)


def _smaller(picture: np.ndarray) -> np.ndarray:
    """The picture with each square of pixels as their mean, so that it is at most WIDEST wide."""
    by = -(-max(picture.shape[:2]) // WIDEST)
    rows, columns = (size // by for size in picture.shape[:2])
    squares = picture[: rows * by, : columns * by, :3].reshape(rows, by, columns, by, 3)
    return squares.mean((1, 3)).astype(np.uint8)


def _quiet() -> contextlib.redirect_stdout:
    """SMAClite prints a line for each environment; the output of a command is not its place."""
    return contextlib.redirect_stdout(io.StringIO())
