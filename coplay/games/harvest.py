"""Harvest: apples grow back where apples are, so greed ends the orchard."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from coplay.core.errors import UserError
from coplay.core.game import Observation, Outcome, ScriptedPolicy
from coplay.games.board.board_game import (
    STAY,
    BoardGame,
    Count,
    OpenBoardConfig,
    Size,
    avoid,
    follow,
    moving,
    towards,
    uniform,
)
from coplay.games.board.chance import first_come
from coplay.games.board.drawing import Icon, food_icon
from coplay.games.board.hidden import HiddenBoard, hidden_board
from coplay.games.board.walls import place, random_words
from coplay.games.drawing import Colour

GROWTH = (0.0, 0.005, 0.02, 0.05)
"""Probability per step that an apple grows on bare soil with 0, 1, 2 or more apples within reach.
"""
REACH = 2
"""How far, in steps, apples help each other to grow."""
SPACING = 5
"""Rows and columns between the centres of two patches."""
CAREFUL = 3
"""Apples that the careful player leaves within reach of one that it takes."""
SOIL = "#E4EBD3"


@dataclass(frozen=True)
class HarvestConfig(OpenBoardConfig):
    """Harvest."""

    horizon: Size = 100
    """Steps after which an episode is truncated."""
    view: Count | None = 2
    """If v: each player sees a (2v+1)x(2v+1) window centred on itself; none: the whole board."""

    def __post_init__(self) -> None:
        super().__post_init__()
        soil = int(orchard(self.height, self.width).sum())
        if soil == 0 or self.height * self.width - soil < self.players:
            raise UserError(
                f"board too small: {self.height}x{self.width} has {soil} cells of soil and "
                f"{self.height * self.width - soil} others for {self.players} players"
            )


def orchard(height: int, width: int) -> np.ndarray:
    """[row, column] where apples grow: patches of five cells in the form of a plus, their centres
    in rows and columns 1, 6, 11, …"""
    soil = np.zeros((height, width), bool)
    for row in range(1, height - 1, SPACING):
        for column in range(1, width - 1, SPACING):
            soil[row - 1 : row + 2, column] = True
            soil[row, column - 1 : column + 2] = True
    return soil


class HarvestState(NamedTuple):
    """One game copy. Cells are numbered row by row.

    cell: [seat] where each player stands.
    last: [seat] the last action as executed.
    place: [seat] a number that stays with the player when seats are renumbered.
    apple: [spot] which of the spots of the orchard have an apple.
    board: [] which wall map; there is one, without walls.
    time: [] steps played.
    """

    cell: Integer[Array, " seat"]
    last: Integer[Array, " seat"]
    place: Integer[Array, " seat"]
    apple: Bool[Array, " spot"]
    board: Integer[Array, ""]
    time: Integer[Array, ""]


class Harvest(BoardGame):
    """Rules in `step`, ego views in `observe`, scripted players below.

    Who steps on an apple takes it. Nobody leaves.
    """

    config: HarvestConfig = eqx.field(static=True)

    name = "harvest"
    action_names = ("up", "down", "left", "right", "stay")
    seat_features = len(action_names)
    thing_names: ClassVar[tuple[str, ...]] = ("apples", "soil")
    seat_fields = ("cell", "last", "place")

    def __init__(self, config: HarvestConfig = HarvestConfig()):
        super().__init__(config, 0)

    @property
    def spots(self) -> np.ndarray:
        """[spot] the cells where apples grow."""
        return np.flatnonzero(orchard(self.config.height, self.config.width)).astype(np.int16)

    @property
    def within_reach(self) -> np.ndarray:
        """[spot, spot] which other spots are close enough to help."""
        row, column = np.divmod(self.spots.astype(int), self.config.width)
        far = np.abs(row[:, None] - row) + np.abs(column[:, None] - column)
        return (far <= REACH) & (far > 0)

    # --- rules ---------------------------------------------------------------------------------

    def reset(self, key: PRNGKeyArray) -> HarvestState:
        """An apple on every spot, the players on distinct other cells."""
        bare = np.flatnonzero(~orchard(self.config.height, self.config.width)).astype(np.int16)
        where = place(random_words(key, self.seats), len(bare))
        return HarvestState(
            cell=jnp.asarray(bare)[where],
            last=jnp.full(self.seats, STAY, jnp.int8),
            place=jnp.arange(self.seats, dtype=jnp.int8),
            apple=jnp.ones(len(self.spots), bool),
            board=jnp.int16(0),
            time=jnp.int16(0),
        )

    def legal(self, state: HarvestState) -> Bool[Array, "seat action"]:
        """Which actions are legal for each seat."""
        return jnp.concatenate([self.legal_moves(state), jnp.ones((self.seats, 1), bool)], axis=-1)

    def step(
        self, key: PRNGKeyArray, state: HarvestState, actions: Int[Array, " seat"]
    ) -> tuple[HarvestState, Outcome]:
        """All move; who arrives on an apple takes it, of several one by chance. Then apples grow on
        spots that are bare and on which nobody stands."""
        take_key, grow_key = jax.random.split(key)
        chosen, executed = self.executed(self.legal(state), actions)
        cell = self.moved(state, chosen)
        on = cell[:, None] == self.spots  # [seat, spot]
        takes = first_come(random_words(take_key, self.seats), state.place, on & state.apple)
        apple = state.apple & ~jnp.any(takes, axis=0)
        near = jnp.sum(self.within_reach & apple, axis=1)
        chance = jnp.asarray(GROWTH)[jnp.minimum(near, len(GROWTH) - 1)]
        grows = jax.random.uniform(grow_key, chance.shape) < chance
        time = state.time + jnp.int16(1)
        following = state._replace(
            cell=cell, last=executed, apple=apple | (grows & ~jnp.any(on, axis=0)), time=time
        )
        reward = jnp.any(takes, axis=1).astype(jnp.float32)
        nobody = jnp.zeros(self.seats, bool)
        return following, Outcome(reward, nobody, time >= self.config.horizon)

    # --- ego views and pictures ----------------------------------------------------------------

    def observe(self, state: HarvestState) -> Observation:
        """Planes: the players ego-first, walls (only beyond the edge), apples, soil. Features: for
        each player ego-first its last action one-hot, then time / horizon."""
        cells, there, kinds = self._things(state)
        return self.board_views(state, cells, there, kinds, self.legal(state))

    def _things(self, state: HarvestState) -> tuple[Array, Array, tuple[slice, slice]]:
        """Apples, then soil: cells, which are there, and the two parts of the list."""
        count = len(self.spots)
        there = jnp.concatenate([state.apple, jnp.ones(count, bool)])
        return jnp.tile(self.spots, 2), there, (slice(0, count), slice(count, None))

    def things(self, state: HarvestState) -> list[tuple[int, Icon, str]]:
        """The apples: a."""
        spots = zip(self.spots, np.asarray(state.apple), strict=True)
        return [(int(spot), food_icon(0), "a") for spot, there in spots if there]

    @property
    def ground(self) -> Mapping[int, Colour]:
        return {int(spot): SOIL for spot in self.spots}

    @property
    def hidden(self) -> "HiddenHarvest | None":
        found: Any = hidden_board(HiddenHarvest, self)
        return found

    # --- scripted players ----------------------------------------------------------------------

    @property
    def scripted(self) -> Mapping[str, ScriptedPolicy]:
        return {"sustainable": sustainable, "nearest-apple": nearest_apple, "careful": careful}

    @property
    def blocks(self) -> Mapping[str, ScriptedPolicy]:
        return {**self.scripted, "follow": follow, "avoid": avoid}


class HiddenHarvest(HiddenBoard):
    """Which apples are there out of sight."""

    game: Harvest

    rooted = True

    @property
    def start_cells(self) -> np.ndarray:
        return ~orchard(self.game.config.height, self.game.config.width).reshape(-1)

    def things(self, state: HarvestState) -> tuple[Integer[Array, " spot"], Bool[Array, " spot"]]:
        return jnp.asarray(self.game.spots), state.apple

    def with_things(
        self, state: HarvestState, cells: Integer[Array, " spot"], there: Bool[Array, " spot"]
    ) -> HarvestState:
        return state._replace(apple=there)


def nearest_apple(game: Harvest, ego: HarvestState) -> Float[Array, " action"]:
    """Goes to a nearest apple and takes it; at random while there is none."""
    legal = game.legal(ego)[0]
    return moving(
        game, towards(game, ego, legal, jnp.asarray(game.spots), ego.apple), uniform(legal)
    )


def _sparing(game: Harvest, ego: HarvestState, leave: int) -> Float[Array, " action"]:
    """Goes to a nearest apple with so many others within reach, and steps on no other apple; waits
    while there is none."""
    near = jnp.sum(game.within_reach & ego.apple, axis=1)
    ripe = ego.apple & (near >= leave)
    target = ego.cell[0] + jnp.asarray(game.offsets)
    spared = jnp.any((target[:, None] == game.spots) & ego.apple & ~ripe, axis=1)
    allowed = game.legal(ego)[0] & ~spared
    stay = jnp.eye(game.actions)[STAY]
    aside = jnp.where(jnp.any(ripe), uniform(allowed), stay)
    return moving(game, towards(game, ego, allowed, jnp.asarray(game.spots), ripe), aside)


def sustainable(game: Harvest, ego: HarvestState) -> Float[Array, " action"]:
    """Takes nearest apples but never the last one of a patch."""
    return _sparing(game, ego, 1)


def careful(game: Harvest, ego: HarvestState) -> Float[Array, " action"]:
    """Takes an apple only where three others stay within reach, which keeps growth at its most."""
    return _sparing(game, ego, CAREFUL)
