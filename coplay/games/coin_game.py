"""Coin game: any coin is worth taking, and it hurts the owner of its colour more than it brings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from coplay.core.errors import UserError
from coplay.core.game import Observation, Outcome, ScriptedPolicy
from coplay.core.goals import Goals, restricted
from coplay.games.board.board_game import (
    STAY,
    WHEREABOUTS,
    BoardConfig,
    BoardGame,
    Size,
    avoid,
    follow,
    moving,
    towards,
    uniform,
    whereabouts,
)
from coplay.games.board.chance import drawn_cell, first_come, occupied
from coplay.games.board.drawing import Icon, coin_icon
from coplay.games.board.thing_goals import way
from coplay.games.board.walls import UNREACHABLE, random_words

NOTHING, OWN, ANOTHER = 0, 1, 2


@dataclass(frozen=True)
class CoinGameConfig(BoardConfig):
    """Coin game."""

    height: Size = 5
    """Rows of the board."""
    width: Size = 5
    """Columns of the board."""
    players: Size = 2
    """Number of seats; each has a colour and a coin of it."""
    horizon: Size = 100
    """Steps after which an episode is truncated."""
    reward: float = 1.0
    """What a coin brings to who takes it."""
    theft_cost: float = 2.0
    """What the owner of its colour loses when another player takes a coin."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.players < 2:
            raise UserError("the coin game needs at least 2 players: set game.players")


class CoinGameState(NamedTuple):
    """One game copy. Cells are numbered row by row.

    cell: [seat] where each player stands.
    last: [seat] the last action as executed.
    place: [seat] the player's colour.
    coin: [colour] where the coin of each colour lies.
    took: [seat] what the player took in the last step: nothing 0, its own coin 1, another's 2.
    stole: [seat] the last coin that the player took was another's.
    board: [] which wall map.
    time: [] steps played.
    """

    cell: Integer[Array, " seat"]
    last: Integer[Array, " seat"]
    place: Integer[Array, " seat"]
    coin: Integer[Array, " colour"]
    took: Integer[Array, " seat"]
    stole: Bool[Array, " seat"]
    board: Integer[Array, ""]
    time: Integer[Array, ""]


