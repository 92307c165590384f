"""What games on a board share: cells, walls, moving, distances, ego views, pictures.

Cells are numbered row by row. Actions 0 to 3 move up, down, left and right, action 4 stays; what
follows belongs to the game. Several players may share a cell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from coplay.core.config import Config, Range, only_if
from coplay.core.errors import UserError
from coplay.core.game import Game, Observation, State, seat_plane_names
from coplay.core.grid import MOVES
from coplay.core.layout import Icon, Layout
from coplay.games.board.drawing import draw_board, lay_out_board, text_board
from coplay.games.board.walls import (
    LARGEST_PIECE,
    UNREACHABLE,
    WallMaps,
    bounded,
    draw_wall_maps,
    place,
    random_words,
)
from coplay.games.drawing import Colour

STAY = 4
LARGEST = 32_000  # cells and times are kept in 16 bits


Size = Annotated[int, Range(least=1, most=LARGEST)]
Count = Annotated[int, Range(least=0, most=LARGEST)]


@dataclass(frozen=True)
class OpenBoardConfig(Config):
    """What all games on a board can be set to."""

    height: Size = 8
    """Rows of the board."""
    width: Size = 8
    """Columns of the board."""
    players: Size = 4
    """Number of seats."""
    horizon: Size = 50
    """Steps after which an episode is truncated."""
    view: Count | None = None
    """If v: each player sees a (2v+1)x(2v+1) window centred on itself; none: the whole board."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.height * self.width > LARGEST:
            raise UserError(
                f"a board of {self.height}x{self.width} is too large: at most {LARGEST} cells"
            )


@dataclass(frozen=True)
class BoardConfig(OpenBoardConfig):
    """What games on a board that may have walls can be set to."""

    walls: Count = 0
    """Wall pieces on the board."""
    wall_maps: Annotated[Size, only_if("walls")] = 1024
    """How many different wall maps are drawn once and sampled at each reset (only with walls)."""


