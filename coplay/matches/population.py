"""A population of partners as one player: in every meeting one of them, drawn for each game copy.

What the partners are stands in arrays, so one compiled program serves all of them. The cost of a
decision grows with the number of kinds of players (their structures), not with that of partners.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.core.game import Game, State
from coplay.core.player import SEATS, Memory, Player, View
from coplay.matches.partitioned_player import PartitionedPlayer


class PopulationMemory(NamedTuple):
    """drawn: [copy] the number of the partner that acts in this meeting. kinds: the memory of each
    kind, of which only the one of the partner that acts has a meaning."""

    drawn: Int[Array, " copy"]
    kinds: tuple[Memory, ...]


class Population(Player):
    """One of its partners in every meeting, drawn uniformly for each game copy.

    kinds: partners of the same structure as one player, whose arrays have a leading [partner of the
        kind] axis. place: [partner, 2] the kind of a partner and its row in there.
    meeting: episodes after which partners are drawn anew; 0: never.
    alike: all seats of a group have the same partner; else every seat has its own.
    fixed: nothing is drawn: the copies are split evenly among the partners, in order.
    """

    kinds: tuple[Player, ...]
    place: Int[Array, "*seat partner 2"]
    meeting: int = eqx.field(static=True, default=0)
    alike: bool = eqx.field(static=True, default=True)
    fixed: bool = eqx.field(static=True, default=False)

    @property
    def size(self) -> int:
        """How many partners there are."""
        return self.place.shape[-2]

    def start(self, copies: int) -> Memory:
        drawn = jnp.arange(copies) * self.size // copies if self.fixed else jnp.zeros(copies, int)
        kinds = tuple(self._start(kind, copies) for kind in range(len(self.kinds)))
        return PopulationMemory(drawn.astype(jnp.int32), kinds)

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: PopulationMemory
    ) -> tuple[Float[Array, "copy action"], PopulationMemory]:
        draw_key, *keys = jax.random.split(key, 1 + len(self.kinds))
        drawn = self._common(jnp.where(self._meets(view), self._draw(draw_key, view), memory.drawn))
        logits: Any = 0.0
        memories = []
        for kind, (own_key, mine) in enumerate(zip(keys, memory.kinds, strict=True)):
            own, new = self._partners(kind, drawn).act(game, own_key, view, mine)
            acts = self.place[drawn, 0] == kind
            logits = jnp.where(acts[:, None], own, logits)
            memories.append(new)
        return logits, PopulationMemory(drawn, tuple(memories))

    @property
    def notices(self) -> bool:
        return any(kind.notices for kind in self.kinds)

    def notice(
        self,
        game: Game,
        view: View,
        after: State,
        over: Bool[Array, " copy"],
        memory: PopulationMemory,
    ) -> PopulationMemory:
        drawn = self._common(memory.drawn)
        memories = tuple(
            self._partners(kind, drawn).notice(game, view, after, over, mine)
            if player.notices
            else mine
            for kind, (player, mine) in enumerate(zip(self.kinds, memory.kinds, strict=True))
        )
        return memory._replace(kinds=memories)

    def _meets(self, view: View) -> Bool[Array, " copy"]:
        """Where a meeting begins."""
        first = view.episode % self.meeting == 0 if self.meeting else view.episode == 0
        return (view.time == 0) & first & (not self.fixed)

    def _draw(self, key: PRNGKeyArray, view: View) -> Int[Array, " copy"]:
        return jax.random.randint(key, view.time.shape, 0, self.size, jnp.int32)

    def _common(self, drawn: Int[Array, " copy"]) -> Int[Array, " copy"]:
        """The partners by their numbers. Where all seats have the same, it is that of the first
        seat, so that the partner's arrays are looked up once for all of them."""
        return jax.lax.all_gather(drawn, SEATS)[0] if self.alike else drawn

    def _partners(self, kind: int, drawn: Int[Array, " copy"]) -> Player:
        """A player of one kind: in each copy the partner that is drawn, if it is of this kind."""
        player = self.kinds[kind]
        if not jax.tree.leaves(player):
            return player
        row = self.place[drawn, 1]
        return PartitionedPlayer(jax.tree.map(lambda x: x[row], player))

    def _start(self, kind: int, copies: int) -> Memory:
        player = self.kinds[kind]
        return jax.tree.map(lambda x: x[0], player).start(copies)


def population(players: Sequence[Player], alike: bool = True) -> Population:
    """Partners as one player that draws among them; see `Population`."""
    members: dict[Any, list[int]] = {}
    for number, player in enumerate(players):
        arrays, structure = jax.tree.flatten(player)
        kind = (structure, tuple((jnp.shape(x), str(jnp.asarray(x).dtype)) for x in arrays))
        members.setdefault(kind, []).append(number)
    place = [(0, 0)] * len(players)
    kinds: list[Player] = []
    for numbers in members.values():
        for row, number in enumerate(numbers):
            place[number] = (len(kinds), row)
        kinds.append(jax.tree.map(lambda *x: jnp.stack(x), *(players[n] for n in numbers)))
    return Population(tuple(kinds), jnp.array(place, jnp.int32), alike=alike)
