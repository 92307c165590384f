"""An environment played by seats."""

from typing import Any

import numpy as np

from coplay.games.adapters.workers.checks import BadEnvironment, Checks
from coplay.games.adapters.workers.seats import IMAGE, Seat, Seats, Views


class SeatedEnv:
    """An environment played by seats. Seats that are absent from its `agents` are not alive; they
    may join, or come back, at any step. checks: what it gives goes through these."""

    def __init__(self, env: Any, seats: Seats, strict: bool = False):
        self.env, self.seats = env, seats
        self.checks = Checks(env, seats, strict)
        self.alive = np.zeros(seats.count, bool)
        counts = np.array([seat.actions for seat in seats.seats])
        self.legal = np.arange(seats.actions) < counts[:, None]  # where no mask says otherwise

    def reset(self, seed: int, views: Views) -> None:
        """Begin an episode."""
        observations, infos = self.env.reset(seed=seed)
        self.checks.agents(self.env.agents, observations)
        present = set(self.env.agents)
        self.alive[:] = [seat.agent in present for seat in self.seats.seats]
        if not self.alive.any():
            raise BadEnvironment("no agent is in the game after reset")
        self._write(observations, infos, views, np.zeros(self.seats.count, bool))

    def step(
        self,
        actions: np.ndarray,
        views: Views,
        reward: np.ndarray,
        terminated: np.ndarray,
        truncated: np.ndarray,
    ) -> bool:
        """All agents act at once; the arguments after `actions` [seat] are written, [seat, ...].

        A seat that is gone without a word has terminated. A termination outweighs a truncation.
        Rewards of seats that were not in the game are left out. Returns whether the episode is
        over, which it is when nobody is left.
        """
        seats, before = self.seats.seats, self.alive
        present = set(self.env.agents)
        chosen = {
            seat.agent: int(action) + seat.first
            for seat, action in zip(seats, actions, strict=True)
            if seat.agent in present
        }
        observations, rewards, terminations, truncations, infos = self.env.step(chosen)
        self.checks.agents(self.env.agents, observations, rewards)
        present = set(self.env.agents)
        alive = np.zeros(len(seats), bool)
        for i, seat in enumerate(seats):
            agent = seat.agent
            ended, cut = bool(terminations.get(agent)), bool(truncations.get(agent))
            alive[i] = agent in present and not (ended or cut)
            reward[i] = self.checks.reward(agent, rewards.get(agent)) if before[i] else 0.0
            truncated[i] = before[i] and cut and not ended
            terminated[i] = before[i] and not alive[i] and not truncated[i]
        self.alive = alive
        self._write(observations, infos, views, truncated)
        return not alive.any()

    def _write(self, observations: dict, infos: dict, views: Views, truncated: np.ndarray) -> None:
        """What every seat sees; zeros for seats that see nothing more."""
        views.alive[:], views.legal[:] = self.alive, self.legal
        views.planes[:], views.features[:] = 0, 0.0
        if self.seats.global_state:
            views.global_state[:] = self.env.global_state()
        turn = self._turn()
        for i, seat in enumerate(self.seats.seats):
            given = observations.get(seat.agent)
            if given is None:
                if self.alive[i] or truncated[i]:
                    what = "is in the game" if self.alive[i] else "was truncated"
                    raise BadEnvironment(f"agent {seat.agent!r} {what} and got no observation")
                continue
            mask = infos[seat.agent].get("action_mask") if seat.agent in infos else None
            if seat.masked:
                given, mask = given["observation"], given["action_mask"]
            self._write_view(seat, given, views.planes[i], views.features[i])
            if turn not in (None, seat.agent):
                views.legal[i] = np.arange(self.seats.actions) == 0
            elif mask is not None and self.alive[i]:
                views.legal[i, : seat.actions] = self.checks.mask(seat, mask)

    def _turn(self) -> str | None:
        """Who acts where one acts at a time, as PettingZoo's `turn_based_aec_to_parallel` makes it;
        None elsewhere. The others wait: they have one legal action, which the wrapper ignores."""
        inner = getattr(self.env, "aec_env", None)
        if inner is None or (inner.metadata or {}).get("is_parallelizable"):
            return None
        return inner.agent_selection if self.alive.any() else None

    def _write_view(self, seat: Seat, given: Any, planes: np.ndarray, features: np.ndarray) -> None:
        agent = seat.agent
        if seat.kinds:
            number = int(given) - seat.lowest
            if not 0 <= number < seat.kinds:
                raise BadEnvironment(f"observation {given} of agent {agent!r} is not in its space")
            features[number] = 1.0
            return
        arrays = numbers = None
        if seat.parts:
            arrays = self.checks.observation(agent, given["planes"], "planes")
            numbers = self.checks.observation(agent, given["features"], "features")
        elif seat.features:
            numbers = self.checks.observation(agent, given)
        else:
            arrays = self.checks.observation(agent, given)
        if arrays is not None:
            height, width, count = seat.planes
            planes[:height, :width, :count] = arrays
        if numbers is not None:
            features[: seat.features] = np.reshape(numbers, seat.features)
            if seat.image and not seat.parts:
                features /= IMAGE
