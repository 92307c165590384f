"""Cleanup: apples grow only while somebody keeps the river clean, far from the apples."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from coplay.core.config import Share
from coplay.core.errors import UserError
from coplay.core.game import Observation, Outcome, ScriptedPolicy
from coplay.games.board.board_game import (
    STAY,
    WHEREABOUTS,
    BoardGame,
    Count,
    OpenBoardConfig,
    Size,
    approach,
    avoid,
    follow,
    moving,
    towards,
    uniform,
    whereabouts,
)
from coplay.games.board.chance import drawn_cell, first_come
from coplay.games.board.drawing import Icon, food_icon, waste_icon
from coplay.games.board.hidden import HiddenBoard, hidden_board
from coplay.games.board.walls import random_words
from coplay.games.drawing import Colour

CLEAN = 5
WATER, GRASS = "#CFE0EA", "#E4EBD3"


@dataclass(frozen=True)
class CleanupConfig(OpenBoardConfig):
    """Cleanup."""

    horizon: Size = 100
    """Steps after which an episode is truncated."""
    view: Count | None = 2
    """If v: each player sees a (2v+1)x(2v+1) window centred on itself; none: the whole board."""
    river: Size = 2
    """Columns of the river, on the left."""
    orchard: Size = 3
    """Columns of the orchard, on the right."""
    waste: Share = 0.5
    """Share of the river's cells with waste at the start."""
    waste_growth: Share = 0.25
    """Probability per step that waste appears on one of the river's clean cells."""
    threshold: Share = 0.4
    """Share of the river's cells with waste from which on no apple grows."""
    apple_growth: Share = 0.05
    """Probability per step that an apple grows on a bare cell of the orchard beside a river without
    waste; with waste it falls in proportion, to 0 at the threshold."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.river + self.orchard > self.width:
            raise UserError(
                f"a river of {self.river} and an orchard of {self.orchard} columns do not fit on a "
                f"board of {self.width}: raise game.width"
            )
        if self.threshold == 0:
            raise UserError("with game.threshold 0 no apple would ever grow: raise it")


class CleanupState(NamedTuple):
    """One game copy. Cells are numbered row by row.

    cell: [seat] where each player stands.
    last: [seat] the last action as executed.
    place: [seat] a number that stays with the player when seats are renumbered.
    took: [seat] the player took an apple in the last step.
    waste: [river cell] which cells of the river have waste.
    apple: [orchard cell] which cells of the orchard have an apple.
    board: [] which wall map; there is one, without walls.
    time: [] steps played.
    """

    cell: Integer[Array, " seat"]
    last: Integer[Array, " seat"]
    place: Integer[Array, " seat"]
    took: Bool[Array, " seat"]
    waste: Bool[Array, " river"]
    apple: Bool[Array, " orchard"]
    board: Integer[Array, ""]
    time: Integer[Array, ""]


class Cleanup(BoardGame):
    """Rules in `step`, ego views in `observe`, scripted players below.

    Who steps on an apple takes it; waste is cleaned by an action of its own. Nobody leaves.
    """

    config: CleanupConfig = eqx.field(static=True)

    name = "cleanup"
    action_names = ("up", "down", "left", "right", "stay", "clean")
    seat_features = len(action_names)
    thing_names: ClassVar[tuple[str, ...]] = ("apples", "waste", "river", "orchard")
    seat_fields = ("cell", "last", "place", "took")

    def __init__(self, config: CleanupConfig = CleanupConfig()):
        super().__init__(config, 0)

    @property
    def river(self) -> np.ndarray:
        """[river cell] the cells of the river."""
        config = self.config
        cells = np.arange(config.height * config.width, dtype=np.int16)
        return cells[cells % config.width < config.river]

    @property
    def orchard(self) -> np.ndarray:
        """[orchard cell] the cells of the orchard."""
        config = self.config
        cells = np.arange(config.height * config.width, dtype=np.int16)
        return cells[cells % config.width >= config.width - config.orchard]

    # --- rules ---------------------------------------------------------------------------------

    def reset(self, key: PRNGKeyArray) -> CleanupState:
        """Waste on random cells of the river, no apples, players on distinct cells."""
        config = self.config
        place_key, waste_key = jax.random.split(key)
        board, cell = self.scatter(place_key, self.seats)
        count = len(self.river)
        rank = jnp.argsort(jax.random.uniform(waste_key, (count,)))
        return CleanupState(
            cell=cell,
            last=jnp.full(self.seats, STAY, jnp.int8),
            place=jnp.arange(self.seats, dtype=jnp.int8),
            took=jnp.zeros(self.seats, bool),
            waste=rank < round(config.waste * count),
            apple=jnp.zeros(len(self.orchard), bool),
            board=board,
            time=jnp.int16(0),
        )

    def legal(self, state: CleanupState) -> Bool[Array, "seat action"]:
        """Which actions are legal for each seat: cleaning only on waste."""
        stay = jnp.ones((self.seats, 1), bool)
        on = (state.cell[:, None] == self.river) & state.waste
        clean = jnp.any(on, axis=1, keepdims=True)
        return jnp.concatenate([self.legal_moves(state), stay, clean], axis=-1)

    def step(
        self, key: PRNGKeyArray, state: CleanupState, actions: Int[Array, " seat"]
    ) -> tuple[CleanupState, Outcome]:
        """All move or clean; who arrives on an apple takes it, of several one by chance. Then
        apples grow on bare cells of the orchard where nobody stands, by the waste that is left.
        Then waste may appear."""
        config = self.config
        words_key, grow_key = jax.random.split(key)
        words = random_words(words_key, self.seats + 2)
        chosen, executed = self.executed(self.legal(state), actions)
        cell = self.moved(state, chosen)
        cleaned = jnp.any(chosen[:, CLEAN, None] & (cell[:, None] == self.river), axis=0)
        waste = state.waste & ~cleaned

        on = cell[:, None] == self.orchard  # [seat, orchard cell]
        takes = first_come(words[: self.seats], state.place, on & state.apple)
        apple = state.apple & ~jnp.any(takes, axis=0)
        dirt = jnp.mean(waste.astype(jnp.float32)) / config.threshold
        chance = config.apple_growth * jnp.maximum(0.0, 1.0 - dirt)
        grows = jax.random.uniform(grow_key, apple.shape) < chance
        apple |= grows & ~jnp.any(on, axis=0)

        appears = words[-2].astype(jnp.float32) < config.waste_growth * 2.0**32
        spot = drawn_cell(words[-1], ~waste)
        waste |= appears & (jnp.arange(waste.shape[0]) == spot)

        time = state.time + jnp.int16(1)
        took = jnp.any(takes, axis=1)
        following = state._replace(
            cell=cell, last=executed, took=took, waste=waste, apple=apple, time=time
        )
        nobody = jnp.zeros(self.seats, bool)
        return following, Outcome(took.astype(jnp.float32), nobody, time >= config.horizon)

    # --- ego views and pictures ----------------------------------------------------------------

    def observe(self, state: CleanupState) -> Observation:
        """Planes: the players ego-first, walls (only beyond the edge), apples, waste, river,
        orchard. Features: for each player ego-first its last action one-hot, then time / horizon.
        """
        cells, there, kinds = self._things(state)
        return self.board_views(state, cells, there, kinds, self.legal(state))

    def _things(self, state: CleanupState) -> tuple[Array, Array, tuple[slice, ...]]:
        """Apples, waste, river, orchard: cells, which are there, and the parts of the list."""
        sizes = [len(self.orchard), len(self.river), len(self.river), len(self.orchard)]
        ends = np.cumsum(sizes)
        cells = np.concatenate([self.orchard, self.river, self.river, self.orchard])
        always = jnp.ones(sum(sizes[2:]), bool)
        there = jnp.concatenate([state.apple, state.waste, always])
        kinds = [slice(int(end - size), int(end)) for size, end in zip(sizes, ends, strict=True)]
        return jnp.asarray(cells), there, tuple(kinds)

    def things(self, state: CleanupState) -> list[tuple[int, Icon, str]]:
        """The apples: a. The waste: w."""
        apples = zip(self.orchard, np.asarray(state.apple), strict=True)
        waste = zip(self.river, np.asarray(state.waste), strict=True)
        found: list[tuple[int, Icon, str]] = [
            (int(spot), food_icon(0), "a") for spot, there in apples if there
        ]
        return found + [(int(spot), waste_icon, "w") for spot, there in waste if there]

    @property
    def ground(self) -> Mapping[int, Colour]:
        water = {int(spot): WATER for spot in self.river}
        return water | {int(spot): GRASS for spot in self.orchard}

    @property
    def hidden(self) -> "HiddenCleanup | None":
        found: Any = hidden_board(HiddenCleanup, self)
        return found

    # --- scripted players ----------------------------------------------------------------------

    @property
    def scripted(self) -> Mapping[str, ScriptedPolicy]:
        return {"waste-first": waste_first, "nearest-apple": nearest_apple}

    @property
    def blocks(self) -> Mapping[str, ScriptedPolicy]:
        return {**self.scripted, "follow": follow, "avoid": avoid}

    @property
    def event_names(self) -> tuple[str, ...]:
        return ("cleaned", "took an apple", *WHEREABOUTS)

    def events(self, state: CleanupState, following: CleanupState) -> Float[Array, "seat event"]:
        happened = [following.last == CLEAN, following.took, *whereabouts(self, following)]
        return jnp.stack(happened, axis=-1).astype(jnp.float32)


class HiddenCleanup(HiddenBoard):
    """Which apples and which waste are there out of sight."""

    game: Cleanup

    rooted = True
    takes: ClassVar[Mapping[int, int]] = {CLEAN: 1}

    @property
    def kinds(self) -> tuple[slice, ...]:
        count = len(self.game.orchard)
        return slice(0, count), slice(count, None)

    def things(self, state: CleanupState) -> tuple[Integer[Array, " spot"], Bool[Array, " spot"]]:
        cells = np.concatenate([self.game.orchard, self.game.river])
        return jnp.asarray(cells), jnp.concatenate([state.apple, state.waste])

    def with_things(
        self, state: CleanupState, cells: Integer[Array, " spot"], there: Bool[Array, " spot"]
    ) -> CleanupState:
        apples = len(self.game.orchard)
        return state._replace(apple=there[:apples], waste=there[apples:])


def nearest_apple(game: Cleanup, ego: CleanupState) -> Float[Array, " action"]:
    """Goes to a nearest apple and takes it; while there is none, to the orchard, and at random
    there. It never cleans."""
    legal = game.legal(ego)[0] & (jnp.arange(game.actions) != CLEAN)
    there = jnp.any(ego.apple)
    wanted = jnp.where(there, ego.apple, True)
    arrived = ~there & jnp.any(ego.cell[0] == game.orchard)
    moves = towards(game, ego, legal, jnp.asarray(game.orchard), wanted)
    return moving(game, jnp.where(arrived, 0.0, moves), uniform(legal))


def waste_first(game: Cleanup, ego: CleanupState) -> Float[Array, " action"]:
    """Goes to the nearest waste and cleans it; while there is none, it takes apples."""
    legal = game.legal(ego)[0]
    clean = approach(game, ego, legal, jnp.asarray(game.river), ego.waste, CLEAN)
    return jnp.where(jnp.any(ego.waste), clean, nearest_apple(game, ego))