class CoinGame(BoardGame):
    """Rules in `step`, ego views in `observe`, scripted players and goals below.

    Who stands on a coin after the moves takes it. Nobody leaves.
    """

    config: CoinGameConfig = eqx.field(static=True)

    name = "coin-game"
    action_names = ("up", "down", "left", "right", "stay")
    seat_features = len(action_names)
    thing_names: ClassVar[tuple[str, ...]] = ("own coin", "others' coins")
    seat_fields = ("cell", "last", "place", "took", "stole")

    def __init__(self, config: CoinGameConfig = CoinGameConfig()):
        super().__init__(config, config.players)

    @property
    def full_view(self) -> bool:
        """With more than two players a view does not tell whose the others' coins are."""
        return super().full_view and self.seats == 2

    @property
    def has_sparse_view(self) -> bool:
        return False

    # --- rules ---------------------------------------------------------------------------------

    def reset(self, key: PRNGKeyArray) -> CoinGameState:
        seats = self.seats
        board, cells = self.scatter(key, 2 * seats)
        return CoinGameState(
            cell=cells[:seats],
            last=jnp.full(seats, STAY, jnp.int8),
            place=jnp.arange(seats, dtype=jnp.int8),
            coin=cells[seats:],
            took=jnp.zeros(seats, jnp.int8),
            stole=jnp.zeros(seats, bool),
            board=board,
            time=jnp.int16(0),
        )

    def legal(self, state: CoinGameState) -> Bool[Array, "seat action"]:
        """Which actions are legal for each seat."""
        return jnp.concatenate([self.legal_moves(state), jnp.ones((self.seats, 1), bool)], axis=-1)

    def step(
        self, key: PRNGKeyArray, state: CoinGameState, actions: Int[Array, " seat"]
    ) -> tuple[CoinGameState, Outcome]:
        """Two players on one coin: a flip of the key says who takes it."""
        config, seats = self.config, self.seats
        words = random_words(key, 2 * seats)
        chosen, executed = self.executed(self.legal(state), actions)
        cell = self.moved(state, chosen)
        at = cell[:, None] == state.coin[None, :]  # [seat, colour]
        takes = first_come(words[:seats], state.place, at)
        mine = state.place[:, None] == jnp.arange(seats)
        taken = jnp.any(takes, axis=0)
        robbed = jnp.any(mine & taken & ~takes, axis=1)
        reward = config.reward * jnp.any(takes, axis=1) - config.theft_cost * robbed

        # The coins that were taken reappear one after the other on free cells.
        walls = self.maps.walls[state.board]
        coin = jnp.where(taken, -1, state.coin)
        for colour in range(seats):
            free = ~(occupied(walls.shape[0], jnp.concatenate([cell, coin])) | walls)
            anew = drawn_cell(words[seats + colour], free).astype(coin.dtype)
            coin = coin.at[colour].set(jnp.where(taken[colour], anew, coin[colour]))

        own = jnp.any(takes & mine, axis=1)
        others = jnp.any(takes & ~mine, axis=1)
        took = jnp.where(own, OWN, jnp.where(others, ANOTHER, NOTHING)).astype(jnp.int8)
        time = state.time + jnp.int16(1)
        following = state._replace(
            cell=cell,
            last=executed,
            coin=coin,
            took=took,
            stole=jnp.where(took == NOTHING, state.stole, took == ANOTHER),
            time=time,
        )
        nobody = jnp.zeros(seats, bool)
        return following, Outcome(reward.astype(jnp.float32), nobody, time >= config.horizon)

    # --- ego views and pictures ----------------------------------------------------------------

    def observe(self, state: CoinGameState) -> Observation:
        """Planes: the players ego-first, walls, the own coin, the others' coins. Features: for each
        player ego-first its last action one-hot, then time / horizon."""
        # All coins are drawn as of one kind, then told apart by whose they are.
        kinds = [slice(colour, colour + 1) for colour in range(self.seats)]
        there = jnp.ones(self.seats, bool)
        seen = self.board_views(state, state.coin, there, kinds, self.legal(state))
        first = self.seats + 1
        coins = seen.planes[..., first:]  # [seat, row, column, colour]
        mine = (state.place[:, None] == jnp.arange(self.seats))[:, None, None, :]
        parts = [jnp.any(coins & mine, axis=-1), jnp.any(coins & ~mine, axis=-1)]
        planes = jnp.concatenate([seen.planes[..., :first], jnp.stack(parts, axis=-1)], axis=-1)
        return seen._replace(planes=planes)

    def things(self, state: CoinGameState) -> list[tuple[int, Icon, str]]:
        """The coins, in the colours of their owners: a of seat 0, b of seat 1, …"""
        owner = np.argsort(np.asarray(state.place))
        return [
            (int(spot), coin_icon(int(seat)), chr(ord("a") + int(seat) % 26))
            for spot, seat in zip(state.coin, owner, strict=True)
        ]

    # --- scripted players and goals ------------------------------------------------------------

    @property
    def scripted(self) -> Mapping[str, ScriptedPolicy]:
        return {"own-colour": own_colour, "nearest-coin": nearest_coin, "tit-for-tat": tit_for_tat}

    @property
    def blocks(self) -> Mapping[str, ScriptedPolicy]:
        return {
            "own colour": own_colour,
            "nearest coin": nearest_coin,
            "others' coins": others_coins,
            "follow": follow,
            "avoid": avoid,
        }

    @property
    def event_names(self) -> tuple[str, ...]:
        return ("took the own coin", "took another's coin", *WHEREABOUTS)

    def events(self, state: CoinGameState, following: CoinGameState) -> Float[Array, "seat event"]:
        took = following.took
        happened = [took == OWN, took == ANOTHER, *whereabouts(self, following)]
        return jnp.stack(happened, axis=-1).astype(jnp.float32)

    @property
    def goals(self) -> "CoinGoals":
        return CoinGoals(self)


def _colours(game: CoinGame, ego: CoinGameState) -> Bool[Array, " colour"]:
    """Which coin is that of seat 0."""
    return ego.place[0] == jnp.arange(game.seats)


