"""A PettingZoo environment as seats see it: fixed places and arrays of fixed shapes.

The agents of `possible_agents` are the seats, in that order. Seats whose observations or actions
are fewer than others' are padded: zeros in observations, actions that are never legal.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from coplay.core.errors import UserError, see

IMAGE = 255  # the highest value of a picture in bytes; it is scaled to [0, 1]
BYTES = ("bool", "int8", "uint8")  # kept as they are in planes; all else becomes float32


@dataclass(frozen=True)
class Seat:
    """What one agent sees and does.

    planes: [height, width, plane] of a board, (0, 0, 0) without one. features: how many numbers.
    image: the board, or the numbers where there is no board, are bytes up to 255.
    kinds: of a Discrete observation, which is seen one-hot (0: it is none); lowest: its first.
    parts: the observation is a dictionary of planes and features, as `to_pettingzoo` gives.
    masked: the observation is a dictionary with the legal actions beside it.
    actions: how many; first: the number of the first in the environment.
    """

    agent: Any
    planes: tuple[int, int, int]
    plane_type: str
    features: int
    image: bool
    kinds: int
    lowest: int
    parts: bool
    masked: bool
    actions: int
    first: int


@dataclass(frozen=True)
class Seats:
    """All seats, and the shapes that hold every seat's view."""

    seats: tuple[Seat, ...]
    scores: tuple[str, ...] = ()
    """Names of the numbers, beside the rewards, that tell how an episode went."""
    global_state: int = 0
    """Numbers of the environment's own global state; 0: it shows none."""

    @property
    def count(self) -> int:
        return len(self.seats)

    @property
    def planes(self) -> tuple[int, int, int]:
        return tuple(max(sizes) for sizes in zip(*(s.planes for s in self.seats), strict=True))

    @property
    def plane_type(self) -> np.dtype:
        """bool, int8 or uint8 if all boards have it, else float32."""
        found = {seat.plane_type for seat in self.seats if math.prod(seat.planes)}
        return np.dtype(found.pop() if len(found) == 1 and found <= set(BYTES) else "float32")

    @property
    def image(self) -> bool:
        """Whether the boards are pictures in bytes."""
        boards = [seat for seat in self.seats if math.prod(seat.planes)]
        return self.plane_type == np.uint8 and all(seat.image for seat in boards)

    @property
    def features(self) -> int:
        return max(seat.features for seat in self.seats)

    @property
    def actions(self) -> int:
        return max(seat.actions for seat in self.seats)

    def notes(self) -> tuple[str, ...]:
        """What the user should know: where seats are padded."""
        said = []
        for what, each, filled in (
            ("boards", [seat.planes for seat in self.seats], "zeros"),
            ("features", [seat.features for seat in self.seats], "zeros"),
            ("actions", [seat.actions for seat in self.seats], "illegal actions"),
        ):
            if len(set(each)) > 1:
                sizes = ", ".join(
                    "x".join(map(str, x)) if isinstance(x, tuple) else str(x) for x in each
                )
                said.append(f"seats have different {what} ({sizes}): padded with {filled}")
        return tuple(said)


class Views(NamedTuple):
    """What the seats of one environment see, as arrays to write into.

    planes: [seat, height, width, plane]. features: [seat, feature] float32.
    legal: [seat, action] bool. alive: [seat] bool. global_state: [number] float32, the
    environment's own state, which no seat sees.
    """

    planes: np.ndarray
    features: np.ndarray
    legal: np.ndarray
    alive: np.ndarray
    global_state: np.ndarray


# --- reading the spaces ------------------------------------------------------------------------


def turn_by_turn(name: str, env: Any) -> str:
    """What to say of an environment of turns, or of its class: which wrapper of PettingZoo makes it
    parallel."""
    parallel = (getattr(env, "metadata", None) or {}).get("is_parallelizable", False)
    wrapper = "aec_to_parallel" if parallel else "turn_based_aec_to_parallel"
    return (
        f"{name} is a turn-by-turn environment: write a function that returns "
        f"pettingzoo.utils.{wrapper}(env), and name it as pettingzoo:MODULE:FUNCTION"
        + see("how-to/pettingzoo")
    )


def read_seats(env: Any, name: str) -> Seats:
    """The seats of an environment, or an error that says what it would need to have any."""
    if hasattr(env, "agent_iter"):
        raise UserError(turn_by_turn(name, env))
    agents = getattr(env, "possible_agents", None)
    if not agents:
        raise UserError(
            f"{name} has no `possible_agents`: seats are fixed, so the environment must say "
            "beforehand which agents there can be"
        )
    seats = tuple(_read_seat(env, agent, name) for agent in agents)
    scores = tuple(getattr(env, "score_names", ()))
    return Seats(seats, scores, int(getattr(env, "world_size", 0)))


def _read_seat(env: Any, agent: Any, name: str) -> Seat:
    from gymnasium import spaces

    actions = env.action_space(agent)
    if not isinstance(actions, spaces.Discrete):
        raise UserError(
            f"{name}: the actions of {agent} are {actions}; only Discrete ones can be played. "
            "Choose the environment's discrete actions if it has them (often "
            "continuous_actions=False), or wrap it so that each action is one integer"
        )
    seen, masked = env.observation_space(agent), False
    if isinstance(seen, spaces.Dict) and set(seen.spaces) == {"observation", "action_mask"}:
        seen, masked = seen["observation"], True
    parts = isinstance(seen, spaces.Dict) and set(seen.spaces) == {"planes", "features"}
    planes, plane_type, features, image, kinds, lowest = (0, 0, 0), "bool", 0, False, 0, 0
    if parts:
        planes, plane_type = seen["planes"].shape, seen["planes"].dtype.name
        features = math.prod(seen["features"].shape)
        image = seen["planes"].dtype == np.uint8 and (seen["planes"].high == IMAGE).all()
    elif isinstance(seen, spaces.Discrete):
        features = kinds = int(seen.n)
        lowest = int(seen.start)
    elif isinstance(seen, spaces.Box):
        image = seen.dtype == np.uint8 and seen.high.size > 0 and seen.high.max() == IMAGE
        if len(seen.shape) == 3:
            planes, plane_type = seen.shape, seen.dtype.name
        else:
            features = math.prod(seen.shape)
    else:
        raise UserError(
            f"{name}: the observations of {agent} are {seen}; only Box and Discrete ones can be "
            'seen, alone or as {"observation": …, "action_mask": …}. Wrap the environment so that '
            "each observation is one array, e.g. by gymnasium.spaces.flatten"
        )
    return Seat(
        agent=agent,
        planes=tuple(int(size) for size in planes),  # type: ignore[arg-type]
        plane_type=plane_type,
        features=features,
        image=bool(image),
        kinds=kinds,
        lowest=lowest,
        parts=parts,
        masked=masked,
        actions=int(actions.n),
        first=int(actions.start),
    )
