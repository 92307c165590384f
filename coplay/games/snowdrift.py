"""Markov Snowdrift: removing a drift helps everybody alike, and those who remove it pay."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from coplay.core.config import Range
from coplay.core.game import Observation, Outcome, ScriptedPolicy
from coplay.games.board.board_game import (
    STAY,
    WHEREABOUTS,
    BoardConfig,
    BoardGame,
    Size,
    approach,
    avoid,
    follow,
    uniform,
    whereabouts,
)
from coplay.games.board.drawing import Icon, drift_icon
from coplay.games.board.hidden import HiddenBoard, hidden_board
from coplay.games.board.thing_goals import ThingGoals

REMOVE = 5
Finite = Annotated[float, Range(above=-math.inf, below=math.inf)]


@dataclass(frozen=True)
class SnowdriftConfig(BoardConfig):
    """Markov Snowdrift."""

    drifts: Size = 6
    """Snowdrifts on the board at the start."""
    reward: Finite = 6.0
    """What every player gets for each drift that is removed."""
    cost: Finite = 4.0
    """What removing a drift costs, shared evenly by those who remove it together."""


class SnowdriftState(NamedTuple):
    """One game copy. Cells are numbered row by row.

    cell: [seat] where each player stands.
    last: [seat] the last action as executed.
    drift: [drift] cells of the drifts.
    left: [drift] not removed yet.
    board: [] which wall map.
    time: [] steps played.
    """

    cell: Integer[Array, " seat"]
    last: Integer[Array, " seat"]
    drift: Integer[Array, " drift"]
    left: Bool[Array, " drift"]
    board: Integer[Array, ""]
    time: Integer[Array, ""]


class Snowdrift(BoardGame):
    """Rules in `step`, ego views in `observe`, scripted players and goals below.

    Nobody leaves before the end: when no drift is left all seats are terminated at once.
    """

    config: SnowdriftConfig = eqx.field(static=True)

    name = "snowdrift"
    action_names = ("up", "down", "left", "right", "stay", "remove")
    seat_features = len(action_names)
    thing_names: ClassVar[tuple[str, ...]] = ("drifts",)

    def __init__(self, config: SnowdriftConfig = SnowdriftConfig()):
        super().__init__(config, config.drifts)

    def alive(self, state: SnowdriftState) -> Bool[Array, " seat"]:
        return jnp.broadcast_to(jnp.any(state.left), (self.seats,))

    def present(self, state: SnowdriftState) -> Bool[Array, " seat"]:
        return jnp.ones(self.seats, bool)

    # --- rules ---------------------------------------------------------------------------------

    def reset(self, key: PRNGKeyArray) -> SnowdriftState:
        seats, drifts = self.config.players, self.config.drifts
        board, cells = self.scatter(key, seats + drifts)
        return SnowdriftState(
            cell=cells[:seats],
            last=jnp.full(seats, STAY, jnp.int8),
            drift=cells[seats:],
            left=jnp.ones(drifts, bool),
            board=board,
            time=jnp.int16(0),
        )

    def legal(self, state: SnowdriftState) -> Bool[Array, "seat action"]:
        """Which actions are legal for each seat; only staying once no drift is left."""
        stay = jnp.ones((self.seats, 1), bool)
        on = (state.cell[:, None] == state.drift[None, :]) & state.left
        legal = [self.legal_moves(state), stay, jnp.any(on, axis=1, keepdims=True)]
        only_stay = jnp.arange(self.actions) == STAY
        return jnp.where(jnp.any(state.left), jnp.concatenate(legal, axis=-1), only_stay)

    def step(
        self, key: PRNGKeyArray, state: SnowdriftState, actions: Int[Array, " seat"]
    ) -> tuple[SnowdriftState, Outcome]:
        config = self.config
        going = jnp.any(state.left)
        chosen, executed = self.executed(self.legal(state), actions)
        cell = self.moved(state, chosen)
        removers = chosen[:, REMOVE, None] & state.left & (cell[:, None] == state.drift)
        number = jnp.sum(removers, axis=0)  # [drift]
        removed = number > 0
        shares = jnp.sum(removers / jnp.maximum(number, 1), axis=1)  # [seat] of one cost each
        gain = config.reward * jnp.sum(removed)
        reward = (gain - config.cost * shares).astype(jnp.float32)
        left = state.left & ~removed
        time = state.time + jnp.int16(1)
        following = state._replace(
            cell=cell,
            last=jnp.where(going, executed, state.last),
            left=left,
            time=time,
        )
        done = going & ~jnp.any(left)
        terminated = jnp.broadcast_to(done, (self.seats,))
        return following, Outcome(reward, terminated, (time >= config.horizon) & jnp.any(left))

    # --- ego views and pictures ----------------------------------------------------------------

    def observe(self, state: SnowdriftState) -> Observation:
        """Planes: the players ego-first, walls, drifts. Features: for each player ego-first its
        last action one-hot, then time / horizon."""
        return self.board_views(state, state.drift, state.left, (slice(None),), self.legal(state))

    def things(self, state: SnowdriftState) -> list[tuple[int, Icon, str]]:
        """The drifts that are left: s."""
        drifts = zip(state.drift, state.left, strict=True)
        return [(int(spot), drift_icon, "s") for spot, there in drifts if there]

    @property
    def hidden(self) -> "HiddenSnowdrift | None":
        found: Any = hidden_board(HiddenSnowdrift, self)
        return found

    # --- scripted players and goals ------------------------------------------------------------

    @property
    def scripted(self) -> Mapping[str, ScriptedPolicy]:
        return {"nd": nearest_drift, "exploiter": exploiter}

    @property
    def blocks(self) -> Mapping[str, ScriptedPolicy]:
        return {
            "clean": nearest_drift,
            "exploit": exploiter,
            "clean the farthest": farthest_drift,
            "follow": follow,
            "avoid": avoid,
        }

    @property
    def event_names(self) -> tuple[str, ...]:
        return ("removed a drift", "others removed one", *WHEREABOUTS)

    def events(
        self, state: SnowdriftState, following: SnowdriftState
    ) -> Float[Array, "seat event"]:
        mine = self.goals.realised(state, following) >= 0
        others = jnp.sum(mine) - mine > 0
        happened = [mine, others, *whereabouts(self, following)]
        return jnp.stack(happened, axis=-1) * self.alive(state)[:, None].astype(jnp.float32)

    @property
    def goals(self) -> "SnowdriftGoals":
        return SnowdriftGoals(self)


class HiddenSnowdrift(HiddenBoard):
    """Where the drifts are that are out of sight."""

    game: Snowdrift

    takes: ClassVar[Mapping[int, int]] = {REMOVE: 0}
    never_bare = True

    def things(
        self, state: SnowdriftState
    ) -> tuple[Integer[Array, " drift"], Bool[Array, " drift"]]:
        return state.drift, state.left

    def with_things(
        self,
        state: SnowdriftState,
        cells: Integer[Array, " drift"],
        there: Bool[Array, " drift"],
    ) -> SnowdriftState:
        return state._replace(drift=cells, left=there)


def nearest_drift(game: Snowdrift, ego: SnowdriftState) -> Float[Array, " action"]:
    """ND, the cleaner: on a drift remove it, else go to a nearest one."""
    legal = game.legal(ego)[0]
    towards = approach(game, ego, legal, ego.drift, ego.left, REMOVE)
    return jnp.where(jnp.any(ego.left), towards, uniform(legal))


def farthest_drift(game: Snowdrift, ego: SnowdriftState) -> Float[Array, " action"]:
    """On a drift remove it, else go to the farthest one."""
    legal = game.legal(ego)[0]
    towards = approach(game, ego, legal, ego.drift, ego.left, REMOVE, farthest=True)
    return jnp.where(jnp.any(ego.left), towards, uniform(legal))


def exploiter(game: Snowdrift, ego: SnowdriftState) -> Float[Array, " action"]:
    """Moves or stays at random and never removes a drift."""
    return uniform(game.legal(ego)[0] & (jnp.arange(game.actions) != REMOVE))


class SnowdriftGoals(ThingGoals):
    """Which drift a player removes next, or none in the rest of the episode."""

    game: Snowdrift

    noun = "drift"
    verb = "removes"

    @property
    def count(self) -> int:
        return self.game.config.drifts

    def things(
        self, state: SnowdriftState
    ) -> tuple[Integer[Array, " drift"], Bool[Array, " drift"]]:
        return state.drift, state.left

    def taken(self, state: SnowdriftState, following: SnowdriftState) -> Bool[Array, "seat drift"]:
        gone = state.left & ~following.left
        removing = (following.last == REMOVE)[:, None]
        return gone & removing & (following.cell[:, None] == state.drift[None, :])

    @property
    def personas(self) -> tuple[str, ...]:
        return ("cleaning", "no work")

    def persona_reward(
        self,
        persona: Int[Array, "*batch"],
        reward: Float[Array, "*batch"],
        realised: Int[Array, "*batch"],
    ) -> Float[Array, "*batch"]:
        """Cleaning: only steps in which it removes a drift itself count, with their cost. No work:
        a removal by oneself brings nothing but its cost. Neither counts for more than the game
        gives, so a player that follows a persona gets no less than the persona expects."""
        mine = realised >= 0
        without = reward - jnp.where(mine, self.game.config.reward, 0.0)
        cleaning = jnp.where(mine, reward, 0.0)
        return jnp.where(persona == 0, cleaning, jnp.where(persona == 1, without, reward))
