"""How the seats of a game act together.

`Group`s gather the seats whose players are alike, so the compiled program grows with the number of
different players and not with the number of seats.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Integer, Key

from coplay.core.game import Game, State
from coplay.core.player import SEATS, Foreseen, Insight, Memory, Player, View


class Group(eqx.Module):
    """Seats whose players are alike but for their numbers.

    player: one player; if not `shared`, every array has a leading [seat of the group] axis.
    seats: which seats of the game.
    shared: all seats use the very same arrays.

        coplay.Group(players, seats=(0, 2), shared=False)  # arrays of players: [2, ...]
    """

    player: Player
    seats: tuple[int, ...] = eqx.field(static=True)
    shared: bool = eqx.field(static=True)

    def start(self, copies: int) -> Memory:
        """Memory with leading axes [seat of the group, copy]."""
        memory = self.player_of_one_seat().start(copies)
        return jax.tree.map(lambda x: jnp.broadcast_to(x, (len(self.seats), *x.shape)), memory)

    def player_of_one_seat(self) -> Player:
        """The player of the group's first seat."""
        return self.player if self.shared else jax.tree.map(lambda x: x[0], self.player)

    def act(
        self, game: Game, keys: Key[Array, " seat"], views: View, memory: Memory
    ) -> tuple[Float[Array, "seat copy action"], Memory]:
        """All seats of the group at once; every argument has the group's seat axis first."""
        axis = None if self.shared else 0
        return jax.vmap(
            lambda player, key, view, mine: player.act(game, key, view, mine),
            in_axes=(axis, 0, 0, 0),
            axis_name=SEATS,
        )(self.player, keys, views, memory)

    def explain(
        self, game: Game, keys: Key[Array, " seat"], views: View, memory: Memory
    ) -> tuple[Float[Array, "seat copy action"], Memory, Insight | None]:
        """As `act`, and what the players thought."""
        axis = None if self.shared else 0
        return jax.vmap(
            lambda player, key, view, mine: player.explain(game, key, view, mine),
            in_axes=(axis, 0, 0, 0),
            axis_name=SEATS,
        )(self.player, keys, views, memory)

    def record(self, memory: Memory) -> Any:
        """What its players' learner is to know, [seat of the group, copy, ...]."""
        return jax.vmap(self.player.record, axis_size=len(self.seats))(memory)

    @property
    def notices(self) -> bool:
        """Whether its players look at what a step brought."""
        return self.player.notices

    def notice(
        self, game: Game, views: View, after: State, over: Bool[Array, " copy"], memory: Memory
    ) -> Memory:
        """All seats of the group at once; every argument but `over` has the seat axis first."""
        axis = None if self.shared else 0
        return jax.vmap(
            lambda player, view, after, mine: player.notice(game, view, after, over, mine),
            in_axes=(axis, 0, 0, 0),
            axis_name=SEATS,
        )(self.player, views, after, memory)

    def foresee(
        self, game: Game, views: View, actions: Integer[Array, "seat copy player"]
    ) -> Foreseen | None:
        """All seats of the group at once; every argument has the group's seat axis first."""
        axis = None if self.shared else 0
        return jax.vmap(
            lambda player, view, done: player.foresee(game, view, done), in_axes=(axis, 0, 0)
        )(self.player, views, actions)

    def insight(self, game: Game, views: View, memory: Memory) -> Insight | None:
        """All seats of the group at once; every argument has the group's seat axis first."""
        axis = None if self.shared else 0
        return jax.vmap(
            lambda player, view, mine: player.insight(game, view, mine), in_axes=(axis, 0, 0)
        )(self.player, views, memory)


def group_players(players: Sequence[Player]) -> tuple[Group, ...]:
    """The players of seats 0, 1, … as groups: players of the same structure act in one batch."""
    members: dict[Any, list[int]] = {}
    for seat, player in enumerate(players):
        arrays, structure = jax.tree.flatten(player)
        kind = (structure, tuple((x.shape, str(x.dtype)) for x in arrays))
        members.setdefault(kind, []).append(seat)
    groups = []
    for seats in members.values():
        alike = [players[seat] for seat in seats]
        shared = all(player is alike[0] for player in alike) or not jax.tree.leaves(alike[0])
        stacked = alike[0] if shared else jax.tree.map(lambda *x: jnp.stack(x), *alike)
        groups.append(Group(stacked, tuple(seats), shared))
    return tuple(groups)


def decide(
    game: Game,
    groups: tuple[Group, ...],
    keys: Key[Array, " seat"],
    views: View,
    memory: tuple[Memory, ...],
) -> tuple[Float[Array, "seat copy action"], tuple[Memory, ...]]:
    """Logits of all seats. `keys` [seat] and `views` have the seat axis first."""
    logits, memories = [], []
    for group, mine in zip(groups, memory, strict=True):
        seats = np.array(group.seats)
        group_views = jax.tree.map(lambda x, seats=seats: x[seats], views)
        out, new = group.act(game, keys[seats], group_views, mine)
        logits.append(out)
        memories.append(new)
    return _in_order(groups, logits), tuple(memories)


def explain_all(
    game: Game,
    groups: tuple[Group, ...],
    keys: Key[Array, " seat"],
    views: View,
    memory: tuple[Memory, ...],
) -> tuple[Float[Array, "seat copy action"], tuple[Memory, ...], tuple[Insight | None, ...]]:
    """As `decide`, and what the players of each group thought."""
    logits, memories, insights = [], [], []
    for group, mine in zip(groups, memory, strict=True):
        seats = np.array(group.seats)
        group_views = jax.tree.map(lambda x, seats=seats: x[seats], views)
        out, new, thought = group.explain(game, keys[seats], group_views, mine)
        logits.append(out)
        memories.append(new)
        insights.append(thought)
    return _in_order(groups, logits), tuple(memories), tuple(insights)


def _in_order(
    groups: tuple[Group, ...], logits: list[Float[Array, "_ copy action"]]
) -> Float[Array, "seat copy action"]:
    """What the groups gave, in the order of seats."""
    order = np.argsort(np.concatenate([group.seats for group in groups]))
    return jnp.concatenate(logits)[order]


def notice_all(
    game: Game,
    groups: tuple[Group, ...],
    views: View,
    after: State,
    over: Bool[Array, " copy"],
    memory: tuple[Memory, ...],
) -> tuple[Memory, ...]:
    """The memories of all groups after a step; `after` [copy, ...] are the states it led to."""
    if not any(group.notices for group in groups):
        return memory
    seats = jnp.arange(game.seats)
    ego = jax.vmap(jax.vmap(game.ego_state, in_axes=(0, None)), in_axes=(None, 0))(after, seats)
    memories = []
    for group, mine in zip(groups, memory, strict=True):
        if group.notices:
            index = np.array(group.seats)
            seen, led = jax.tree.map(lambda x, index=index: x[index], (views, ego))
            mine = group.notice(game, seen, led, over, mine)
        memories.append(mine)
    return tuple(memories)


def all_insights(
    game: Game, groups: tuple[Group, ...], views: View, memory: tuple[Memory, ...]
) -> tuple[Insight | None, ...]:
    """What the players of each group expect of the others; `memory` as they decided by it."""
    found = []
    for group, mine in zip(groups, memory, strict=True):
        index = np.array(group.seats)
        seen = jax.tree.map(lambda x, index=index: x[index], views)
        found.append(group.insight(game, seen, mine))
    return tuple(found)
