"""Dispersion: players begin at one place and see the same, and there is food for each somewhere.

Whoever does as the others do goes with them from food to food. A team that parts is done sooner. So
the game tells whether a learner can make players differ who are alike to begin with. It follows
VMAS's scenario of this name, with five actions on a lattice in place of forces.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.core.config import Config, NonNegativeInt, PositiveFloat, PositiveInt
from coplay.core.entities import EntityList, in_a_row
from coplay.core.errors import UserError
from coplay.core.game import Game, Observation, Outcome, ScriptedPolicy
from coplay.core.layout import Layout, PlacedThing
from coplay.games.drawing import FLOOR, Pen

MOVES = ((0, -1), (0, 1), (-1, 0), (1, 0), (0, 0))  # (x, y); y goes down
STAY = 4
WIDE = 8.0  # of the sheet that a state is drawn on
FOOD = "#009E73"


@dataclass(frozen=True)
class DispersionConfig(Config):
    """Players who begin at one place part to eat everything."""

    players: PositiveInt = 4
    """Number of seats, and of foods."""
    size: PositiveInt = 10
    """Steps from the middle, where all begin, to the edge."""
    horizon: PositiveInt = 30
    """Steps after which an episode is truncated."""
    reach: PositiveFloat = 1.0
    """How near a player must come to eat, in steps."""
    nearest: NonNegativeInt = 0
    """Foods that a player sees: its nearest ones, so that views have the same size whatever the
    number of players; 0: all, in the same order for everybody."""
    share_reward: bool = False
    """Everybody gets the team's mean in place of what they eat themselves."""
    time_reward: float = 0.0
    """Added to every seat's reward at every step."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reach < 0.75:
            raise UserError("reach must be at least 0.75: some food would be out of reach for all")


class DispersionState(NamedTuple):
    """One game copy. Places are (x, y) from the middle, in steps.

    place: of the seats. food: where food lies. left: which of it is still there. last: what each
    seat did in the step before. time: steps played.
    """

    place: Int[Array, "seat 2"]
    food: Float[Array, "food 2"]
    left: Bool[Array, " food"]
    last: Int[Array, " seat"]
    time: Int[Array, ""]


class Dispersion(Game):
    """See the module docstring. A food is worth 1, shared by those who reach it in the same step.
    An episode ends when nothing is left. Players do not see each other."""

    name: ClassVar[str] = "dispersion"
    action_names: ClassVar[tuple[str, ...]] = ("up", "down", "left", "right", "stay")
    idle_action: ClassVar[int | None] = STAY

    config: DispersionConfig = eqx.field(static=True)

    @property
    def seats(self) -> int:
        return self.config.players

    @property
    def horizon(self) -> int:
        return self.config.horizon

    @property
    def full_view(self) -> bool:
        """The state says where the others are, which nobody sees."""
        return False

    @property
    def scripted(self) -> Mapping[str, ScriptedPolicy]:
        """nearest: goes to the food that is nearest to it. food-K: to the food of that number, and
        after that to the nearest."""
        specialists = {f"food-{food}": _specialist(food) for food in range(self.seats)}
        return {"nearest": _nearest} | specialists

    @property
    def entities(self) -> tuple[EntityList, ...]:
        foods = self.config.nearest or self.seats
        return (EntityList("foods", in_a_row(3, foods, 3), there=2),)

    def reset(self, key: PRNGKeyArray) -> DispersionState:
        seats, size = self.seats, float(self.config.size)
        return DispersionState(
            place=jnp.zeros((seats, 2), jnp.int32),
            food=jax.random.uniform(key, (seats, 2), minval=-size, maxval=size),
            left=jnp.ones(seats, bool),
            last=jnp.full(seats, STAY, jnp.int32),
            time=jnp.zeros((), jnp.int32),
        )

    def step(
        self, key: PRNGKeyArray, state: DispersionState, actions: Int[Array, " seat"]
    ) -> tuple[DispersionState, Outcome]:
        config, alive = self.config, self.alive(state)
        size = config.size
        moved = jnp.clip(state.place + jnp.asarray(MOVES)[actions], -size, size)
        near = _distance(moved, state.food) <= config.reach
        eating = (near & state.left).astype(jnp.float32)
        shares = eating / jnp.maximum(jnp.sum(eating, axis=0), 1.0)
        eaten = jnp.sum(shares, axis=1)
        if config.share_reward:
            eaten = jnp.broadcast_to(jnp.mean(eaten), eaten.shape)
        reward = jnp.where(alive, eaten + config.time_reward, 0.0)
        left = state.left & ~jnp.any(near, axis=0)
        state = DispersionState(
            moved.astype(jnp.int32), state.food, left, actions.astype(jnp.int32), state.time + 1
        )
        done = ~jnp.any(left)
        return state, Outcome(reward, alive & done, ~done & (state.time >= config.horizon))

    def observe(self, state: DispersionState) -> Observation:
        size, seats = self.config.size, self.seats
        way = (state.food - state.place[:, None]) / (2.0 * size)
        there = jnp.broadcast_to(state.left, way.shape[:2])
        foods = jnp.where(there[..., None], jnp.concatenate([way, there[..., None]], -1), 0.0)
        shown = min(self.config.nearest, seats)
        if shown:
            far = jnp.where(there, jnp.sum(jnp.square(way), axis=-1), jnp.inf)
            order = jnp.argsort(far, axis=1)[:, :shown]
            foods = jnp.take_along_axis(foods, order[..., None], axis=1)
            missing = self.config.nearest - shown
            foods = jnp.pad(foods, ((0, 0), (0, missing), (0, 0)))
        time = jnp.broadcast_to(state.time / self.horizon, (seats, 1))
        own = state.place / float(size)
        return Observation(
            planes=jnp.zeros((seats, 0, 0, 0), jnp.int8),
            features=jnp.concatenate([own, time, foods.reshape(seats, -1)], axis=1),
            legal=jnp.ones((seats, self.actions), bool),
        )

    def alive(self, state: DispersionState) -> Bool[Array, " seat"]:
        return jnp.broadcast_to(jnp.any(state.left), (self.seats,))

    def last_actions(self, state: DispersionState) -> Int[Array, " seat"]:
        return state.last

    def permute_seats(self, state: DispersionState, order: Int[Array, " seat"]) -> DispersionState:
        return state._replace(place=state.place[order], last=state.last[order])

    def scores(self, state: DispersionState) -> Mapping[str, Float[Array, ""]]:
        """eaten: the share of all food."""
        return {"eaten": 1.0 - jnp.mean(state.left.astype(jnp.float32))}

    @property
    def action_moves(self) -> tuple[tuple[float, float] | None, ...]:
        return tuple((x * self._unit, y * self._unit) for x, y in MOVES)

    @property
    def _unit(self) -> float:
        """Length of a step on the sheet."""
        return WIDE / (2 * self.config.size + 1)

    def layout(self, state: DispersionState) -> Layout:
        unit, middle = self._unit, WIDE / 2
        food = np.asarray(state.food)[np.asarray(state.left)] * unit + middle
        things = [PlacedThing(FOOD, float(x), float(y), unit) for x, y in food]
        radius = max(unit / 2, 0.15)
        places = np.asarray(state.place) * unit + middle
        return Layout(WIDE, WIDE, things, [(float(x), float(y), radius) for x, y in places])

    def draw(self, state: DispersionState, cell: int = 48) -> np.ndarray:
        layout = self.layout(state)
        pen = Pen(WIDE * cell, WIDE * cell, FLOOR)
        for thing in layout.things:
            half = thing.size * cell / 2
            pen.ellipse(thing.x * cell, thing.y * cell, half, half, FOOD)
        for seat, player in enumerate(layout.players):
            assert player is not None
            x, y, radius = (length * cell for length in player)
            pen.disc(x, y, radius, seat)
        return pen.picture()

    def text(self, state: DispersionState) -> str:
        """A map of letters: seats by their numbers, food as `o`."""
        wide = 2 * self.config.size + 1
        letters = np.full((wide, wide), ".")
        food = np.rint(np.asarray(state.food)[np.asarray(state.left)]).astype(int)
        for x, y in food + self.config.size:
            letters[y, x] = "o"
        for seat, (x, y) in enumerate(np.asarray(state.place) + self.config.size):
            letters[y, x] = str(seat % 10)
        return "\n".join("".join(row) for row in letters)


def _distance(
    place: Int[Array, "seat 2"], food: Float[Array, "food 2"]
) -> Float[Array, "seat food"]:
    return jnp.linalg.norm(place[:, None] - food, axis=-1)


def _towards(way: Float[Array, "2"], reach: float) -> Float[Array, " action"]:
    """The action along the longer side of the way; none where it leads nowhere."""
    across = jnp.abs(way[0]) >= jnp.abs(way[1])
    sideways = jnp.where(way[0] > 0, 3, 2)
    action = jnp.where(across, sideways, jnp.where(way[1] > 0, 1, 0))
    action = jnp.where(jnp.linalg.norm(way) <= reach, STAY, action)
    return (action == jnp.arange(len(MOVES))).astype(jnp.float32)


def _nearest(game: Dispersion, state: Any) -> Float[Array, " action"]:
    """See `Dispersion.scripted`."""
    far = jnp.where(state.left, _distance(state.place[:1], state.food)[0], jnp.inf)
    food = state.food[jnp.argmin(far)]
    return _towards(food - state.place[0], game.config.reach)


@functools.cache
def _specialist(food: int) -> ScriptedPolicy:
    def policy(game: Dispersion, state: Any) -> Float[Array, " action"]:
        own = _towards(state.food[food] - state.place[0], game.config.reach)
        return jnp.where(state.left[food], own, _nearest(game, state))

    return policy
