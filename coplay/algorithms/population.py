"""A population of players that are alike but for their numbers: one compiled program serves all."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.core.game import Game, State
from coplay.core.player import Memory, Player, View


class PopulationMemory(NamedTuple):
    """drawn: [copy] who plays in this episode. player: [copy, ...] that player's memory."""

    drawn: Int[Array, " copy"]
    player: Memory


class Population(Player):
    """In every episode one of many players, drawn uniformly for each game copy.

    players: one player whose arrays have a leading [player] axis. A player begins every episode
    with an empty memory.
    """

    players: Player
    size: int = eqx.field(static=True)

    def start(self, copies: int) -> Memory:
        return PopulationMemory(jnp.zeros(copies, jnp.int32), self._one(0).start(copies))

    def _one(self, index: int | Int[Array, ""]) -> Player:
        return jax.tree.map(lambda x: x[index], self.players)

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: PopulationMemory
    ) -> tuple[Float[Array, "copy action"], Memory]:
        draw_key, act_key = jax.random.split(key)
        copies = memory.drawn.shape[0]
        first = view.time == 0
        anew = jax.random.randint(draw_key, (copies,), 0, self.size)
        drawn = jnp.where(first, anew, memory.drawn)
        fresh = self._one(0).start(copies)
        mine = jax.tree.map(
            lambda x, y: jnp.where(first.reshape(-1, *(1,) * (x.ndim - 1)), x, y),
            fresh,
            memory.player,
        )

        def one(
            index: Int[Array, ""], key: PRNGKeyArray, view: View, mine: Memory
        ) -> tuple[Float[Array, " action"], Memory]:
            alone = jax.tree.map(lambda x: x[None], (view, mine))
            found = self._one(index).act(game, key, *alone)
            return jax.tree.map(lambda x: x[0], found)

        logits, new = jax.vmap(one)(drawn, jax.random.split(act_key, copies), view, mine)
        return logits, PopulationMemory(drawn, new)

    @property
    def notices(self) -> bool:
        return self.players.notices

    def notice(
        self,
        game: Game,
        view: View,
        after: State,
        over: Bool[Array, " copy"],
        memory: PopulationMemory,
    ) -> Memory:
        def one(
            index: Int[Array, ""], view: View, after: State, over: Bool[Array, ""], mine: Memory
        ) -> Memory:
            alone = jax.tree.map(lambda x: x[None], (view, after, over, mine))
            return jax.tree.map(lambda x: x[0], self._one(index).notice(game, *alone))

        new = jax.vmap(one)(memory.drawn, view, after, over, memory.player)
        return memory._replace(player=new)
