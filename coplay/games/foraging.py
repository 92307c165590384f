"""Level-based foraging: food is collected by neighbours whose levels add up to its own.

As published by Albrecht and Ramamoorthy (2013) and by Christianos, Schäfer and Albrecht (2020); the
package `lbforaging` is the reference.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from coplay.core.config import NonNegativeFloat, Range
from coplay.core.entities import EntityList, in_a_row
from coplay.core.errors import UserError, unknown
from coplay.core.game import Observation, Outcome, ScriptedPolicy
from coplay.games.board.board_game import (
    STAY,
    WHEREABOUTS,
    BoardGame,
    OpenBoardConfig,
    Size,
    uniform,
    whereabouts,
)
from coplay.games.board.chance import drawn_cell, occupied
from coplay.games.board.drawing import Icon, food_icon
from coplay.games.board.thing_goals import ThingGoals
from coplay.games.board.walls import UNREACHABLE, bounded, random_words

LOAD = 5
Level = Annotated[int, Range(least=1, most=30)]


@dataclass(frozen=True)
class ForagingConfig(OpenBoardConfig):
    """Level-based foraging."""

    foods: Annotated[int, Range(least=1, most=64)] = 3
    """Foods on the board at the start; fewer if there is no room for all."""
    levels: Level = 2
    """The highest level of a player; each is drawn from 1 to this."""
    most_food_level: Level | None = None
    """The highest level of a food; none: the sum of the three lowest levels of players."""
    cooperative: bool = False
    """Every food has the highest level that a food can have."""
    penalty: NonNegativeFloat = 0.0
    """What loading costs if the levels do not suffice."""
    show: Literal["board", "lists"] = "board"
    """What views are made of: planes of the board; or, as in lbforaging, numbers of each food and
    of each player: how far down and to the right of the own cell it is, and its level."""

    def __post_init__(self) -> None:
        super().__post_init__()
        inner = (self.height - 2) * (self.width - 2)
        if self.height < 3 or self.width < 3 or inner <= self.players:
            raise UserError(
                f"board too small: food never lies at the border, and {self.height}x{self.width} "
                f"has {max(inner, 0)} inner cells for {self.players} players and a food"
            )


@dataclass(frozen=True)
class JaxAhtForagingConfig(ForagingConfig):
    """Level-based foraging as in JaxAHT's comparison of ad hoc teamwork."""

    height: Size = 7
    """Rows of the board."""
    width: Size = 7
    """Columns of the board."""
    players: Size = 2
    """Number of seats."""
    horizon: Size = 100
    """Steps after which an episode is truncated."""
    levels: Level = 1
    """The highest level of a player; each is drawn from 1 to this."""
    cooperative: bool = True
    """Every food has the highest level that a food can have."""


PRESETS = {"jaxaht-7x7": JaxAhtForagingConfig}
"""What follows the colon in `foraging:…` -> the configuration with its defaults."""


class ForagingState(NamedTuple):
    """One game copy. Cells are numbered row by row.

    cell: [seat] where each player stands.
    level: [seat] of each player.
    last: [seat] the last action as executed.
    food: [food] cells of the foods.
    food_level: [food] of each food; 0: there was no room for it.
    left: [food] not collected yet.
    board: [] which wall map; there is one, without walls.
    time: [] steps played.
    """

    cell: Integer[Array, " seat"]
    level: Integer[Array, " seat"]
    last: Integer[Array, " seat"]
    food: Integer[Array, " food"]
    food_level: Integer[Array, " food"]
    left: Bool[Array, " food"]
    board: Integer[Array, ""]
    time: Integer[Array, ""]


