"""Predator and prey: two sides of unequal size; what one side wins the other loses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from coplay.core.config import Range
from coplay.core.errors import UserError
from coplay.core.game import Observation, Outcome, ScriptedPolicy
from coplay.games.board.board_game import (
    STAY,
    BoardConfig,
    BoardGame,
    Size,
    moving,
    towards,
    uniform,
)
from coplay.games.board.chance import drawn_cell, occupied
from coplay.games.board.drawing import Icon, paw_icon
from coplay.games.board.walls import UNREACHABLE, random_words

APART = 3
"""A prey that was caught reappears at least so far from every predator, where there is room."""


@dataclass(frozen=True)
class PredatorPreyConfig(BoardConfig):
    """Predator and prey."""

    players: Size = 4
    """Number of seats; the predators come first, then the prey."""
    prey: Annotated[int, Range(least=1)] = 1
    """How many of the seats are prey."""
    reward: float = 10.0
    """What a catch brings, shared by the predators that make it, and costs the prey."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prey >= self.players:
            raise UserError(
                f"{self.prey} prey among {self.players} players leave no predator: set game.prey "
                "below game.players"
            )


class PredatorPreyState(NamedTuple):
    """One game copy. Cells are numbered row by row.

    cell: [seat] where each player stands.
    last: [seat] the last action as executed.
    place: [seat] a number that stays with the player when seats are renumbered.
    hunted: [seat] the player is prey.
    board: [] which wall map.
    time: [] steps played.
    """

    cell: Integer[Array, " seat"]
    last: Integer[Array, " seat"]
    place: Integer[Array, " seat"]
    hunted: Bool[Array, " seat"]
    board: Integer[Array, ""]
    time: Integer[Array, ""]


class PredatorPrey(BoardGame):
    """Rules in `step`, ego views in `observe`, scripted players below. Nobody leaves."""

    config: PredatorPreyConfig = eqx.field(static=True)

    name = "predator-prey"
    action_names = ("up", "down", "left", "right", "stay")
    seat_features = len(action_names)
    thing_names: ClassVar[tuple[str, ...]] = ("predators", "prey")
    seat_fields = ("cell", "last", "place", "hunted")

    def __init__(self, config: PredatorPreyConfig = PredatorPreyConfig()):
        super().__init__(config, 0)

    @property
    def teams(self) -> tuple[int, ...]:
        """Predators 0, prey 1."""
        return tuple(int(place >= self._predators) for place in range(self.seats))

    @property
    def side_names(self) -> tuple[str, ...]:
        return self.thing_names

    def side_of(self, state: PredatorPreyState) -> Int[Array, " seat"]:
        return state.hunted.astype(jnp.int32)

    @property
    def _predators(self) -> int:
        return self.config.players - self.config.prey

    @property
    def has_sparse_view(self) -> bool:
        return False

    # --- rules ---------------------------------------------------------------------------------

    def reset(self, key: PRNGKeyArray) -> PredatorPreyState:
        seats = self.seats
        board, cell = self.scatter(key, seats)
        return PredatorPreyState(
            cell=cell,
            last=jnp.full(seats, STAY, jnp.int8),
            place=jnp.arange(seats, dtype=jnp.int8),
            hunted=jnp.arange(seats) >= self._predators,
            board=board,
            time=jnp.int16(0),
        )

    def legal(self, state: PredatorPreyState) -> Bool[Array, "seat action"]:
        """Which actions are legal for each seat."""
        return jnp.concatenate([self.legal_moves(state), jnp.ones((self.seats, 1), bool)], axis=-1)

    def step(
        self, key: PRNGKeyArray, state: PredatorPreyState, actions: Int[Array, " seat"]
    ) -> tuple[PredatorPreyState, Outcome]:
        """A prey is caught by the predators that share its cell after the moves, and by those that
        swapped cells with it. It reappears on a random free cell."""
        config, hunted = self.config, state.hunted
        chosen, executed = self.executed(self.legal(state), actions)
        cell = self.moved(state, chosen)
        before = state.cell
        meets = cell[:, None] == cell[None, :]
        swaps = (cell[:, None] == before[None, :]) & (before[:, None] == cell[None, :])
        catches = (meets | swaps) & ~hunted[:, None] & hunted[None, :]  # [predator, prey]
        number = jnp.sum(catches, axis=0)
        caught = number > 0
        gain = jnp.sum(catches / jnp.maximum(number, 1), axis=1)
        reward = config.reward * (gain - caught)

        # One after the other in the order of their places, which renumbering does not change.
        walls = self.maps.walls[state.board]
        cells = jnp.arange(walls.shape[0], dtype=cell.dtype)
        far = self.distance(state, cells[:, None], cell[None, :])  # [cell, seat]
        apart = jnp.all(hunted | (far >= APART), axis=1)
        gone = jnp.where(caught, -1, cell)
        for index, word in enumerate(random_words(key, config.prey)):
            is_it = caught & (state.place == self._predators + index)
            free = ~(occupied(walls.shape[0], gone) | walls)
            wanted = jnp.where(jnp.any(free & apart), free & apart, free)
            gone = jnp.where(is_it, drawn_cell(word, wanted).astype(cell.dtype), gone)

        time = state.time + jnp.int16(1)
        following = state._replace(cell=gone, last=executed, time=time)
        nobody = jnp.zeros(self.seats, bool)
        return following, Outcome(reward.astype(jnp.float32), nobody, time >= config.horizon)

    # --- ego views and pictures ----------------------------------------------------------------

    def observe(self, state: PredatorPreyState) -> Observation:
        """Planes: the players ego-first, walls, predators, prey. Features: for each player
        ego-first its last action one-hot, whether the own player is prey, time / horizon."""
        seats = self.seats
        seen = self.board_views(
            state,
            jnp.tile(state.cell, 2),
            jnp.concatenate([~state.hunted, state.hunted]),
            (slice(0, seats), slice(seats, None)),
            self.legal(state),
        )
        own = state.hunted[:, None].astype(jnp.float32)
        parts = [seen.features[:, :-1], own, seen.features[:, -1:]]
        return seen._replace(features=jnp.concatenate(parts, axis=1))

    def things(self, state: PredatorPreyState) -> list[tuple[int, Icon, str]]:
        """A paw marks the predators: P."""
        return [
            (int(spot), paw_icon, "P")
            for spot, hunted in zip(state.cell, np.asarray(state.hunted), strict=True)
            if not hunted
        ]

    # --- scripted players ----------------------------------------------------------------------

    @property
    def scripted(self) -> Mapping[str, ScriptedPolicy]:
        return {"chaser": chaser, "encircler": encircler, "evader": evader, "corner": corner}