def nearest_coin(game: CoinGame, ego: CoinGameState) -> Float[Array, " action"]:
    """Goes to a nearest coin of any colour."""
    legal = game.legal(ego)[0]
    moves = towards(game, ego, legal, ego.coin, jnp.ones(game.seats, bool))
    return moving(game, moves, uniform(legal))


def others_coins(game: CoinGame, ego: CoinGameState) -> Float[Array, " action"]:
    """Goes to a nearest coin of another player."""
    legal = game.legal(ego)[0]
    moves = towards(game, ego, legal, ego.coin, ~_colours(game, ego))
    return moving(game, moves, uniform(legal))


def own_colour(game: CoinGame, ego: CoinGameState) -> Float[Array, " action"]:
    """Goes to its own coin and never steps on another's; where one is in the way, any step that
    takes nothing of others."""
    mine = _colours(game, ego)
    target = ego.cell[0] + jnp.asarray(game.offsets)
    theirs = jnp.any((target[:, None] == ego.coin[None, :]) & ~mine, axis=1)
    allowed = game.legal(ego)[0] & ~theirs
    return moving(game, towards(game, ego, allowed, ego.coin, mine), uniform(allowed))


def tit_for_tat(game: CoinGame, ego: CoinGameState) -> Float[Array, " action"]:
    """Goes to its own coin; while the last coin that another player took was stolen, to the
    nearest of any colour."""
    angry = jnp.any(ego.stole[1:])
    return jnp.where(angry, nearest_coin(game, ego), own_colour(game, ego))


class CoinGoals(Goals):
    """Which coin a player takes next: its own or another's. A habit is whether it steals at all."""

    game: CoinGame

    @property
    def names(self) -> tuple[str, ...]:
        return ("own coin", "another's coin")

    @property
    def unrealised(self) -> int:
        return -1

    @property
    def habit_names(self) -> tuple[str, ...]:
        return ("own coins only", "any coin")

    @property
    def personas(self) -> tuple[str, ...]:
        return ("only own coins", "only others' coins")

    def persona_reward(
        self,
        persona: Int[Array, "*batch"],
        reward: Float[Array, "*batch"],
        realised: Int[Array, "*batch"],
    ) -> Float[Array, "*batch"]:
        """A coin of the other kind brings nothing."""
        worthless = (persona >= 0) & (realised >= 0) & (realised != persona)
        return jnp.where(worthless, reward - self.game.config.reward, reward)

    def features(self, state: CoinGameState) -> Float[Array, "seat goal feature"]:
        """The way from the seat to its own coin, and to the nearest of the others; see `way`."""
        game = self.game
        mine = state.place[:, None] == jnp.arange(game.seats)
        far = game.distance(state, state.cell[:, None], state.coin[None, :])
        nearest = jnp.argmin(jnp.where(mine, UNREACHABLE, far), axis=1)
        targets = jnp.stack([state.coin[state.place], state.coin[nearest]], axis=1)
        kind = jnp.broadcast_to(jnp.eye(2), (game.seats, 2, 2))
        return jnp.concatenate([way(game, state.cell[:, None], targets), kind], axis=-1)

    def open(self, state: CoinGameState) -> Bool[Array, "seat goal"]:
        return jnp.ones((self.game.seats, 2), bool)

    def realised(self, state: CoinGameState, following: CoinGameState) -> Int[Array, " seat"]:
        return following.took.astype(jnp.int32) - 1

    def habit(self, counts: Integer[Array, "*batch goal"]) -> Int[Array, "*batch"]:
        stole = counts[..., 1] > 0
        return jnp.where(stole, 1, jnp.where(counts[..., 0] > 0, 0, -1))

    def prior(
        self,
        habits: Float[Array, "*batch habit"],
        counts: Integer[Array, "*batch goal"],
        open_: Bool[Array, "*batch goal"],
    ) -> Float[Array, "*batch goal"]:
        """Who takes any coin takes each kind next with probability 1/2."""
        another = habits[..., 1] / 2
        return restricted(jnp.stack([1 - another, another], axis=-1), open_)
