"""The player of PPO: acts by an actor network."""

import equinox as eqx
from jaxtyping import Array, Float, PRNGKeyArray

from coplay.core.game import Game
from coplay.core.player import Memory, Player, View
from coplay.nn import categorical
from coplay.nn.networks import Network, read


class PPOPlayer(Player):
    """Acts by an actor network on the observation. identity: [id] one-hot, or empty; with a
    leading [seat] axis in a group, like the actor's arrays."""

    actor: Network
    identity: Float[Array, "*seat id"]
    greedy: bool = eqx.field(static=True, default=False)

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory]:
        logits = self.actor(read(self.actor, view.observation, self.identity))
        if self.greedy:
            logits = categorical.greedy(logits, view.observation.legal)
        return logits, memory
