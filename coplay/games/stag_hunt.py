"""Markov Stag Hunt: a stag needs two hunters at once, a hare only one; who hunts leaves."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from coplay.core.config import Range
from coplay.core.errors import UserError
from coplay.core.game import Observation, Outcome, ScriptedPolicy
from coplay.core.goals import Goals, restricted
from coplay.core.numerics import sum_in_order
from coplay.games.board.board_game import (
    STAY,
    WHEREABOUTS,
    BoardConfig,
    BoardGame,
    Count,
    Size,
    approach,
    avoid,
    follow,
    uniform,
    whereabouts,
)
from coplay.games.board.drawing import Icon, hare_icon, stag_icon
from coplay.games.board.hidden import HiddenBoard, hidden_board

HUNT_STAG, HUNT_HARE = 5, 6


@dataclass(frozen=True)
class StagHuntConfig(BoardConfig):
    """Markov Stag Hunt."""

    height: Size = 4
    """Rows of the board."""
    width: Size = 4
    """Columns of the board."""
    horizon: Size = 35
    """Steps after which an episode is truncated."""
    stags: Count = 1
    """Stags; each takes at least two hunters at once."""
    hares: Count = 4
    """Hares; one hunter is enough."""
    stag_reward: float = 10.0
    """Shared by the hunters of a stag in proportion to strength."""
    hare_reward: float = 1.0
    """Shared by the hunters of a hare in proportion to strength."""
    time_reward: float = 0.0
    """Added to every player in the game at every step (negative: a cost of time)."""
    strength: tuple[Annotated[float, Range(least=0, below=math.inf)], ...] = ()
    """Strength of each seat, for sharing rewards; empty: all 1."""
    end_after_first_hunt: Count | None = None
    """If k: the episode is truncated k steps after the first successful hunt."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stags + self.hares == 0:
            raise UserError("a stag hunt needs prey: set game.stags or game.hares above 0")
        if self.strength and len(self.strength) != self.players:
            raise UserError(
                f"game.strength has {len(self.strength)} numbers for {self.players} players; "
                "give one per player, or none"
            )


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


