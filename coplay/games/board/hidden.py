"""What a seat does not see of a board, imagined: players and things on cells that are out of sight.

What is seen is put where it is seen. What is believed on a cell that shows nothing was believed on
the wrong one: it moves to a cell out of sight. A window does not tell where on the board it lies;
the edges of the board and the ground that it shows leave some cells for the own player, and so the
own cell, too, belongs to what is imagined.

A game says which things it has (`HiddenBoard.things`) and what its actions need and do; see
`coplay.games.stag_hunt` for one with things that lie somewhere, `coplay.games.harvest` for one
with things that have places of their own.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray, UInt32

from coplay.core.game import Observation, State
from coplay.core.hidden import HiddenStates, Imagined
from coplay.games.board.board_game import BoardGame
from coplay.games.board.chance import drawn_cell, occupied
from coplay.games.board.walls import place, random_words


class Sight(NamedTuple):
    """An own view laid on the board. visible: which cells it shows. planes: what they show."""

    visible: Bool[Array, " cell"]
    planes: Bool[Array, "cell plane"]


class HiddenBoard(HiddenStates):
    """What all games on a board without walls share. `Imagined.known`: [cell] which cells were
    seen; who moves a thing to a cell that was seen before contradicts what was seen.

    Things are those of the first planes behind players and walls. Planes behind those of the things
    show ground, which never changes.
    """

    game: BoardGame

    rooted: ClassVar[bool] = False
    """Things have places of their own: what is hidden is whether they are there."""
    takes: ClassVar[Mapping[int, int]] = {}
    """Action -> the kind of thing on which alone it is legal."""
    leaves: ClassVar[tuple[int, ...]] = ()
    """Actions by which players may leave."""
    never_bare: ClassVar[bool] = False
    """While the own player is in the game, a thing is left."""

    # --- what a game says ----------------------------------------------------------------------

    @property
    def kinds(self) -> tuple[slice, ...]:
        """Which things are of each kind, in the order of planes."""
        return (slice(None),)

    @property
    def start_cells(self) -> np.ndarray:
        """[cell] where players may begin."""
        return np.ones(self.cells, bool)

    def things(self, state: State) -> tuple[Integer[Array, " thing"], Bool[Array, " thing"]]:
        """Their cells, and which are there."""
        raise NotImplementedError

    def with_things(
        self, state: State, cells: Integer[Array, " thing"], there: Bool[Array, " thing"]
    ) -> State:
        """The state with the things on other cells, and others of them there."""
        raise NotImplementedError

    def with_players(
        self, state: State, cell: Integer[Array, " seat"], present: Bool[Array, " seat"]
    ) -> State:
        """The state with the players on other cells, and others of them present."""
        return state._replace(cell=cell)

    # --- the own view on the board -------------------------------------------------------------

    @property
    def cells(self) -> int:
        """How many cells the board has."""
        return self.game.config.height * self.game.config.width

    def seen_from(self, seen: Observation) -> Bool[Array, " cell"]:
        """From which cells the own view can be `seen`, by edges and ground."""
        game, seats = self.game, self.game.seats
        ground = seats + 1 + len(self.kinds)
        fixed = np.array([0, seats, *range(ground, seen.planes.shape[-1])])
        base: Any = game.reset(jax.random.key(0))

        def view(cell: Int[Array, ""]) -> Array:
            state = base._replace(cell=base.cell.at[0].set(cell.astype(base.cell.dtype)))
            return game.observe(state).planes[0][..., fixed]

        shown = jax.vmap(view)(jnp.arange(self.cells))
        return jnp.all(shown == seen.planes[..., fixed], axis=(1, 2, 3))

    def spots(self, own: Integer[Array, ""]) -> Int[Array, " cell"]:
        """Where in the own view each cell is; -1: out of sight."""
        cells = jnp.arange(self.cells)
        if self.game.config.view is None:
            return cells
        return self.game.in_window(own[None, None], cells[None])[0].astype(jnp.int32)

    def sight(self, own: Integer[Array, ""], seen: Observation) -> Sight:
        """The own view from a cell, laid on the board."""
        spots = self.spots(own)
        flat = seen.planes.reshape(-1, seen.planes.shape[-1]) != 0
        visible = spots >= 0
        return Sight(visible, flat[jnp.maximum(spots, 0)] & visible[:, None])

    def told(self, seen: Observation) -> Integer[Array, " seat"]:
        seats, actions = self.game.seats, self.game.actions
        past = seen.features[: seats * actions].reshape(seats, actions)
        return jnp.argmax(past, axis=-1).astype(jnp.int32)

    # --- the beginning of an episode -----------------------------------------------------------

    def begin(self, key: PRNGKeyArray, seen: Observation) -> Imagined:
        """Everything as at a reset, the own seat any of the game's; what is out of sight lies
        evenly on the cells out of sight."""
        game, seats = self.game, self.game.seats
        reset_key, key = jax.random.split(key)
        first: Any = game.reset(reset_key)
        cells, there = self.things(first)
        count = cells.shape[0]
        words = random_words(key, 2 + seats + count)
        seat = (words[0] % seats).astype(jnp.int32)
        state: Any = game.ego_state(first, seat)
        own = drawn_cell(words[1], self.seen_from(seen) & self.start_cells)
        sight = self.sight(own, seen)
        at = jnp.argmax(sight.planes[:, :seats], axis=0)
        there_seen = jnp.any(sight.planes[:, :seats], axis=0)
        if self.rooted:
            there = self._scattered(words[2 + seats :], cells, there, sight)
            placed, unseen = at, ~there_seen
        else:
            found = [self._listed(k, part, count, sight) for k, part in enumerate(self.kinds)]
            placed = jnp.concatenate([at, *(cell for cell, _ in found)])
            unseen = ~jnp.concatenate([there_seen, *(known for _, known in found)])
        room = ~sight.visible & self.start_cells
        rank = jnp.cumsum(unseen) - 1
        spot = place(words[2 : 2 + placed.shape[0]], jnp.sum(room))[jnp.maximum(rank, 0)]
        placed = jnp.where(unseen, nth(room, spot), placed).astype(cells.dtype)
        state = self.with_players(
            state, placed[:seats].at[0].set(own.astype(cells.dtype)), jnp.ones(seats, bool)
        )
        cells = cells if self.rooted else placed[seats:]
        return Imagined(self.with_things(state, cells, there), sight.visible)

    def _listed(
        self, kind: int, part: slice, count: int, sight: Sight
    ) -> tuple[Int[Array, " thing"], Bool[Array, " thing"]]:
        """Cells of the things of a kind that are seen, the first ones of the kind; and which are
        seen. Things of a kind are alike."""
        index = jnp.arange(len(range(*part.indices(count))))
        shown = sight.planes[:, self._plane(kind)]
        return nth(shown, index), index < jnp.sum(shown)

    def _scattered(
        self,
        words: UInt32[Array, " thing"],
        cells: Integer[Array, " thing"],
        there: Bool[Array, " thing"],
        sight: Sight,
    ) -> Bool[Array, " thing"]:
        """Which rooted things are there: as seen, and of those out of sight as many as at a reset
        are missing, evenly."""
        found = []
        for kind, part in enumerate(self.kinds):
            shown, out = sight.planes[cells[part], self._plane(kind)], ~sight.visible[cells[part]]
            missing = jnp.sum(there[part]) - jnp.sum(shown)
            found.append(shown | (out & (ranks(words[part], out) < missing)))
        return jnp.concatenate(found)

    def _plane(self, kind: int) -> int:
        return self.game.seats + 1 + kind

    # --- what others did must have been possible -----------------------------------------------

    def allow(
        self, key: PRNGKeyArray, imagined: Imagined, actions: Integer[Array, " seat"]
    ) -> Imagined:
        """Who took something gets a thing of the kind beneath; who moved off the board stands
        elsewhere; who left and now does something else has not left."""
        seats, start = self.game.seats, imagined.state
        count = self.things(start)[0].shape[0]
        words = random_words(key, seats * (1 + count)).reshape(seats, 1 + count)
        hidden = self.spots(start.cell[0]) < 0

        def one(state: State, given: tuple[Int[Array, ""], Array]) -> tuple[State, None]:
            seat, mine = given
            return self._allowed(mine, state, seat, actions[seat], hidden), None

        # One seat after the other in a loop: written out it takes far longer to compile.
        state, _ = jax.lax.scan(one, start, (jnp.arange(1, seats), words[1:]))
        return imagined._replace(state=state)

    def _allowed(
        self,
        words: UInt32[Array, " word"],
        state: State,
        seat: Int[Array, ""],
        action: Integer[Array, ""],
        hidden: Bool[Array, " cell"],
    ) -> State:
        """The state in which a co-player can do this; the same one if it is seen."""
        game: Any = self.game
        present = game.present(state)
        gone = ~present[seat] & (action == state.last[seat])
        # Who is seen stands where it does: then it is the particle's own cell that is wrong.
        seen = present[seat] & ~hidden[state.cell[seat]]
        stuck = ~gone & ~seen & ~(present[seat] & game.legal(state)[seat, action])
        takes = jnp.any(jnp.array(list(self.takes), jnp.int32) == action)
        anew = stuck & ~(takes & present[seat])
        room = hidden & self._leads_on_board[action]
        cell = jnp.where(anew & jnp.any(room), drawn_cell(words[0], room), state.cell[seat])
        state = self.with_players(
            state,
            state.cell.at[seat].set(cell.astype(state.cell.dtype)),
            present.at[seat].set(present[seat] | anew),
        )
        for take, kind in self.takes.items():
            state = self._beneath(words[1:], state, seat, kind, stuck & (action == take), hidden)
        return state

    @property
    def _leads_on_board(self) -> Bool[Array, "action cell"]:
        """From which cells each action leads to no cell off the board."""
        config = self.game.config
        row, column = np.divmod(np.arange(self.cells), config.width)
        moves = [row > 0, row < config.height - 1, column > 0, column < config.width - 1]
        rest = [np.ones(self.cells, bool)] * (self.game.actions - len(moves))
        return jnp.asarray(np.stack([*moves, *rest]))

    def _beneath(
        self,
        words: UInt32[Array, " thing"],
        state: State,
        seat: Int[Array, ""],
        kind: int,
        needs: Bool[Array, ""],
        hidden: Bool[Array, " cell"],
    ) -> State:
        """A thing of the kind where the player is, if it needs one: one that lies elsewhere out of
        sight, else one that was thought to be gone. If things are rooted, the player comes."""
        cells, there = self.things(state)
        mine = np.zeros(cells.shape[0], bool)
        mine[self.kinds[kind]] = True
        chance = as_uniform(words)
        if self.rooted:
            score = jnp.where(mine & hidden[cells], chance + there, -1.0)
        else:
            score = jnp.where(mine & ~(there & ~hidden[cells]), chance + there, -1.0)
        needs = needs & (jnp.max(score) >= 0)
        chosen = (jnp.arange(cells.shape[0]) == jnp.argmax(score)) & needs
        there = there | chosen
        if self.rooted:
            cell = jnp.where(needs, cells[jnp.argmax(score)], state.cell[seat])
            cell = state.cell.at[seat].set(cell.astype(state.cell.dtype))
            state = self.with_players(state, cell, self.game.present(state))
        else:
            cells = jnp.where(chosen, state.cell[seat], cells)
        return self.with_things(state, cells, there)

    # --- what is seen must be there ------------------------------------------------------------

    def mend(self, key: PRNGKeyArray, imagined: Imagined, seen: Observation) -> Imagined:
        state: Any = imagined.state
        seats, count = self.game.seats, self.things(state)[0].shape[0]
        words = random_words(key, 2 + 2 * seats + 2 * count)
        own, compatible = state.cell[0], self.seen_from(seen)
        right = compatible[own]
        own = jnp.where(right, own, drawn_cell(words[0], compatible)).astype(own.dtype)
        sight = self.sight(own, seen)
        known = imagined.known & right
        last, time = self.told(seen), seen.features[-1] * self.game.config.horizon
        state = state._replace(
            cell=state.cell.at[0].set(own),
            last=last.astype(state.last.dtype),
            # A player that comes late to an episode was told nothing of its beginning.
            time=jnp.round(time).astype(state.time.dtype),
        )
        state = self._players_as_seen(words[2 : 2 + 2 * seats], state, sight)
        words, spare = words[2 + 2 * seats :], words[1]
        cells, there = self.things(state)
        if self.rooted:
            for kind, part in enumerate(self.kinds):
                shown = sight.planes[cells[part], self._plane(kind)]
                there = there.at[part].set(
                    jnp.where(sight.visible[cells[part]], shown, there[part])
                )
        else:
            cells, there = self._things_as_seen(words, spare, cells, there, sight, known)
        return Imagined(self.with_things(state, cells, there), known | sight.visible)

    def _players_as_seen(self, words: UInt32[Array, " word"], state: State, sight: Sight) -> State:
        """Players where they are seen; who should be seen and is not is somewhere out of sight, or
        has left."""
        seats = self.game.seats
        present, hidden = self.game.present(state), ~sight.visible
        shown = jnp.any(sight.planes[:, :seats], axis=0)
        at = jnp.argmax(sight.planes[:, :seats], axis=0)
        leaving = jnp.any(state.last[:, None] == jnp.array(self.leaves, jnp.int32), axis=1)
        lost = ~shown & jnp.where(present, sight.visible[state.cell], ~leaving)
        gone = lost & ((leaving & (as_uniform(words[seats:]) < 0.5)) | ~jnp.any(hidden))
        elsewhere = jax.vmap(drawn_cell, (0, None))(words[:seats], hidden)
        cell = jnp.where(shown, at, jnp.where(lost & ~gone, elsewhere, state.cell))
        present = shown | (present & ~lost) | (lost & ~gone)
        return self.with_players(state, cell.astype(state.cell.dtype), present)

    def _things_as_seen(
        self,
        words: UInt32[Array, " word"],
        spare: UInt32[Array, ""],
        cells: Integer[Array, " thing"],
        there: Bool[Array, " thing"],
        sight: Sight,
        known: Bool[Array, " cell"],
    ) -> tuple[Integer[Array, " thing"], Bool[Array, " thing"]]:
        """Things where they are seen: first those that lie where none is seen, then others out of
        sight, then those thought to be gone. What then still lies where none is seen goes out of
        sight, if possible where the player has not looked."""
        count = cells.shape[0]
        chance, bits = as_uniform(words[:count]), words[count:]
        wrong = jnp.zeros(count, bool)
        for kind, part in enumerate(self.kinds):
            shown = sight.planes[:, self._plane(kind)]
            cell, here = cells[part], there[part]
            right = here & shown[cell]
            misplaced = here & sight.visible[cell] & ~shown[cell]
            missing = shown & ~occupied(self.cells, jnp.where(right, cell, -1))
            score = jnp.where(right, -1.0, chance[part] + here + misplaced)
            rank = jnp.sum(score[None, :] > score[:, None], axis=1)
            found = ~right & (rank < jnp.sum(missing))
            cells = cells.at[part].set(
                jnp.where(found, nth(missing, rank), cell).astype(cells.dtype)
            )
            there = there.at[part].set(here | found)
            wrong = wrong.at[part].set(misplaced & ~found)
        free = ~sight.visible & ~occupied(self.cells, jnp.where(there & ~wrong, cells, -1))
        fresh = free & ~known
        room = jnp.where(jnp.sum(fresh) >= jnp.sum(wrong), fresh, free)
        rank, most = jnp.cumsum(wrong) - 1, jnp.sum(room)
        elsewhere = nth(room, place(bits, most)[jnp.maximum(rank, 0)])
        cells = jnp.where(wrong, elsewhere, cells).astype(cells.dtype)
        there = jnp.where(wrong, rank < most, there)
        if self.never_bare:
            bare = ~jnp.any(there) & (jnp.arange(count) == 0)
            cells = jnp.where(bare, drawn_cell(spare, ~sight.visible), cells).astype(cells.dtype)
            there = there | bare
        return cells, there


def hidden_board(kind: type[HiddenBoard], game: BoardGame) -> HiddenBoard | None:
    """What a game's seats do not see; None on boards with walls, of which there are too many, and
    in games built on one of ours, whose views may show other things."""
    own = type(game).observe.__module__.startswith("coplay.games.")
    return kind(game) if own and not game.walled else None


def nth(mask: Bool[Array, " cell"], rank: Integer[Array, " one"]) -> Int[Array, " one"]:
    """The cells of a mask with these ranks, counted from 0; cell 0 beyond the last one."""
    count = jnp.cumsum(mask, dtype=jnp.int32)
    return jnp.argmax(count == rank[:, None] + 1, axis=1).astype(jnp.int32)


def ranks(words: UInt32[Array, " one"], among: Bool[Array, " one"]) -> Int[Array, " one"]:
    """A random order of those in the mask: how many of them come before each."""
    earlier = (words[None, :] < words[:, None]) & among[None, :]
    return jnp.sum(earlier, axis=1)


def as_uniform(words: UInt32[Array, " one"]) -> Float[Array, " one"]:
    """Random words as numbers in [0, 1)."""
    return (words >> 8).astype(jnp.float32) * 2.0**-24
