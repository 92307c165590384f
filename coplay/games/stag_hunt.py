"""Markov Stag Hunt: a stag needs two hunters at once, a hare only one; who hunts leaves."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from coplay.errors import UserError
from coplay.games.drawing import draw_stag_hunt, text_stag_hunt
from coplay.games.game import Game, Observation, Outcome, ScriptedPolicy
from coplay.games.walls import (
    MOVES,
    UNREACHABLE,
    WallMaps,
    bounded,
    draw_wall_maps,
    place,
    random_words,
)

STAY, HUNT_STAG, HUNT_HARE = 4, 5, 6
LARGEST = 32_000  # cells and times are kept in 16 bits


@dataclass(frozen=True)
class StagHuntConfig:
    """Markov Stag Hunt."""

    height: int = 4
    """Rows of the board."""
    width: int = 4
    """Columns of the board."""
    players: int = 4
    """Number of seats."""
    stags: int = 1
    """Stags; each takes at least two hunters at once."""
    hares: int = 4
    """Hares; one hunter is enough."""
    horizon: int = 35
    """Steps after which an episode is truncated."""
    stag_reward: float = 10.0
    """Shared by the hunters of a stag in proportion to strength."""
    hare_reward: float = 1.0
    """Shared by the hunters of a hare in proportion to strength."""
    time_reward: float = 0.0
    """Added to every player in the game at every step (negative: a cost of time)."""
    walls: int = 0
    """Wall pieces on the board."""
    wall_maps: int = 1024
    """How many different wall maps are drawn once and sampled at each reset (only with walls)."""
    strength: tuple[float, ...] = ()
    """Strength of each seat, for sharing rewards; empty: all 1."""
    end_after_first_hunt: int | None = None
    """If k: the episode is truncated k steps after the first successful hunt."""
    view: int | None = None
    """If v: each player sees a (2v+1)x(2v+1) window centred on itself; None: the whole board."""

    def __post_init__(self) -> None:
        least = {"height": 1, "width": 1, "players": 1, "stags": 0, "hares": 0, "horizon": 1}
        least |= {"walls": 0, "wall_maps": 1, "view": 0, "end_after_first_hunt": 0}
        for name, minimum in least.items():
            value = getattr(self, name)
            if value is not None and not minimum <= value:
                raise UserError(f"game.{name} must be at least {minimum}, not {value}")
            if value is not None and value > LARGEST:
                raise UserError(f"game.{name} must be at most {LARGEST}, not {value}")
        if self.height * self.width > LARGEST:
            raise UserError(
                f"a board of {self.height}x{self.width} is too large: at most {LARGEST} cells"
            )
        if self.stags + self.hares == 0:
            raise UserError("a stag hunt needs prey: set game.stags or game.hares above 0")
        if self.strength and len(self.strength) != self.players:
            raise UserError(
                f"game.strength has {len(self.strength)} numbers for {self.players} players; "
                "give one per player, or none"
            )
        if not all(0 <= s < float("inf") for s in self.strength):
            raise UserError("game.strength must not be negative or infinite")


class StagHuntState(NamedTuple):
    """One game copy. Cells are numbered row by row.

    cell: [seat] where each player stands, or stood when it left.
    alive: [seat] still in the game.
    strength: [seat] for sharing rewards.
    last: [seat] the last action as executed.
    prey: [prey] cells of the stags, then of the hares.
    prey_alive: [prey] not caught yet.
    board: [] which wall map.
    time: [] steps played.
    first_hunt: [] the time after the first successful hunt; -1 before it.
    """

    cell: Integer[Array, " seat"]
    alive: Bool[Array, " seat"]
    strength: Float[Array, " seat"]
    last: Integer[Array, " seat"]
    prey: Integer[Array, " prey"]
    prey_alive: Bool[Array, " prey"]
    board: Integer[Array, ""]
    time: Integer[Array, ""]
    first_hunt: Integer[Array, ""]


class StagHunt(Game):
    """Rules in `step`, ego views in `observe`, scripted players below."""

    config: StagHuntConfig = eqx.field(static=True)
    maps: WallMaps

    name = "stag-hunt"
    action_names = ("up", "down", "left", "right", "stay", "hunt stag", "hunt hare")
    seat_planes = 1
    seat_features = len(action_names)

    def __init__(self, config: StagHuntConfig = StagHuntConfig()):
        self.config = config
        needed = config.players + config.stags + config.hares
        self.maps = draw_wall_maps(
            config.height, config.width, config.walls, needed, config.wall_maps
        )

    @property
    def seats(self) -> int:
        return self.config.players

    def alive(self, state: StagHuntState) -> Bool[Array, " seat"]:
        return state.alive

    def permute_seats(self, state: StagHuntState, order: Int[Array, " seat"]) -> StagHuntState:
        return state._replace(
            cell=state.cell[order],
            alive=state.alive[order],
            strength=state.strength[order],
            last=state.last[order],
        )

    # --- rules ---------------------------------------------------------------------------------

    def reset(self, key: PRNGKeyArray) -> StagHuntState:
        config = self.config
        seats, prey = config.players, config.stags + config.hares
        bits = random_words(key, 1 + seats + prey)
        if config.walls:
            board = bounded(bits[0], self.maps.walls.shape[0])
            spots = place(bits[1:], self.maps.free_count[board])
            cells = self.maps.free_cells[board][spots]
        else:
            board = jnp.int32(0)
            cells = place(bits[1:], config.height * config.width)
        cells = cells.astype(jnp.int16)
        return StagHuntState(
            cell=cells[:seats],
            alive=jnp.ones(seats, bool),
            strength=jnp.asarray(config.strength or (1.0,) * seats, jnp.float32),
            last=jnp.full(seats, STAY, jnp.int8),
            prey=cells[seats:],
            prey_alive=jnp.ones(prey, bool),
            board=board.astype(jnp.int16),
            time=jnp.int16(0),
            first_hunt=jnp.int16(-1),
        )

    def legal(self, state: StagHuntState) -> Bool[Array, "seat action"]:
        """Which actions are legal for each seat; only staying for one that left."""
        config = self.config
        row, column = state.cell // config.width, state.cell % config.width
        moves = jnp.stack(
            [row > 0, row < config.height - 1, column > 0, column < config.width - 1], axis=-1
        )
        if config.walls:
            target = state.cell[:, None] + jnp.asarray(self._offsets[:4])
            target = jnp.clip(target, 0, config.height * config.width - 1)
            moves &= ~self.maps.walls[state.board][target]
        on = (state.cell[:, None] == state.prey[None, :]) & state.prey_alive[None, :]
        hunts = [
            jnp.any(on[:, : config.stags], axis=1),
            jnp.any(on[:, config.stags :], axis=1),
        ]
        stay = jnp.ones_like(row, bool)
        legal = jnp.concatenate([moves, jnp.stack([stay, *hunts], axis=-1)], axis=-1)
        return jnp.where(state.alive[:, None], legal, jnp.arange(self.actions) == STAY)

    @property
    def _offsets(self) -> np.ndarray:
        """[action] what each action adds to the cell number."""
        moves = [down * self.config.width + right for down, right in MOVES]
        return np.array([*moves, 0, 0, 0], np.int16)

    def step(
        self, key: PRNGKeyArray, state: StagHuntState, actions: Int[Array, " seat"]
    ) -> tuple[StagHuntState, Outcome]:
        config = self.config
        kinds = jnp.arange(self.actions)
        chosen = actions[:, None] == kinds
        allowed = jnp.any(chosen & self.legal(state), axis=1)
        chosen = jnp.where(allowed[:, None], chosen, kinds == STAY)
        executed = jnp.where(allowed, actions, STAY).astype(jnp.int8)
        # Moves are drawn from a one-hot sum: on CPU cheaper than a gather per seat.
        cell = state.cell + jnp.sum(jnp.where(chosen, self._offsets, 0), axis=1, dtype=jnp.int16)

        is_stag = np.arange(config.stags + config.hares) < config.stags
        hunts = jnp.where(is_stag, chosen[:, HUNT_STAG, None], chosen[:, HUNT_HARE, None])
        hunters = hunts & state.prey_alive & (cell[:, None] == state.prey)  # [seat, prey]
        caught = jnp.sum(hunters, axis=0) >= np.where(is_stag, 2, 1)
        hunters &= caught
        strength = jnp.where(hunters, state.strength[:, None], 0.0)
        total = jnp.sum(strength, axis=0)
        share = jnp.where(
            total > 0,
            strength / jnp.where(total > 0, total, 1.0),
            hunters / jnp.maximum(jnp.sum(hunters, axis=0), 1),
        )
        worth = np.where(is_stag, config.stag_reward, config.hare_reward).astype(np.float32)
        reward = jnp.sum(share * worth, axis=1)
        reward += jnp.where(state.alive, jnp.float32(config.time_reward), 0.0)

        left = jnp.any(hunters, axis=1)
        alive = state.alive & ~left
        time = state.time + jnp.int16(1)
        first_hunt = jnp.where((state.first_hunt < 0) & jnp.any(caught), time, state.first_hunt)
        cut = time >= config.horizon
        if config.end_after_first_hunt is not None:
            cut |= (first_hunt >= 0) & (time >= first_hunt + config.end_after_first_hunt)
        following = state._replace(
            cell=cell,
            alive=alive,
            last=jnp.where(state.alive, executed, state.last),
            prey_alive=state.prey_alive & ~caught,
            time=time,
            first_hunt=first_hunt,
        )
        return following, Outcome(reward, left, cut & jnp.any(alive))

    # --- ego views -----------------------------------------------------------------------------

    def observe(self, state: StagHuntState) -> Observation:
        """Planes: the players ego-first, walls, stags, hares. Features: for each player ego-first
        its last action one-hot, then time / horizon."""
        config, seats = self.config, self.seats
        order = (np.arange(seats)[:, None] + np.arange(seats)) % seats  # [seat, ego order]
        if config.view is None:
            rows, columns = config.height, config.width
            players, prey = state.cell[order], state.prey[None, :]
            walls = jnp.broadcast_to(self.maps.walls[state.board], (seats, rows * columns))
        else:
            rows = columns = 2 * config.view + 1
            players = self._in_window(state.cell[:, None], state.cell[order])
            prey = self._in_window(state.cell[:, None], state.prey[None, :])
            walls = self._walls_in_window(state)
        spots = np.arange(rows * columns)[:, None]
        player_planes = (players[:, None, :] == spots) & state.alive[order][:, None, :]
        prey_there = (prey[:, None, :] == spots) & state.prey_alive
        planes = [
            player_planes,
            walls[:, :, None],
            jnp.broadcast_to(
                jnp.stack(
                    [
                        jnp.any(prey_there[..., : config.stags], axis=-1),
                        jnp.any(prey_there[..., config.stags :], axis=-1),
                    ],
                    axis=-1,
                ),
                (seats, rows * columns, 2),
            ),
        ]
        last = state.last[:, None] == np.arange(self.actions)  # [seat, action]
        past = last[order].reshape(seats, seats * self.actions).astype(jnp.float32)
        time = jnp.full((seats, 1), state.time / config.horizon, jnp.float32)
        return Observation(
            planes=jnp.concatenate(planes, axis=-1).reshape(seats, rows, columns, seats + 3),
            features=jnp.concatenate([past, time], axis=-1),
            legal=self.legal(state),
        )

    def _in_window(
        self, centre: Integer[Array, "seat 1"], cell: Integer[Array, "*seat thing"]
    ) -> Integer[Array, "seat thing"]:
        """Cell numbers inside the window centred on each seat; -1 for what is outside."""
        view, width = self.config.view, self.config.width
        assert view is not None
        down = cell // width - centre // width + view
        right = cell % width - centre % width + view
        inside = (down >= 0) & (down <= 2 * view) & (right >= 0) & (right <= 2 * view)
        return jnp.where(inside, down * (2 * view + 1) + right, -1)

    def _walls_in_window(self, state: StagHuntState) -> Bool[Array, "seat cell"]:
        """The walls around each seat; cells off the board appear as walls."""
        config, view = self.config, self.config.view
        assert view is not None
        shift = np.arange(-view, view + 1)
        row = (state.cell // config.width)[:, None, None] + shift[:, None]
        column = (state.cell % config.width)[:, None, None] + shift
        off = (row < 0) | (row >= config.height) | (column < 0) | (column >= config.width)
        cell = jnp.clip(row * config.width + column, 0, config.height * config.width - 1)
        return (off | self.maps.walls[state.board][cell]).reshape(self.seats, -1)

    # --- pictures ------------------------------------------------------------------------------

    def draw(self, state: StagHuntState, cell: int = 48) -> np.ndarray:
        return draw_stag_hunt(self, state, cell)

    def text(self, state: StagHuntState) -> str:
        return text_stag_hunt(self, state)

    # --- scripted players ----------------------------------------------------------------------

    @property
    def scripted(self) -> Mapping[str, ScriptedPolicy]:
        return {"ns": nearest_stag, "nh": nearest_hare}

    def distance(
        self, state: StagHuntState, start: Integer[Array, "*#shape"], end: Integer[Array, "*#shape"]
    ) -> Integer[Array, "*shape"]:
        """Path lengths between cells, walls considered."""
        if self.config.walls:
            return self.maps.distance[state.board, start, end]
        width = self.config.width
        return jnp.abs(start // width - end // width) + jnp.abs(start % width - end % width)


def _uniform(among: Bool[Array, "*batch choice"]) -> Float[Array, "*batch choice"]:
    """Equal probability for each choice that is open; zeros if none is."""
    return among / jnp.maximum(jnp.sum(among, axis=-1, keepdims=True), 1)


def _approach(
    game: StagHunt, ego: StagHuntState, kind: slice, hunt: int
) -> tuple[Float[Array, " action"], Bool[Array, ""]]:
    """Probabilities of the actions towards the nearest prey of a kind, and whether there is any to
    go for (none for a player that left).

    Ties between nearest prey, then between the moves that shorten the way, are broken evenly.
    """
    config = game.config
    prey, there = ego.prey[kind], ego.prey_alive[kind]
    me = ego.cell[0]
    far = jnp.where(there, game.distance(ego, me, prey), UNREACHABLE)
    nearest = _uniform(there & (far == jnp.min(far, initial=UNREACHABLE)))
    legal = game.legal(ego)[0]
    target = jnp.clip(me + game._offsets[:4], 0, config.height * config.width - 1)
    shorter = game.distance(ego, target[None, :], prey[:, None]) < far[:, None]  # [prey, move]
    moves = nearest @ _uniform(legal[:4] & shorter)
    here = legal[hunt]
    rest = jnp.where(here, jnp.arange(4, game.actions) == hunt, False)
    return jnp.concatenate([jnp.where(here, 0.0, moves), rest.astype(moves.dtype)]), jnp.any(
        there
    ) & ego.alive[0]


def nearest_hare(game: StagHunt, ego: StagHuntState) -> Float[Array, " action"]:
    """NH: on a hare hunt it, else go to a nearest one; random when none is left."""
    towards, left = _approach(game, ego, slice(game.config.stags, None), HUNT_HARE)
    return jnp.where(left, towards, _uniform(game.legal(ego)[0]))


def nearest_stag(game: StagHunt, ego: StagHuntState) -> Float[Array, " action"]:
    """NS: on a stag hunt it until a partner comes, else go to a nearest one; without stags NH."""
    towards, left = _approach(game, ego, slice(0, game.config.stags), HUNT_STAG)
    return jnp.where(left, towards, nearest_hare(game, ego))
