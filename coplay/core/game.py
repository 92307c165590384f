"""The game protocol: what every game gives, as pure functions of an explicit state and key.

A game is an `equinox.Module`: its rules' parameters are static fields, its tables are arrays, so it
passes through `jax.jit` as an argument. All methods speak of ONE game copy; rollouts and planners
`vmap` them. A state is a pytree of arrays that may be copied, stored and stepped at will: a planner
steps copies of it with its own key and never sees the randomness of the real game.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray, Shaped

from coplay.core.entities import EntityList
from coplay.core.errors import UserError
from coplay.core.goals import Goals
from coplay.core.layout import Layout

State = Any  # a pytree of arrays, private to its game

# (game, ego state) -> probabilities of the actions of the seat whose ego state it is
ScriptedPolicy = Callable[[Any, State], Float[Array, " action"]]


class Observation(NamedTuple):
    """Ego views: everything as each seat sees it, itself first, the others in cyclic order.

    The leading axes are [seat] from a game, [copy, seat] in a rollout, [time, copy, seat] in a
    trajectory.

    planes: [..., height, width, plane], any dtype; plane = 0 for a game without a board. The first
        `game.seat_planes` planes per seat come first, ego-first.
    features: [..., feature] float; the first `game.seat_features` numbers per seat come first,
        ego-first.
    legal: [..., action] which actions are legal; at least one always is.
    indices: [..., index] where planes and features, flattened one after the other, are 1, each
        place once; all other numbers are 0 but for the last one, which is the same for all seats.
        The own player comes first; where features tell what each seat did last, their indices come
        last. An index that is absent in this state has the number beyond the last place. Networks
        read a few indices much faster than a board. None: the game gives none.

        seen = game.observe(state)
        action = int(seen.legal[0].argmax())  # the first legal action of seat 0
    """

    planes: Shaped[Array, "*batch height width plane"]
    features: Float[Array, "*batch feature"]
    legal: Bool[Array, "*batch action"]
    indices: Int[Array, "*batch index"] | None = None


class Outcome(NamedTuple):
    """What one step brought.

    reward: [seat] zero for seats that were not alive before the step.
    terminated: [seat] the seat left the game in this step; nothing follows for it.
    truncated: [] the episode was cut although somebody was still in the game: those seats' future
        has a value that was not played out.

        state, outcome = game.step(key, state, actions)
        print(outcome.reward, outcome.terminated)
    """

    reward: Float[Array, " seat"]
    terminated: Bool[Array, " seat"]
    truncated: Bool[Array, ""]


class Game(eqx.Module):
    """A game of `seats` seats with `actions` actions each; see the module docstring.

    game = coplay.make_game("stag-hunt")
    state = game.reset(jax.random.key(0))
    state, outcome = game.step(jax.random.key(1), state, jnp.zeros(game.seats, int))
    """

    name: ClassVar[str]
    action_names: ClassVar[tuple[str, ...]]
    seat_planes: ClassVar[int] = 0
    """How many planes each seat has at the front of `Observation.planes`."""
    seat_features: ClassVar[int] = 0
    """How many numbers each seat has at the front of `Observation.features`."""
    on_grid: ClassVar[bool] = False
    """Whether it is played on a board of cells: a seat's plane is 1 where it stands, and players
    stand still or move as `coplay.core.grid` says."""
    idle_action: ClassVar[int | None] = None
    """The action that does nothing; None: there is none."""
    symmetric: ClassVar[bool] = True
    """Whether the seats can be renumbered (`permute_seats`). If not, nothing promises that the
    seats are alike: views need not be ego-first."""

    @property
    def can_renumber(self) -> bool:
        """Whether it has `permute_seats`, by which planners put their own seat first. A game that
        is not `symmetric` may have it, too: every seat then keeps what is particular to it."""
        return self.symmetric

    @property
    def seats(self) -> int:
        raise NotImplementedError

    @property
    def actions(self) -> int:
        return len(self.action_names)

    @property
    def teams(self) -> tuple[int, ...]:
        """The side of each seat of a fresh state, numbered from 0; empty: each is for itself.

        Seats are alike within a side. In a `symmetric` game the state says who is on which side,
        and `permute_seats` moves players with their sides.
        """
        return ()

    @property
    def sides(self) -> tuple[tuple[int, ...], ...]:
        """The seats that are alike: those of each side, or all of them."""
        teams = self.teams or (0,) * self.seats
        return tuple(
            tuple(seat for seat, side in enumerate(teams) if side == one)
            for one in sorted(set(teams))
        )

    @property
    def side_names(self) -> tuple[str, ...]:
        """What the sides are called; unless a game has names for them, their numbers."""
        return tuple(str(side) for side in range(len(self.sides)))

    def side_of(self, state: State) -> Int[Array, " seat"]:
        """The side of each seat in a state; where there are no teams, each has one of its own. A
        game with teams whose seats can be renumbered says it itself."""
        if self.teams and self.can_renumber:
            raise NotImplementedError
        return jnp.asarray(self.teams or range(self.seats), jnp.int32)

    def tells(self, about: Callable[[State], Any]) -> bool:
        """Whether one of its methods says something about a state; not every game has all."""
        try:
            jax.eval_shape(lambda key: about(self.reset(key)), jax.random.key(0))
        except NotImplementedError:
            return False
        return True

    @property
    def horizon(self) -> int | None:
        """Steps of the longest possible episode; None: the game does not say."""
        return None

    @property
    def plane_names(self) -> tuple[str, ...]:
        """What each plane of an ego view shows, ego-first; empty for a game without a board."""
        return ()

    @property
    def entities(self) -> tuple[EntityList, ...]:
        """Lists of like things among the features of its views, for networks that treat them as
        sets; empty: undeclared."""
        return ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines that a user should read before playing, e.g. that views of seats are padded."""
        return ()

    @property
    def scripted(self) -> Mapping[str, ScriptedPolicy]:
        """The game's scripted players by name (`random`, which every game has, left out)."""
        return {}

    @property
    def blocks(self) -> Mapping[str, ScriptedPolicy]:
        """What partners made of rules are composed of, by name: simple ways to act, the
        cooperative one first."""
        return self.scripted

    @property
    def event_names(self) -> tuple[str, ...]:
        """What may happen to a seat in a step (`events`), the act of cooperation first; empty:
        undeclared."""
        return ()

    def events(self, state: State, following: State) -> Float[Array, "seat event"]:
        """1 for each event that happened to a seat in the step between two states, else 0."""
        raise NotImplementedError

    def reset(self, key: PRNGKeyArray) -> State:
        """A fresh state in which every seat is alive."""
        raise NotImplementedError

    def step(
        self, key: PRNGKeyArray, state: State, actions: Int[Array, " seat"]
    ) -> tuple[State, Outcome]:
        """All seats act at once. The actions of seats that are not alive are ignored."""
        raise NotImplementedError

    def observe(self, state: State) -> Observation:
        """The ego views of all seats."""
        raise NotImplementedError

    def alive(self, state: State) -> Bool[Array, " seat"]:
        """Which seats are still in the game."""
        raise NotImplementedError

    @property
    def full_view(self) -> bool:
        """Whether a planner given the state sees no more than a player of the game may: the own
        views up to now, and what everybody did, tell all that matters for what follows."""
        return True

    @property
    def has_sparse_view(self) -> bool:
        """Whether its observations have `indices`."""
        return False

    def sparse_view(self, state: State) -> Int[Array, "seat index"]:
        """`Observation.indices` of a state; only for games that give them (`has_sparse_view`)."""
        indices = self.observe(state).indices
        assert indices is not None
        return indices

    @property
    def goals(self) -> Goals | None:
        """The goals its players may have, for players that think about others; None: undeclared."""
        return None

    @property
    def hidden(self) -> Any:
        """How to imagine what a seat does not see (`coplay.core.hidden.HiddenStates`), for players
        that plan by their own views; None: undeclared."""
        return None

    @property
    def has_global_state(self) -> bool:
        """Whether `global_state` is something else than what all seats see."""
        return False

    @property
    def view_is_global(self) -> bool:
        """Whether a seat's own ego view is all that a critic could be shown."""
        return self.symmetric and self.full_view and not self.has_global_state

    def global_state(self, state: State) -> Float[Array, " number"]:
        """Everything at once, for a critic that may see all; unless a game has something of its
        own, what all seats see, one after the other."""
        seen = self.observe(state)
        parts = (seen.planes.reshape(self.seats, -1).astype(jnp.float32), seen.features)
        return jnp.concatenate(parts, axis=1).reshape(-1)

    def last_actions(self, state: State) -> Integer[Array, " seat"]:
        """The previous joint action as executed, from the state. For players that model others."""
        raise NotImplementedError

    def permute_seats(self, state: State, order: Int[Array, " seat"]) -> State:
        """The same situation with the seats renumbered: new seat i is old seat `order[i]`.

        Only for games that can (`can_renumber`).
        """
        raise NotImplementedError

    def scores(self, state: State) -> Mapping[str, Float[Array, ""]]:
        """Numbers beside the rewards that tell, from the last state of an episode, how it went:
        `won`, for instance, 1 or 0. Matches give their means."""
        return {}

    @property
    def action_moves(self) -> tuple[tuple[float, float] | None, ...]:
        """[action] by how much it moves a player in a layout, (x, y); None: the game does not say.
        For arrows of predicted actions and paths of plans."""
        return (None,) * self.actions

    def layout(self, state: State) -> Layout:
        """Where everything is, for pages that draw it themselves."""
        raise NotImplementedError

    def draw(self, state: State, cell: int = 48) -> np.ndarray:
        """A picture of a state as [pixel row, pixel column, RGB] uint8."""
        raise NotImplementedError

    def text(self, state: State) -> str:
        """A state as lines of text for the terminal."""
        raise NotImplementedError

    def ego_state(self, state: State, seat: Int[Array, ""] | int) -> State:
        """The state with `seat` renumbered to 0 and the others following in cyclic order.

        In a game that cannot renumber its seats: the state as it is, whatever the seat.
        """
        if not self.can_renumber:
            return state
        return self.permute_seats(state, (seat + jnp.arange(self.seats)) % self.seats)


def require_horizon(game: Game) -> int:
    """Steps of the longest possible episode, or an error if the game does not say."""
    if game.horizon is None:
        raise UserError(f"'{game.name}' does not say how long an episode may be (Game.horizon)")
    return game.horizon


def seat_plane_names(seats: int) -> tuple[str, ...]:
    """Names for planes that show one player each, ego-first."""
    return tuple(f"player {seat}" + " (self)" * (seat == 0) for seat in range(seats))
