"""Players that share out the game copies."""

import jax
import jax.numpy as jnp
import numpy as np

from coplay.core.game import Game
from coplay.core.player import Memory, Player, View
from coplay.games.diagnostic import Identity, IdentityConfig
from coplay.matches.partitioned_player import PartitionedPlayer, partitioned


class Counting(Player):
    """Gives its number as every logit and remembers how often it acted."""

    number: jax.Array

    def start(self, copies: int) -> Memory:
        return jnp.zeros(copies, jnp.int32)

    def act(self, game: Game, key: jax.Array, view: View, memory: Memory) -> tuple:
        return jnp.full((view.alive.shape[0], 2), self.number), memory + 1


def act(player: Player, copies: int) -> tuple[np.ndarray, np.ndarray]:
    view = View(None, jnp.ones(copies, bool), *[jnp.zeros(copies)] * 5)
    logits, memory = player.act(
        Identity(IdentityConfig()), jax.random.key(0), view, player.start(copies)
    )
    return np.asarray(logits), np.asarray(memory)


def test_each_player_has_its_share_of_the_copies_in_order() -> None:
    player = partitioned([Counting(jnp.float32(1.0)), Counting(jnp.float32(2.0))])
    assert isinstance(player, PartitionedPlayer)
    logits, memory = act(player, 6)
    np.testing.assert_array_equal(logits[:, 0], [1, 1, 1, 2, 2, 2])
    np.testing.assert_array_equal(memory, 1)


def test_equal_players_stay_one() -> None:
    assert isinstance(partitioned([Counting(jnp.float32(1.0))] * 3), Counting)