class BoardGame(Game):
    """A game with an `OpenBoardConfig`, or a `BoardConfig`.

    Its states have at least `cell` [seat], `last` [seat] (the last action as executed), `board` []
    (which wall map) and `time` [].
    """

    config: OpenBoardConfig = eqx.field(static=True)
    maps: WallMaps

    seat_planes = 1
    on_grid = True
    idle_action = STAY
    thing_names: ClassVar[tuple[str, ...]]
    """What the planes behind those of the players and of the walls show."""

    seat_fields: ClassVar[tuple[str, ...]] = ("cell", "last")
    """Fields of a state with a leading [seat] axis."""

    def __init__(self, config: OpenBoardConfig, things: int):
        """things: how many stand on the board at the start, beside the players."""
        self.config = config
        pieces, maps = (
            (config.walls, config.wall_maps) if isinstance(config, BoardConfig) else (0, 1)
        )
        self.maps = draw_wall_maps(
            config.height, config.width, pieces, config.players + things, maps
        )

    @property
    def walled(self) -> bool:
        """Whether there are walls on the board."""
        return self.maps.distance.shape[0] > 0

    @property
    def seats(self) -> int:
        return self.config.players

    @property
    def horizon(self) -> int:
        return self.config.horizon

    @property
    def plane_names(self) -> tuple[str, ...]:
        return (*seat_plane_names(self.seats), "walls", *self.thing_names)

    @property
    def full_view(self) -> bool:
        config = self.config
        return config.view is None or config.view >= max(config.height, config.width) - 1

    def alive(self, state: State) -> Bool[Array, " seat"]:
        """Everybody, unless players of a game leave."""
        return jnp.ones(self.seats, bool)

    def permute_seats(self, state: State, order: Int[Array, " seat"]) -> State:
        return state._replace(**{name: getattr(state, name)[order] for name in self.seat_fields})

    def last_actions(self, state: State) -> Integer[Array, " seat"]:
        return state.last

    def present(self, state: State) -> Bool[Array, " seat"]:
        """Which players stand on the board: those still in the game, unless a game says more."""
        return self.alive(state)

    def things(self, state: State) -> list[tuple[int, Icon, str]]:
        """Cell, icon and letter of everything but players and walls, to be drawn."""
        raise NotImplementedError

    @property
    def ground(self) -> Mapping[int, Colour]:
        """Cell -> its colour in pictures, where it is no plain floor."""
        return {}

    # --- beginning and moving ------------------------------------------------------------------

    def scatter(
        self, key: PRNGKeyArray, things: int
    ) -> tuple[Integer[Array, ""], Integer[Array, " thing"]]:
        """A random wall map, and distinct random free cells for so many things."""
        bits = random_words(key, 1 + things)
        if self.walled:
            board = bounded(bits[0], self.maps.walls.shape[0])
            spots = place(bits[1:], self.maps.free_count[board])
            cells = self.maps.free_cells[board][spots]
        else:
            board = jnp.int32(0)
            cells = place(bits[1:], self.config.height * self.config.width)
        return board.astype(jnp.int16), cells.astype(jnp.int16)

    @property
    def offsets(self) -> np.ndarray:
        """[action] what each action adds to the cell number."""
        moves = [down * self.config.width + right for down, right in MOVES]
        return np.array([*moves, *[0] * (self.actions - 4)], np.int16)

    def legal_moves(self, state: State) -> Bool[Array, "seat move"]:
        """Which of the four moves stay on the board and off the walls."""
        config = self.config
        row, column = state.cell // config.width, state.cell % config.width
        moves = jnp.stack(
            [row > 0, row < config.height - 1, column > 0, column < config.width - 1], axis=-1
        )
        if self.walled:
            target = state.cell[:, None] + jnp.asarray(self.offsets[:4])
            target = jnp.clip(target, 0, config.height * config.width - 1)
            moves &= ~self.maps.walls[state.board][target]
        return moves

    def executed(
        self, legal: Bool[Array, "seat action"], actions: Int[Array, " seat"]
    ) -> tuple[Bool[Array, "seat action"], Integer[Array, " seat"]]:
        """The actions with illegal ones as stay: one-hot, and as numbers."""
        kinds = jnp.arange(self.actions)
        chosen = actions[:, None] == kinds
        allowed = jnp.any(chosen & legal, axis=1)
        chosen = jnp.where(allowed[:, None], chosen, kinds == STAY)
        return chosen, jnp.where(allowed, actions, STAY).astype(jnp.int8)

    def moved(self, state: State, chosen: Bool[Array, "seat action"]) -> Integer[Array, " seat"]:
        """The cells after the moves among executed actions."""
        # A one-hot sum: on CPU cheaper than a gather per seat.
        return state.cell + jnp.sum(jnp.where(chosen, self.offsets, 0), axis=1, dtype=jnp.int16)

    def distance(
        self, state: State, start: Integer[Array, "*#shape"], end: Integer[Array, "*#shape"]
    ) -> Integer[Array, "*shape"]:
        """Path lengths between cells, walls considered."""
        if self.walled:
            return self.maps.distance[state.board, start, end]
        width = self.config.width
        return jnp.abs(start // width - end // width) + jnp.abs(start % width - end % width)

    # --- ego views -----------------------------------------------------------------------------

    def board_views(
        self,
        state: State,
        cells: Integer[Array, " thing"],
        there: Bool[Array, " thing"],
        kinds: Sequence[slice],
        legal: Bool[Array, "seat action"],
        worth: Integer[Array, " thing"] | None = None,
    ) -> Observation:
        """Planes: the players ego-first, walls, one for each kind of thing. Features: for each
        player ego-first its last action one-hot, then time / horizon.

        cells, there: where the things are, and which still are; kinds: the parts of that list.
        worth: what the planes show where a thing is, a small number; None: that it is there.
        """
        config, seats = self.config, self.seats
        present = self.present(state)
        order = (np.arange(seats)[:, None] + np.arange(seats)) % seats  # [seat, ego order]
        if config.view is None:
            rows, columns = config.height, config.width
            players, things = state.cell[order], cells[None, :]
            walls = jnp.broadcast_to(self.maps.walls[state.board], (seats, rows * columns))
        else:
            rows = columns = 2 * config.view + 1
            players = self.in_window(state.cell[:, None], state.cell[order])
            things = self.in_window(state.cell[:, None], cells[None, :])
            walls = self._walls_in_window(state)
        spots = np.arange(rows * columns)[:, None]
        player_planes = (players[:, None, :] == spots) & present[order][:, None, :]
        thing_there = (things[:, None, :] == spots) & there
        reduce = jnp.any
        if worth is not None:
            thing_there, reduce = jnp.where(thing_there, worth.astype(jnp.int8), 0), jnp.max
        by_kind = jnp.stack([reduce(thing_there[..., kind], axis=-1) for kind in kinds], axis=-1)
        planes = [
            player_planes,
            walls[:, :, None],
            jnp.broadcast_to(by_kind, (seats, rows * columns, len(kinds))),
        ]
        last = state.last[:, None] == np.arange(self.actions)  # [seat, action]
        past = last[order].reshape(seats, seats * self.actions).astype(jnp.float32)
        time = jnp.full((seats, 1), state.time / config.horizon, jnp.float32)
        return Observation(
            planes=jnp.concatenate(planes, axis=-1).reshape(seats, rows, columns, -1),
            features=jnp.concatenate([past, time], axis=-1),
            legal=legal,
            indices=self._indices(state, cells, there, kinds) if self.has_sparse_view else None,
        )

    @property
    def has_sparse_view(self) -> bool:
        # A game built on one of ours may show other planes or features: nobody knows where those
        # are 1.
        own = type(self).observe.__module__.startswith("coplay.games.")
        return own and self.config.view is None

    def _indices(
        self,
        state: State,
        cells: Integer[Array, " thing"],
        there: Bool[Array, " thing"],
        kinds: Sequence[slice],
    ) -> Int[Array, "seat index"]:
        """Where views are 1: players, things, walls, last actions. Things of a kind never share a
        cell."""
        config, seats = self.config, self.seats
        planes = seats + 1 + len(kinds)
        board = config.height * config.width * planes
        kind = np.concatenate(
            [np.full(len(range(*part.indices(cells.shape[0]))), k) for k, part in enumerate(kinds)]
        )
        order = (np.arange(seats)[:, None] + np.arange(seats)) % seats  # [seat, ego order]
        players = state.cell[order].astype(jnp.int32) * planes + np.arange(seats)
        things = cells.astype(jnp.int32) * planes + seats + 1 + kind
        past = board + np.arange(seats) * self.actions + state.last[order].astype(jnp.int32)
        nowhere = board + seats * self.actions + 1
        players = jnp.where(self.present(state)[order], players, nowhere)
        walls = self._wall_cells(state)
        walls = jnp.where(walls >= 0, walls * planes + seats, nowhere)
        alike = jnp.concatenate([jnp.where(there, things, nowhere), walls])
        alike = jnp.broadcast_to(alike, (seats, *alike.shape))
        return jnp.concatenate([players, alike, past], axis=1)

    def _wall_cells(self, state: State) -> Int[Array, " wall"]:
        """The cells of the walls, of as many as there may be; -1 for those that there are not."""
        most = self.config.walls * LARGEST_PIECE if isinstance(self.config, BoardConfig) else 0
        cells = self.config.height * self.config.width
        if not self.walled or not most:
            return jnp.zeros(0, jnp.int32)
        # Walls come last among the cells of a map.
        last = np.arange(max(cells - most, 0), cells)
        there = last >= self.maps.free_count[state.board]
        walls = self.maps.free_cells[state.board][last].astype(jnp.int32)
        return jnp.where(there, walls, -1)

    def in_window(
        self, centre: Integer[Array, "seat 1"], cell: Integer[Array, "*seat thing"]
    ) -> Integer[Array, "seat thing"]:
        """Cell numbers inside the window centred on each seat; -1 for what is outside."""
        view, width = self.config.view, self.config.width
        assert view is not None
        down = cell // width - centre // width + view
        right = cell % width - centre % width + view
        inside = (down >= 0) & (down <= 2 * view) & (right >= 0) & (right <= 2 * view)
        return jnp.where(inside, down * (2 * view + 1) + right, -1)

    def _walls_in_window(self, state: State) -> Bool[Array, "seat cell"]:
        """The walls around each seat; cells off the board appear as walls."""
        config = self.config
        assert config.view is not None
        shift = np.arange(-config.view, config.view + 1)
        row = (state.cell // config.width)[:, None, None] + shift[:, None]
        column = (state.cell % config.width)[:, None, None] + shift
        off = (row < 0) | (row >= config.height) | (column < 0) | (column >= config.width)
        cell = jnp.clip(row * config.width + column, 0, config.height * config.width - 1)
        return (off | self.maps.walls[state.board][cell]).reshape(self.seats, -1)

    # --- pictures ------------------------------------------------------------------------------

    def draw(self, state: State, cell: int = 48) -> np.ndarray:
        """A picture of a state: [pixel row, pixel column, RGB] uint8.

        Players stand beside one another and beneath the things of their cell; players that left
        are in the strip beneath the board.
        """
        icons = [(spot, icon) for spot, icon, _ in self.things(state)]
        config = self.config
        return draw_board(
            config.height,
            config.width,
            *self._walls_and_players(state, icons),
            int(state.time),
            config.horizon,
            cell,
            self.ground,
        )

    def layout(self, state: State) -> Layout:
        icons = [(spot, icon) for spot, icon, _ in self.things(state)]
        config = self.config
        return lay_out_board(config.height, config.width, *self._walls_and_players(state, icons))

    @property
    def action_moves(self) -> tuple[tuple[float, float] | None, ...]:
        moves = [(float(right), float(down)) for down, right in MOVES]
        return (*moves, *[(0.0, 0.0)] * (self.actions - 4))

    def text(self, state: State) -> str:
        """A state as lines of text: letters for things, numbers for players, # walls, · empty."""
        letters = [(spot, letter) for spot, _, letter in self.things(state)]
        config = self.config
        return text_board(
            config.height,
            config.width,
            *self._walls_and_players(state, letters),
            int(state.time),
            config.horizon,
        )

    def _walls_and_players(self, state: State, things: Any) -> tuple[np.ndarray, Any, list]:
        """Walls [cell], the things, and the cell of each player; None for one that left."""
        walls = np.asarray(self.maps.walls)[int(state.board)]
        present = np.asarray(self.present(jax.tree.map(jnp.asarray, state)))
        players = [int(c) if there else None for c, there in zip(state.cell, present, strict=True)]
        return walls, things, players


# --- scripted players ----------------------------------------------------------------------------


def uniform(among: Bool[Array, "*batch choice"]) -> Float[Array, "*batch choice"]:
    """Equal probability for each choice that is open; zeros if none is."""
    return among / jnp.maximum(jnp.sum(among, axis=-1, keepdims=True), 1)


def approach(
    game: BoardGame,
    ego: State,
    legal: Bool[Array, " action"],
    cells: Integer[Array, " thing"],
    there: Bool[Array, " thing"],
    take: int,
    farthest: bool = False,
) -> Float[Array, " action"]:
    """Probabilities of the actions of seat 0 towards the nearest thing that is still there, or the
    farthest: where `take` is legal take what is there, else go. Zeros if nothing is there.

    Ties between things, then between the moves that shorten the way, are broken evenly.
    """
    moves = towards(game, ego, legal, cells, there, farthest)
    here = legal[take]
    rest = jnp.where(here, jnp.arange(4, game.actions) == take, False)
    return jnp.concatenate([jnp.where(here, 0.0, moves), rest.astype(moves.dtype)])


def towards(
    game: BoardGame,
    ego: State,
    legal: Bool[Array, " action"],
    cells: Integer[Array, " thing"],
    there: Bool[Array, " thing"],
    farthest: bool = False,
) -> Float[Array, " move"]:
    """Probabilities of the four moves of seat 0 towards the nearest thing that is there, or the
    farthest; ties are broken evenly. They add up to less than 1 where no legal move shortens the
    way."""
    nowhere = -1 if farthest else UNREACHABLE
    far = jnp.where(there, game.distance(ego, ego.cell[0], cells), nowhere)
    wanted = (jnp.max if farthest else jnp.min)(far, initial=nowhere)
    return _moves(game, ego, legal, cells, far, uniform(there & (far == wanted)))


def moving(
    game: BoardGame, moves: Float[Array, " move"], otherwise: Float[Array, " action"]
) -> Float[Array, " action"]:
    """Moves as probabilities of all actions; what they lack to 1 goes to `otherwise`."""
    rest = 1.0 - jnp.sum(moves)
    return jnp.pad(moves, (0, game.actions - 4)) + rest * otherwise


def _moves(
    game: BoardGame,
    ego: State,
    legal: Bool[Array, " action"],
    cells: Integer[Array, " thing"],
    far: Integer[Array, " thing"],
    chosen: Float[Array, " thing"],
) -> Float[Array, " move"]:
    """The moves of seat 0 towards things that are `far` away, with these probabilities."""
    config = game.config
    target = jnp.clip(ego.cell[0] + game.offsets[:4], 0, config.height * config.width - 1)
    shorter = game.distance(ego, target[None, :], cells[:, None]) < far[:, None]  # [thing, move]
    return chosen @ uniform(legal[:4] & shorter)


def follow(game: Any, ego: State) -> Float[Array, " action"]:
    """Seat 0 goes to the nearest co-player on the board; beside it, it takes what is there to be
    taken, else it stays. At random if there is nobody."""
    legal, others, there = game.legal(ego)[0], ego.cell[1:], game.present(ego)[1:]
    far = jnp.where(there, game.distance(ego, ego.cell[0], others), UNREACHABLE)
    beside = jnp.any(there & (far == 0))
    nearest = uniform(there & (far == jnp.min(far, initial=UNREACHABLE)))
    moves = _moves(game, ego, legal, others, far, nearest)
    going = jnp.concatenate([moves, jnp.zeros(game.actions - 4)])
    return jnp.where(jnp.any(there), jnp.where(beside, _take_or_stay(legal), going), uniform(legal))


def avoid(game: Any, ego: State) -> Float[Array, " action"]:
    """Seat 0 keeps as far as it can from the nearest co-player, by a move or by staying; where
    there is something to be taken it takes it."""
    config = game.config
    legal, others, there = game.legal(ego)[0], ego.cell[1:], game.present(ego)[1:]
    target = jnp.clip(ego.cell[0] + game.offsets[:5], 0, config.height * config.width - 1)
    far = jnp.where(there, game.distance(ego, target[:, None], others[None, :]), UNREACHABLE)
    room = jnp.where(legal[:5], jnp.min(far, axis=1, initial=UNREACHABLE), -1)
    away = uniform(room == jnp.max(room))
    taking = jnp.any(legal[5:])
    rest = jnp.concatenate([away, jnp.zeros(game.actions - 5)])
    return jnp.where(taking, _take_or_stay(legal), rest)


def _take_or_stay(legal: Bool[Array, " action"]) -> Float[Array, " action"]:
    """One of the legal actions that take something; staying if there is none."""
    index = jnp.arange(legal.shape[0])
    takes = legal & (index > STAY)
    return uniform(jnp.where(jnp.any(takes), takes, index == STAY))


WHEREABOUTS = ("near another", "waited", "moved")
"""Events of every board game; see `whereabouts`."""


def whereabouts(game: BoardGame, state: State) -> list[Bool[Array, " seat"]]:
    """Which players have another one at most a step away, which waited, and which moved in the last
    step."""
    there = game.present(state)
    far = game.distance(state, state.cell[:, None], state.cell[None, :])
    near = (far <= 1) & there[:, None] & there[None, :] & ~jnp.eye(game.seats, dtype=bool)
    return [jnp.any(near, axis=1), state.last == STAY, state.last < STAY]