class StagHunt(BoardGame):
    """Rules in `step`, ego views in `observe`, scripted players below."""

    config: StagHuntConfig = eqx.field(static=True)

    name = "stag-hunt"
    action_names = ("up", "down", "left", "right", "stay", "hunt stag", "hunt hare")
    seat_features = len(action_names)
    thing_names: ClassVar[tuple[str, ...]] = ("stags", "hares")
    seat_fields = ("cell", "alive", "strength", "last")

    def __init__(self, config: StagHuntConfig = StagHuntConfig()):
        super().__init__(config, config.stags + config.hares)

    def alive(self, state: StagHuntState) -> Bool[Array, " seat"]:
        return state.alive

    # --- rules ---------------------------------------------------------------------------------

    def reset(self, key: PRNGKeyArray) -> StagHuntState:
        config = self.config
        seats, prey = config.players, config.stags + config.hares
        board, cells = self.scatter(key, seats + prey)
        return StagHuntState(
            cell=cells[:seats],
            alive=jnp.ones(seats, bool),
            strength=jnp.asarray(config.strength or (1.0,) * seats, jnp.float32),
            last=jnp.full(seats, STAY, jnp.int8),
            prey=cells[seats:],
            prey_alive=jnp.ones(prey, bool),
            board=board,
            time=jnp.int16(0),
            first_hunt=jnp.int16(-1),
        )

    def legal(self, state: StagHuntState) -> Bool[Array, "seat action"]:
        """Which actions are legal for each seat; only staying for one that left."""
        config = self.config
        on = (state.cell[:, None] == state.prey[None, :]) & state.prey_alive[None, :]
        hunts = [
            jnp.any(on[:, : config.stags], axis=1),
            jnp.any(on[:, config.stags :], axis=1),
        ]
        stay = jnp.ones(self.seats, bool)
        rest = jnp.stack([stay, *hunts], axis=-1)
        legal = jnp.concatenate([self.legal_moves(state), rest], axis=-1)
        return jnp.where(state.alive[:, None], legal, jnp.arange(self.actions) == STAY)

    def step(
        self, key: PRNGKeyArray, state: StagHuntState, actions: Int[Array, " seat"]
    ) -> tuple[StagHuntState, Outcome]:
        config = self.config
        chosen, executed = self.executed(self.legal(state), actions)
        cell = self.moved(state, chosen)

        is_stag = np.arange(config.stags + config.hares) < config.stags
        hunts = jnp.where(is_stag, chosen[:, HUNT_STAG, None], chosen[:, HUNT_HARE, None])
        hunters = hunts & state.prey_alive & (cell[:, None] == state.prey)  # [seat, prey]
        caught = jnp.sum(hunters, axis=0) >= np.where(is_stag, 2, 1)
        hunters &= caught
        strength = jnp.where(hunters, state.strength[:, None], 0.0)
        total = sum_in_order(strength, axis=0)
        share = jnp.where(
            total > 0,
            strength / jnp.where(total > 0, total, 1.0),
            hunters / jnp.maximum(jnp.sum(hunters, axis=0), 1),
        )
        worth = np.where(is_stag, config.stag_reward, config.hare_reward).astype(np.float32)
        reward = sum_in_order(share * worth)
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

    # --- ego views and pictures ----------------------------------------------------------------

    def observe(self, state: StagHuntState) -> Observation:
        """Planes: the players ego-first, walls, stags, hares. Features: for each player ego-first
        its last action one-hot, then time / horizon."""
        legal = self.legal(state)
        return self.board_views(state, state.prey, state.prey_alive, self._kinds, legal)

    @property
    def _kinds(self) -> tuple[slice, slice]:
        """Which prey are stags, and which hares."""
        return slice(0, self.config.stags), slice(self.config.stags, None)

    def things(self, state: StagHuntState) -> list[tuple[int, Icon, str]]:
        """The prey that is not caught yet: S stags, h hares."""
        stags = self.config.stags
        return [
            (int(spot), stag_icon, "S") if index < stags else (int(spot), hare_icon, "h")
            for index, (spot, there) in enumerate(zip(state.prey, state.prey_alive, strict=True))
            if there
        ]

    @property
    def hidden(self) -> "HiddenStagHunt | None":
        found: Any = hidden_board(HiddenStagHunt, self)
        return found

    # --- goals and scripted players ------------------------------------------------------------

    @property
    def goals(self) -> "StagHuntGoals":
        return StagHuntGoals(self)

    @property
    def scripted(self) -> Mapping[str, ScriptedPolicy]:
        return {"ns": nearest_stag, "nh": nearest_hare}

    @property
    def blocks(self) -> Mapping[str, ScriptedPolicy]:
        return {
            "stag": nearest_stag,
            "hare": nearest_hare,
            "far hare": farthest_hare,
            "follow": follow,
            "avoid": avoid,
        }

    @property
    def event_names(self) -> tuple[str, ...]:
        return ("caught a stag", "caught a hare", *WHEREABOUTS, "in the game")

    def events(self, state: StagHuntState, following: StagHuntState) -> Float[Array, "seat event"]:
        caught = self.goals.realised(state, following)
        happened = [caught == 0, caught == 1, *whereabouts(self, following)]
        happened = [*happened, jnp.ones(self.seats, bool)]
        return jnp.stack(happened, axis=-1) * state.alive[:, None].astype(jnp.float32)


class HiddenStagHunt(HiddenBoard):
    """Where the prey is that is out of sight, and who has left."""

    game: StagHunt

    takes: ClassVar[Mapping[int, int]] = {HUNT_STAG: 0, HUNT_HARE: 1}
    leaves = (HUNT_STAG, HUNT_HARE)

    @property
    def kinds(self) -> tuple[slice, ...]:
        stags = self.game.config.stags
        return slice(0, stags), slice(stags, None)

    def things(self, state: StagHuntState) -> tuple[Integer[Array, " prey"], Bool[Array, " prey"]]:
        return state.prey, state.prey_alive

    def with_things(
        self,
        state: StagHuntState,
        cells: Integer[Array, " prey"],
        there: Bool[Array, " prey"],
    ) -> StagHuntState:
        return state._replace(prey=cells, prey_alive=there)

    def with_players(
        self,
        state: StagHuntState,
        cell: Integer[Array, " seat"],
        present: Bool[Array, " seat"],
    ) -> StagHuntState:
        return state._replace(cell=cell, alive=present)


