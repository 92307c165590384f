"""Small PettingZoo parallel environments, which worker processes import by this module's name."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces


class Little:
    """Agents a, b, c for `horizon` steps; everything that can befall an agent, at a given step.

    leave, cut, silent: {agent: step} in which it terminates, is truncated, is gone without a word.
    join: {agent: step} in which it comes in first. back: {agent: step} in which it comes in again.
    masks: "info", "observation" or None; legal is every action but the one that was last taken.
    trouble: (kind, step, file): what goes wrong in that step of the second episode, if the file
        exists; kind: "raise", "hang", "exit".
    """

    metadata: ClassVar = {"name": "little", "render_modes": []}
    possible_agents: ClassVar = ["a", "b", "c"]

    def __init__(
        self, horizon=5, leave=(), cut=(), silent=(), join=(), back=(), masks=None, trouble=None
    ):
        self.horizon, self.masks, self.trouble = horizon, masks, trouble
        self.leave, self.cut, self.silent = map(dict, (leave, cut, silent))
        self.join, self.back = dict(join), dict(back)
        self.agents: list[str] = []
        self.episodes = 0

    def observation_space(self, agent):
        seen = spaces.Box(-np.inf, np.inf, (4,), np.float32)
        if self.masks == "observation":
            return spaces.Dict({"observation": seen, "action_mask": spaces.MultiBinary(3)})
        return seen

    def action_space(self, agent):
        return spaces.Discrete(3, start=10)

    def reset(self, seed=None, options=None):
        assert "jax" not in sys.modules or "pytest" in sys.modules, "a worker has imported JAX"
        self.random = np.random.default_rng(seed)
        self.time, self.last = 0, dict.fromkeys(self.possible_agents, 10)
        self.episodes += 1
        self.agents = [agent for agent in self.possible_agents if agent not in self.join]
        self.chance = float(self.random.random())
        return self._shown(self.agents)

    def step(self, actions):
        assert set(actions) == set(self.agents), "an action for each agent in the game, no others"
        assert all(10 <= action < 13 for action in actions.values())
        self.time += 1
        self._trouble()
        self.last |= actions
        self.chance = float(self.random.random())
        there = self.agents
        terminated = {agent: self.leave.get(agent) == self.time for agent in there}
        truncated = {
            agent: self.cut.get(agent) == self.time or self.time >= self.horizon for agent in there
        }
        rewards = {a: self.chance + actions[a] + self.possible_agents.index(a) for a in there}
        gone = {a for a in there if self.silent.get(a) == self.time}
        observations, infos = self._shown([agent for agent in there if agent not in gone])
        ended = {agent for agent in there if terminated[agent] or truncated[agent]} | gone
        self.agents = [agent for agent in there if agent not in ended]
        if self.time < self.horizon:
            coming = (*self.join.items(), *self.back.items())
            new = [agent for agent, when in coming if when == self.time]
            more, infos_too = self._shown(new)
            observations, infos = observations | more, infos | infos_too
            self.agents = [a for a in self.possible_agents if a in (*self.agents, *new)]
        return observations, rewards, terminated, truncated, infos

    def _shown(self, agents):
        observations, infos = {}, {}
        for agent in agents:
            seen: Any = np.array(
                [self.possible_agents.index(agent), self.time, self.last[agent], self.chance],
                np.float32,
            )
            mask = np.array([10 + i != self.last[agent] for i in range(3)], np.int8)
            if self.masks == "observation":
                seen = {"observation": seen, "action_mask": mask}
            observations[agent] = seen
            infos[agent] = {"action_mask": mask} if self.masks == "info" else {}
        return observations, infos

    def _trouble(self):
        if self.trouble is None:
            return
        kind, step, file = self.trouble
        if self.time != step or self.episodes != 2 or not Path(file).exists():
            return
        if kind == "raise":
            raise RuntimeError("the dice fell off the table")
        if kind == "exit":
            os._exit(3)
        while True:  # what a user's loop that does not end looks like
            time.sleep(0.01)

    def render(self):
        return None

    def close(self):
        pass


def little(**options):
    return Little(**options)


class Unruly(Little):
    """Little, which misbehaves in the given step of every episode; see `step` and `_shown`.

    after: misbehave only from this episode on. note: a file to write the ids of children to.
    """

    def __init__(self, wrong="", at=2, after=1, note=None, **options):
        super().__init__(**options)
        self.wrong, self.at, self.after, self.note = wrong, at, after, note

    def observation_space(self, agent):
        return spaces.Box(-1, 100, (4,), np.float32)

    def step(self, actions):
        observations, rewards, *rest = super().step(actions)
        if self._now() and self.wrong == "raise":
            raise RuntimeError("the dice fell off the table")
        if self._now() and self.wrong == "exit":
            os._exit(3)
        if self._now() and self.wrong == "child":
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            Path(self.note).write_text(str(child.pid))
        if self._now() and self.wrong == "no reward":
            del rewards["b"]
        if self._now() and self.wrong == "unknown agent":
            rewards["z"] = 1.0
        bad = {"reward nan": np.nan, "reward inf": np.inf, "reward text": "much"}
        if self._now() and self.wrong in bad:
            rewards["b"] = bad[self.wrong]
        return observations, rewards, *rest

    def _shown(self, agents):
        observations, infos = super()._shown(agents)
        bad: dict[str, Any] = {
            "nan": [0, np.nan, 0, 0],
            "inf": [0, 0, 0, np.inf],
            "outside": [0, 0, 101, 0],
            "short": [0, 0, 0],
            "column": [[0], [0], [0], [0]],
            "text": ["a"] * 4,
        }
        if self._now() and "b" in observations and self.wrong in bad:
            observations["b"] = np.array(bad[self.wrong])
        return observations, infos

    def _now(self):
        return self.time == self.at and self.episodes >= self.after


def unruly(**options):
    return Unruly(**options)


class Painted(Little):
    """Little, which gives pictures: a line as long as the time."""

    metadata: ClassVar = {"name": "painted", "render_modes": ["rgb_array"]}

    def __init__(self, render_mode=None, **options):
        super().__init__(**options)
        self.render_mode = render_mode

    def render(self):
        assert self.render_mode == "rgb_array"
        picture = np.full((8, 10, 3), 255, np.uint8)
        picture[4, : self.time] = 0
        return picture


class Spaces:
    """Agents with given spaces, whose observations are samples of them."""

    metadata: ClassVar[dict[str, Any]] = {}

    def __init__(self, seen, actions):
        self.seen, self.done = seen, actions
        self.possible_agents = list(seen)
        self.agents: list[Any] = []

    def observation_space(self, agent):
        return self.seen[agent]

    def action_space(self, agent):
        return self.done[agent]

    def reset(self, seed=None, options=None):
        self.agents = list(self.possible_agents)
        for number, agent in enumerate(self.agents):
            self.seen[agent].seed(seed + number)
        self.shown = {agent: self.seen[agent].sample() for agent in self.agents}
        return self.shown, {}

    def close(self):
        pass
