"""Train on a PettingZoo environment of one's own: any callable that makes one will do.

Tug: two agents pull at a rope; who pulls against the wind that both feel gets 1.
"""

import tempfile

import numpy as np
from gymnasium import spaces

import coplay


class Tug:
    metadata = {"name": "tug", "render_modes": []}  # noqa: RUF012
    possible_agents = ["left", "right"]  # noqa: RUF012

    def observation_space(self, agent):
        return spaces.Box(-1, 1, (1,), np.float32)

    def action_space(self, agent):
        return spaces.Discrete(2)

    def _seen(self):
        self.wind = self.random.choice([-1.0, 1.0])
        return {agent: np.array([self.wind], np.float32) for agent in self.agents}

    def reset(self, seed=None, options=None):
        self.random, self.time = np.random.default_rng(seed), 0
        self.agents = list(self.possible_agents)
        return self._seen(), {agent: {} for agent in self.agents}

    def step(self, actions):
        self.time += 1
        there = self.agents
        rewards = {agent: float(2 * actions[agent] - 1 == -self.wind) for agent in there}
        over = dict.fromkeys(there, self.time == 8)
        seen = self._seen()
        infos: dict[str, dict] = {agent: {} for agent in there}
        self.agents = [] if self.time == 8 else there
        return seen, rewards, dict.fromkeys(there, False), over, infos

    def close(self):
        pass


game = coplay.from_pettingzoo(lambda: Tug(), "tug", workers=2)
with tempfile.TemporaryDirectory() as folder:
    print("random:", coplay.play(game, "random,random", episodes=200)["team_mean"])
    run = coplay.train(
        "ppo", game, f"{folder}/run", steps=6000, copies=16, rollout=16, minibatches=4, episodes=200
    )
    print("trained:", run["team_mean"])
    print("one of each:", coplay.play(game, f"{folder}/run,random", episodes=200)["seats"])