def nearest_hare(game: StagHunt, ego: StagHuntState) -> Float[Array, " action"]:
    """NH: on a hare hunt it, else go to a nearest one; random when none is left."""
    legal, hares = game.legal(ego)[0], slice(game.config.stags, None)
    there = ego.prey_alive[hares]
    towards = approach(game, ego, legal, ego.prey[hares], there, HUNT_HARE)
    return jnp.where(jnp.any(there) & ego.alive[0], towards, uniform(legal))


def farthest_hare(game: StagHunt, ego: StagHuntState) -> Float[Array, " action"]:
    """On a hare hunt it, else go to the farthest one; random when none is left."""
    legal, hares = game.legal(ego)[0], slice(game.config.stags, None)
    there = ego.prey_alive[hares]
    towards = approach(game, ego, legal, ego.prey[hares], there, HUNT_HARE, farthest=True)
    return jnp.where(jnp.any(there) & ego.alive[0], towards, uniform(legal))


def nearest_stag(game: StagHunt, ego: StagHuntState) -> Float[Array, " action"]:
    """NS: on a stag hunt it until a partner comes, else go to a nearest one; without stags NH."""
    legal, stags = game.legal(ego)[0], slice(0, game.config.stags)
    there = ego.prey_alive[stags]
    towards = approach(game, ego, legal, ego.prey[stags], there, HUNT_STAG)
    return jnp.where(jnp.any(there) & ego.alive[0], towards, nearest_hare(game, ego))


class StagHuntGoals(Goals):
    """What a player is after: a stag or a hare. Realised by catching it; a player that catches
    nothing in an episode has shown no goal. A habit is the kind of prey it catches."""

    game: StagHunt

    @property
    def names(self) -> tuple[str, ...]:
        return ("stag", "hare")

    @property
    def unrealised(self) -> int:
        return -1

    @property
    def habit_names(self) -> tuple[str, ...]:
        return self.names

    @property
    def personas(self) -> tuple[str, ...]:
        return ("only stags", "only hares")

    def persona_reward(
        self,
        persona: Int[Array, "*batch"],
        reward: Float[Array, "*batch"],
        realised: Int[Array, "*batch"],
    ) -> Float[Array, "*batch"]:
        """Prey of the other kind is worth nothing."""
        return jnp.where((persona >= 0) & (realised >= 0) & (realised != persona), 0.0, reward)

    def features(self, state: StagHuntState) -> Float[Array, "seat goal feature"]:
        """The goal one-hot."""
        return jnp.broadcast_to(jnp.eye(2), (self.game.seats, 2, 2))

    def open(self, state: StagHuntState) -> Bool[Array, "seat goal"]:
        """Prey of the kind is left, and for a stag somebody to hunt it with. Once nothing can be
        caught any more both count as open."""
        stags = self.game.config.stags
        stag = jnp.any(state.prey_alive[:stags]) & (jnp.sum(state.alive) > 1)
        kinds = jnp.stack([stag, jnp.any(state.prey_alive[stags:])])
        return jnp.broadcast_to(kinds | ~jnp.any(kinds), (self.game.seats, 2))

    def realised(self, state: StagHuntState, following: StagHuntState) -> Int[Array, " seat"]:
        left = state.alive & ~following.alive
        return jnp.where(left, jnp.where(following.last == HUNT_STAG, 0, 1), -1)

    def habit(self, counts: Integer[Array, "*batch goal"]) -> Int[Array, "*batch"]:
        caught = jnp.any(counts > 0, axis=-1)
        return jnp.where(caught, jnp.argmax(counts, axis=-1), -1)

    def prior(
        self,
        habits: Float[Array, "*batch habit"],
        counts: Integer[Array, "*batch goal"],
        open_: Bool[Array, "*batch goal"],
    ) -> Float[Array, "*batch goal"]:
        return restricted(habits, open_)
