"""One player per part of the game copies, for programs in which copies differ in their players."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from coplay.core.game import Game, State
from coplay.core.player import Insight, Memory, Player, View


class PartitionedPlayer(Player):
    """Players that are alike but for their numbers, each for its share of the game copies.

    player: one player whose arrays have a leading [part] axis. The copies are split into equal
    parts, in order: with p parts, the first copies / p of them belong to the first player.
    """

    player: Player

    @property
    def _parts(self) -> int:
        return jax.tree.leaves(self.player)[0].shape[0]

    def _split(self, tree: Any) -> Any:
        """[copy, ...] as [part, copy of the part, ...]."""
        parts = self._parts
        return jax.tree.map(lambda x: x.reshape(parts, x.shape[0] // parts, *x.shape[1:]), tree)

    def start(self, copies: int) -> Memory:
        each = copies // self._parts
        return _joined(jax.vmap(lambda player: player.start(each))(self.player))

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory]:
        keys = jax.random.split(key, self._parts)
        return _joined(
            jax.vmap(lambda player, key, view, mine: player.act(game, key, view, mine))(
                self.player, keys, self._split(view), self._split(memory)
            )
        )

    def notice(
        self, game: Game, view: View, after: State, over: Bool[Array, " copy"], memory: Memory
    ) -> Memory:
        if type(self.player).notice is Player.notice:
            return memory
        return _joined(
            jax.vmap(
                lambda player, view, after, over, mine: player.notice(game, view, after, over, mine)
            )(self.player, *self._split((view, after, over, memory)))
        )

    def record(self, memory: Memory) -> Any:
        own = type(self.player).record
        return (
            None
            if own is Player.record
            else _joined(jax.vmap(own)(self.player, self._split(memory)))
        )

    def insight(self, game: Game, view: View, memory: Memory) -> Insight | None:
        return _joined(
            jax.vmap(lambda player, view, mine: player.insight(game, view, mine))(
                self.player, self._split(view), self._split(memory)
            )
        )


def partitioned(players: list[Player]) -> Player:
    """The players of the parts as one; a single one if they do not differ."""
    first = jax.tree.leaves(players[0])
    if all(
        jnp.array_equal(mine, theirs)
        for player in players[1:]
        for mine, theirs in zip(first, jax.tree.leaves(player), strict=True)
    ):
        return players[0]
    return PartitionedPlayer(jax.tree.map(lambda *x: jnp.stack(x), *players))


def _joined(tree: Any) -> Any:
    """[part, copy of the part, ...] as [copy, ...]."""
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), tree)
