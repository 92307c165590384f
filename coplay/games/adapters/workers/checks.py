"""What environments of others may give: numbers of the right shapes, for agents that are known.

Values that are no numbers, and arrays that fit nowhere, cannot be learned from: they are errors
that name the agent. What can be played all the same is a breach: a rule of PettingZoo that the
environment breaks. Each kind of breach is noted once for each agent, or is an error (`strict`).
"""

import math
from typing import Any, NamedTuple

import numpy as np

from coplay.games.adapters.workers.seats import IMAGE, Seat, Seats


class BadEnvironment(ValueError):
    """An environment gave what cannot be played. The message says to which agent."""


class Breach(NamedTuple):
    """A rule that an environment breaks. kind, agent: which, and for whom. text: a sentence."""

    kind: str
    agent: str
    text: str


class Limits(NamedTuple):
    """The shape of an observation, and its least and greatest values; None: any number.

    whole: the values are whole numbers.
    """

    shape: tuple[int, ...]
    low: np.ndarray | None
    high: np.ndarray | None
    whole: bool


class Checks:
    """Looks at what one environment gives.

    new: breaches since somebody last asked. strict: a breach is an error.
    """

    def __init__(self, env: Any, seats: Seats, strict: bool = False):
        self.strict = strict
        self.new: list[Breach] = []
        self._known = {seat.agent for seat in seats.seats}
        self._told: set[tuple[str, str]] = set()
        self._limits = {
            (seat.agent, part): limits
            for seat in seats.seats
            for part, limits in _limits(env.observation_space(seat.agent), seat).items()
        }

    def agents(self, *given: Any) -> None:
        """given: the environment's agents, or what it gave by agent."""
        for names in given:
            for agent in names:
                if agent not in self._known:
                    self._breach("unknown", agent, f"agent {agent!r} is not in `possible_agents`")

    def reward(self, agent: Any, given: Any) -> float:
        """The reward of an agent that was in the game. given: None if there was none."""
        if given is None:
            self._breach("reward", agent, f"agent {agent!r} got no reward, which counts as 0")
            return 0.0
        try:
            value = float(given)
        except (TypeError, ValueError):
            raise BadEnvironment(
                f"the environment gave agent {agent!r} the reward {given!r}, which is no number"
            ) from None
        if not math.isfinite(value):
            raise BadEnvironment(f"the environment gave agent {agent!r} the reward {value}")
        return value

    def observation(self, agent: Any, given: Any, part: str = "") -> np.ndarray:
        """An observation of the right size, all of whose values are numbers. part: of a
        dictionary."""
        limits = self._limits[agent, part]
        what = f"the observation of agent {agent!r}" + (f" ({part})" if part else "")
        try:
            array = np.asarray(given)
        except ValueError:  # lists of different lengths
            raise BadEnvironment(f"{what} is no array") from None
        if array.dtype.kind not in "biuf":
            raise BadEnvironment(f"{what} is {given!r}, not an array of numbers")
        if array.shape != limits.shape:
            if array.size != math.prod(limits.shape):
                raise BadEnvironment(f"{what} has shape {array.shape}, its space {limits.shape}")
            self._breach("shape", agent, f"{what} has shape {array.shape}, not {limits.shape}")
            array = array.reshape(limits.shape)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            place = np.unravel_index(np.argmin(np.isfinite(array)), array.shape)
            raise BadEnvironment(f"{what} is {array[place]} at {_index(place)}")
        if limits.whole and array.dtype.kind == "f" and (array != np.trunc(array)).any():
            self._breach("whole", agent, f"{what} has fractions, its space only whole numbers")
        if limits.low is not None and limits.high is not None:
            outside = (array < limits.low) | (array > limits.high)
            if outside.any():
                place = np.unravel_index(np.argmax(outside), array.shape)
                self._breach(
                    "outside",
                    agent,
                    f"{what} is outside its space: {array[place]:g} at {_index(place)}, not "
                    f"between {limits.low[place]:g} and {limits.high[place]:g}",
                )
        return array

    def mask(self, seat: Seat, given: Any) -> np.ndarray:
        """Which actions of an agent are legal."""
        array = np.asarray(given)
        if array.shape != (seat.actions,) or array.dtype.kind not in "biuf":
            raise BadEnvironment(
                f"the action mask of agent {seat.agent!r} is {given!r}; it has {seat.actions} "
                "actions"
            )
        if not array.any():
            raise BadEnvironment(f"the action mask of agent {seat.agent!r} allows nothing")
        return array.astype(bool)

    def take(self) -> list[Breach]:
        """The new breaches, once."""
        new, self.new = self.new, []
        return new

    def _breach(self, kind: str, agent: Any, text: str) -> None:
        if self.strict:
            raise BadEnvironment(text)
        if (kind, str(agent)) not in self._told:
            self._told.add((kind, str(agent)))
            self.new.append(Breach(kind, str(agent), text))


def _limits(space: Any, seat: Seat) -> dict[str, Limits]:
    """Part of an observation -> its limits; a Discrete observation has none."""
    if seat.masked:
        space = space["observation"]
    if seat.parts:
        return {part: _box(space[part]) for part in ("planes", "features")}
    return {} if seat.kinds else {"": _box(space)}


def _box(space: Any) -> Limits:
    low, high = np.asarray(space.low), np.asarray(space.high)
    whole = space.dtype.kind in "biu"
    # Pictures are large, and bytes are never outside.
    picture = space.dtype == np.uint8 and (low == 0).all() and (high == IMAGE).all()
    if picture or (np.isneginf(low).all() and np.isposinf(high).all()):
        return Limits(space.shape, None, None, whole)
    return Limits(space.shape, low, high, whole)


def _index(place: tuple[Any, ...]) -> str:
    return f"[{', '.join(str(int(i)) for i in place)}]"