def _others(ego: PredatorPreyState) -> Bool[Array, " seat"]:
    """Who is on the other side than seat 0."""
    return ego.hunted != ego.hunted[0]


def _room(
    game: PredatorPrey, ego: PredatorPreyState, cells: Integer[Array, " cell"]
) -> Int[Array, " cell"]:
    """How far cells are from the nearest player of the other side."""
    far = game.distance(ego, cells[:, None], ego.cell[None, :])
    return jnp.min(jnp.where(_others(ego), far, UNREACHABLE), axis=1)


def chaser(game: PredatorPrey, ego: PredatorPreyState) -> Float[Array, " action"]:
    """Goes straight to the nearest player of the other side."""
    legal = game.legal(ego)[0]
    return moving(game, towards(game, ego, legal, ego.cell, _others(ego)), uniform(legal))


def encircler(game: PredatorPrey, ego: PredatorPreyState) -> Float[Array, " action"]:
    """Goes to a cell beside the nearest player of the other side to which no companion is nearer;
    beside it, onto it. Without such a cell it chases."""
    config, legal = game.config, game.legal(ego)[0]
    others = _others(ego)
    far = jnp.where(others, game.distance(ego, ego.cell[0], ego.cell), UNREACHABLE)
    target = ego.cell[jnp.argmin(far)]
    row, column = target // config.width, target % config.width
    down, right = np.array([-1, 1, 0, 0]), np.array([0, 0, -1, 1])
    inside = (row + down >= 0) & (row + down < config.height)
    inside &= (column + right >= 0) & (column + right < config.width)
    beside = jnp.clip(target + game.offsets[:4], 0, config.height * config.width - 1)
    free = inside & ~game.maps.walls[ego.board][beside]
    mine = game.distance(ego, ego.cell[0], beside)
    theirs = game.distance(ego, ego.cell[1:, None], beside[None, :])
    theirs = jnp.min(jnp.where(others[1:, None], UNREACHABLE, theirs), axis=0, initial=UNREACHABLE)
    spots = free & (mine <= theirs)
    around = moving(game, towards(game, ego, legal, beside, spots), uniform(legal))
    return jnp.where(jnp.any(spots) & (jnp.min(far) > 1), around, chaser(game, ego))


def evader(game: PredatorPrey, ego: PredatorPreyState) -> Float[Array, " action"]:
    """Steps, or stays, where the nearest player of the other side is farthest away."""
    legal = game.legal(ego)[0]
    most = game.config.height * game.config.width - 1
    target = jnp.clip(ego.cell[0] + jnp.asarray(game.offsets), 0, most)
    room = jnp.where(legal, _room(game, ego, target), -1)
    return uniform(room == jnp.max(room))


def corner(game: PredatorPrey, ego: PredatorPreyState) -> Float[Array, " action"]:
    """Goes to the corner that is farthest from the nearest player of the other side, and stays
    there; with a wall in every corner it evades."""
    config, legal = game.config, game.legal(ego)[0]
    end = config.width - 1
    low = (config.height - 1) * config.width
    corners = jnp.array([0, end, low, low + end], ego.cell.dtype)
    free = ~game.maps.walls[ego.board][corners]
    room = jnp.where(free, _room(game, ego, corners), -1)
    wanted = free & (room == jnp.max(room))
    there = jnp.any(wanted & (corners == ego.cell[0]))
    stay = jnp.eye(game.actions)[STAY]
    going = moving(game, towards(game, ego, legal, corners, wanted), stay)
    return jnp.where(jnp.any(free), jnp.where(there, stay, going), evader(game, ego))