class Foraging(BoardGame):
    """Rules in `step`, ego views in `observe`, scripted players and goals below.

    Nobody leaves before the end: when no food is left all seats are terminated at once.
    """

    config: ForagingConfig = eqx.field(static=True)

    name = "foraging"
    action_names = ("up", "down", "left", "right", "none", "load")
    thing_names: ClassVar[tuple[str, ...]] = ("levels of foods", "levels of players")
    seat_fields = ("cell", "level", "last")

    def __init__(self, config: ForagingConfig = ForagingConfig()):
        super().__init__(config, 1)

    @property
    def _lists(self) -> bool:
        """Whether views are lists and no board."""
        return self.config.show == "lists"

    @property
    def seat_planes(self) -> int:  # type: ignore[override]
        return 0 if self._lists else 1

    @property
    def seat_features(self) -> int:  # type: ignore[override]
        """The last action; in lists the place and the level, too."""
        return self.actions + 3 * self._lists

    @property
    def on_grid(self) -> bool:  # type: ignore[override]
        return not self._lists

    @property
    def plane_names(self) -> tuple[str, ...]:
        return () if self._lists else super().plane_names

    @property
    def entities(self) -> tuple[EntityList, ...]:
        if not self._lists:
            return ()
        each, seats = self.seat_features, self.seats
        players = in_a_row(each, seats - 1, each)
        foods = in_a_row(seats * each + 3, self.config.foods, 3)
        lists = (EntityList("players", players, each - 1), EntityList("foods", foods, 2))
        return tuple(one for one in lists if one.places)

    @property
    def has_sparse_view(self) -> bool:
        return False

    def alive(self, state: ForagingState) -> Bool[Array, " seat"]:
        return jnp.broadcast_to(jnp.any(state.left), (self.seats,))

    def present(self, state: ForagingState) -> Bool[Array, " seat"]:
        return jnp.ones(self.seats, bool)

    # --- rules ---------------------------------------------------------------------------------

    def reset(self, key: PRNGKeyArray) -> ForagingState:
        """Players on distinct cells, then foods one after the other on inner cells: none beside
        another, not even diagonally, nor two steps away in a straight line."""
        config, seats = self.config, self.seats
        start, draw = jax.random.split(key)
        words = random_words(draw, seats + 2 * config.foods)
        board, cell = self.scatter(start, seats)
        level = 1 + bounded(words[:seats], config.levels)
        most = jnp.sum(jnp.sort(level)[:3])
        if config.most_food_level is not None:
            most = jnp.minimum(most, config.most_food_level)

        row, column = np.divmod(np.arange(config.height * config.width), config.width)
        inner = (row % (config.height - 1) > 0) & (column % (config.width - 1) > 0)
        down, right = (np.abs(x[:, None] - x) for x in (row, column))
        close = (np.maximum(down, right) <= 1) | (
            (np.minimum(down, right) == 0) & (down + right < 3)
        )
        free = jnp.asarray(inner) & ~occupied(len(row), cell)
        foods, levels = [], []
        for food in range(config.foods):
            spot = drawn_cell(words[seats + food], free)
            drawn = 1 + bounded(words[seats + config.foods + food], most)
            wanted = most if config.cooperative else drawn
            foods.append(spot)
            levels.append(jnp.where(jnp.any(free), wanted, 0))
            free &= ~jnp.asarray(close)[spot]
        food_level = jnp.stack(levels).astype(jnp.int8)
        return ForagingState(
            cell=cell,
            level=level.astype(jnp.int8),
            last=jnp.full(seats, STAY, jnp.int8),
            food=jnp.stack(foods).astype(jnp.int16),
            food_level=food_level,
            left=food_level > 0,
            board=board,
            time=jnp.int16(0),
        )

    def beside(self, state: ForagingState) -> Bool[Array, "seat food"]:
        """Which foods that are left each player stands beside."""
        far = self.distance(state, state.cell[:, None], state.food[None, :])
        return (far == 1) & state.left

    def legal(self, state: ForagingState) -> Bool[Array, "seat action"]:
        """Which actions are legal for each seat; only none once no food is left."""
        target = state.cell[:, None] + jnp.asarray(self.offsets[:4])
        food = jnp.any((target[..., None] == state.food) & state.left, axis=-1)
        moves = self.legal_moves(state) & ~food
        stay = jnp.ones((self.seats, 1), bool)
        load = jnp.any(self.beside(state), axis=1, keepdims=True)
        legal = jnp.concatenate([moves, stay, load], axis=-1)
        return jnp.where(jnp.any(state.left), legal, jnp.arange(self.actions) == STAY)

    def step(
        self, key: PRNGKeyArray, state: ForagingState, actions: Int[Array, " seat"]
    ) -> tuple[ForagingState, Outcome]:
        """A player moves if nobody else wants its cell, where who stays wants the own cell."""
        config = self.config
        going = jnp.any(state.left)
        chosen, executed = self.executed(self.legal(state), actions)
        wanted = self.moved(state, chosen)
        alone = jnp.sum(wanted[:, None] == wanted[None, :], axis=1) == 1
        cell = jnp.where(alone, wanted, state.cell)

        # Foods lie so far apart that nobody is beside two of them.
        loads = self.beside(state) & chosen[:, LOAD, None]  # [seat, food]; loading is no move
        level = jnp.where(loads, state.level[:, None], 0).astype(jnp.int32)
        total = jnp.sum(level, axis=0)  # [food]
        collected = (total >= state.food_level) & (total > 0)
        worth = state.food_level / jnp.maximum(jnp.sum(state.food_level), 1)
        share = level / jnp.maximum(total, 1) * worth
        reward = jnp.sum(jnp.where(collected, share, 0.0), axis=1)
        failed = jnp.any(loads & ~collected, axis=1)
        reward = reward - config.penalty * failed
        left = state.left & ~collected
        time = state.time + jnp.int16(1)
        following = state._replace(
            cell=cell, last=jnp.where(going, executed, state.last), left=left, time=time
        )
        terminated = jnp.broadcast_to(going & ~jnp.any(left), (self.seats,))
        cut = (time >= config.horizon) & jnp.any(left)
        return following, Outcome(reward.astype(jnp.float32), terminated, cut)

    # --- ego views and pictures ----------------------------------------------------------------

    def observe(self, state: ForagingState) -> Observation:
        """Planes: the players ego-first, walls (only beyond the edge), levels of foods, levels of
        players. Features: for each player ego-first its last action one-hot, then time / horizon.
        As lists: `_listed`.
        """
        foods = self.config.foods
        if self._lists:
            return self._listed(state)
        return self.board_views(
            state,
            jnp.concatenate([state.food, state.cell]),
            jnp.concatenate([state.left, jnp.ones(self.seats, bool)]),
            (slice(0, foods), slice(foods, None)),
            self.legal(state),
            jnp.concatenate([state.food_level, state.level]),
        )

    def _listed(self, state: ForagingState) -> Observation:
        """No planes. Features: for each player ego-first its last action one-hot, how far down and
        to the right it is and its level; time / horizon, the own row and column; for each food how
        far down and to the right it is, and its level. All from 0 to 1, distances from -1. Zeros
        for foods that are gone and for all that is out of sight."""
        config, seats = self.config, self.seats
        order = (np.arange(seats)[:, None] + np.arange(seats)) % seats  # [seat, ego order]
        size = np.array([config.height, config.width])

        def place(cell: Integer[Array, "*any"]) -> Integer[Array, "*any 2"]:
            return jnp.stack([cell // config.width, cell % config.width], axis=-1)

        own = place(state.cell)
        cells = jnp.concatenate([own, place(state.food)])
        way = cells[None] - own[:, None]  # [seat, player or food, axis]
        most = max(size) if config.view is None else config.view
        there = jnp.all(jnp.abs(way) <= most, axis=-1)
        there &= jnp.concatenate([jnp.ones(seats, bool), state.left])
        highest = 3 * config.levels  # of a food
        level = jnp.concatenate([state.level, state.food_level]) / highest
        numbers = jnp.concatenate(
            [way / (size - 1), jnp.broadcast_to(level[:, None], (*way.shape[:2], 1))], axis=-1
        )
        last = (state.last[:, None] == np.arange(self.actions)).astype(jnp.float32)
        last = jnp.broadcast_to(last, (seats, *last.shape))
        players = jnp.concatenate([last, numbers[:, :seats]], axis=-1)
        players = jnp.where(there[:, :seats, None], players, 0.0)
        foods = jnp.where(there[:, seats:, None], numbers[:, seats:], 0.0)
        time = jnp.full((seats, 1), state.time / config.horizon)
        parts = (
            jnp.take_along_axis(players, order[..., None], axis=1).reshape(seats, -1),
            time,
            own / (size - 1),
            foods.reshape(seats, -1),
        )
        return Observation(
            planes=jnp.zeros((seats, 0, 0, 0), jnp.int8),
            features=jnp.concatenate(parts, axis=-1).astype(jnp.float32),
            legal=self.legal(state),
        )

    def things(self, state: ForagingState) -> list[tuple[int, Icon, str]]:
        """The foods that are left, with their levels."""
        return [
            (int(spot), food_icon(int(level)), f"f{int(level)}")
            for spot, level, there in zip(state.food, state.food_level, state.left, strict=True)
            if there
        ]

    def text(self, state: ForagingState) -> str:
        levels = ", ".join(f"{seat} has {int(level)}" for seat, level in enumerate(state.level))
        return f"{super().text(state)}\nlevels: {levels}"

    # --- scripted players and goals ------------------------------------------------------------

    @property
    def scripted(self) -> Mapping[str, ScriptedPolicy]:
        return {
            "nearest": nearest_food,
            "able": able_food,
            "follower": follower,
            "centre": central_food,
        }

    @property
    def blocks(self) -> Mapping[str, ScriptedPolicy]:
        return {
            "able": able_food,
            "nearest": nearest_food,
            "farthest": farthest_food,
            "follower": follower,
            "centre": central_food,
        }

    @property
    def event_names(self) -> tuple[str, ...]:
        return ("collected with another", "collected alone", *WHEREABOUTS)

    def events(self, state: ForagingState, following: ForagingState) -> Float[Array, "seat event"]:
        taken = self.goals.taken(state, following)
        together = jnp.any(taken & (jnp.sum(taken, axis=0) > 1), axis=1)
        alone = jnp.any(taken, axis=1) & ~together
        happened = [together, alone, *whereabouts(self, following)]
        return jnp.stack(happened, axis=-1) * self.alive(state)[:, None].astype(jnp.float32)

    @property
    def goals(self) -> "ForagingGoals":
        return ForagingGoals(self)


def foraging_parts(rest: str) -> tuple[type, Callable[..., Foraging]]:
    """Configuration and maker of `foraging:PRESET`."""
    if rest not in PRESETS:
        raise unknown("setting of foraging", rest, PRESETS)
    return PRESETS[rest], Foraging


# --- scripted players ----------------------------------------------------------------------------


def go_for(
    game: Foraging, ego: ForagingState, wanted: Float[Array, " food"]
) -> Float[Array, " action"]:
    """Beside a wanted food load; else take a step that shortens the way, round other players; where
    there is none, any step to a free cell. `wanted`: probabilities of the foods; zeros: random."""
    legal = game.legal(ego)[0]
    target = jnp.clip(
        ego.cell[0] + jnp.asarray(game.offsets[:4]), 0, game.config.height * game.config.width - 1
    )
    taken = jnp.any(target[:, None] == ego.cell[None, 1:], axis=1)
    free = legal[:4] & ~taken
    far = game.distance(ego, ego.cell[0], ego.food)
    shorter = game.distance(ego, target[None, :], ego.food[:, None]) < far[:, None]
    steps = jnp.pad(uniform(free & shorter), ((0, 0), (0, 2)))  # [food, action]
    aside = uniform(jnp.concatenate([free, jnp.array([True, False])]))
    steps = jnp.where(jnp.any(steps > 0, axis=1, keepdims=True), steps, aside)
    load = (jnp.arange(game.actions) == LOAD).astype(steps.dtype)
    steps = jnp.where(game.beside(ego)[0][:, None], load, steps)
    return jnp.where(jnp.sum(wanted) > 0, wanted @ steps, uniform(legal))


def _closest(
    far: Int[Array, " food"] | Float[Array, " food"], among: Bool[Array, " food"]
) -> Float[Array, " food"]:
    """The foods of a mask at the least distance, evenly."""
    far = jnp.where(among, far, UNREACHABLE)
    return uniform(among & (far == jnp.min(far)))


def nearest_food(game: Foraging, ego: ForagingState) -> Float[Array, " action"]:
    """Goes to the nearest food, whatever its level."""
    return go_for(game, ego, _closest(game.distance(ego, ego.cell[0], ego.food), ego.left))


def farthest_food(game: Foraging, ego: ForagingState) -> Float[Array, " action"]:
    """Goes to the farthest food."""
    return go_for(game, ego, _closest(-game.distance(ego, ego.cell[0], ego.food), ego.left))


def able_food(game: Foraging, ego: ForagingState) -> Float[Array, " action"]:
    """Goes to the nearest food that it can collect alone, or with the nearest other player."""
    far = game.distance(ego, ego.cell[0], ego.cell[1:])
    help_ = jnp.max(
        jnp.where(far == jnp.min(far, initial=UNREACHABLE), ego.level[1:], 0), initial=0
    )
    able = ego.left & (ego.food_level <= ego.level[0] + help_)
    return go_for(game, ego, _closest(game.distance(ego, ego.cell[0], ego.food), able))


def follower(game: Foraging, ego: ForagingState) -> Float[Array, " action"]:
    """Goes to the food nearest to the other player of the highest level; of several such players,
    to the food nearest to any of them."""
    leads = ego.level[1:] == jnp.max(ego.level[1:], initial=0)
    far = game.distance(ego, ego.cell[1:, None], ego.food[None, :])
    far = jnp.min(jnp.where(leads[:, None], far, UNREACHABLE), axis=0, initial=UNREACHABLE)
    return go_for(game, ego, _closest(far, ego.left))


def central_food(game: Foraging, ego: ForagingState) -> Float[Array, " action"]:
    """Goes to the food nearest to the centre of all players."""
    width = game.config.width
    row, column = jnp.mean(ego.cell // width), jnp.mean(ego.cell % width)
    far = jnp.abs(ego.food // width - row) + jnp.abs(ego.food % width - column)
    return go_for(game, ego, _closest(jnp.round(far, 3), ego.left))


class ForagingGoals(ThingGoals):
    """Which food a player collects next, or none in the rest of the episode."""

    game: Foraging

    noun = "food"
    verb = "collects"

    @property
    def count(self) -> int:
        return self.game.config.foods

    def things(self, state: ForagingState) -> tuple[Integer[Array, " food"], Bool[Array, " food"]]:
        return state.food, state.left

    def taken(self, state: ForagingState, following: ForagingState) -> Bool[Array, "seat food"]:
        gone = state.left & ~following.left
        return gone & self.game.beside(state) & (following.last == LOAD)[:, None]
