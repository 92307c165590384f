"""The player of PPO: acts by an actor network."""

import equinox as eqx
from jaxtyping import Array, Float, PRNGKeyArray

from coplay.core.game import Game
from coplay.core.player import Insight, Memory, Player, View
from coplay.nn import categorical
from coplay.nn.networks import Network, read


class PPOPlayer(Player):
    """Acts by an actor network on the observation. identity: [id] one-hot, or empty; with a
    leading [seat] axis in a group, like the actor's arrays. critic: tells the value; None: it does
    not tell."""

    actor: Network
    identity: Float[Array, "*seat id"]
    greedy: bool = eqx.field(static=True, default=False)
    critic: Network | None = None

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory]:
        logits = self.actor(read(self.actor, view.observation, self.identity))
        if self.greedy:
            logits = categorical.greedy(logits, view.observation.legal)
        return logits, memory

    def insight(self, game: Game, view: View, memory: Memory) -> Insight | None:
        """The value of the situation."""
        if self.critic is None:
            return None
        seen = read(self.critic, view.observation, self.identity)
        return Insight(value=self.critic(seen)[..., 0])
