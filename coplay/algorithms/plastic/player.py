"""The player of PLASTIC-Policy: believes in one of the partners it knows, and answers that one."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from coplay.core.game import Game, State
from coplay.core.player import Insight, Memory, Player, View
from coplay.nn import categorical
from coplay.nn.networks import Network, flatten


class PlasticMemory(NamedTuple):
    """weights: [copy, entry] the belief in each entry of the library, of sum 1."""

    weights: Float[Array, "copy entry"]


def polynomial_weights(
    weights: Float[Array, "*batch entry"], probability: Float[Array, "*batch entry"], eta: float
) -> Float[Array, "*batch entry"]:
    """Beliefs after an action to which each entry gave a probability:
    w <- w (1 - eta (1 - p)), then of sum 1.

    Bayes' rule with losses that are bounded: a single surprise cannot rule an entry out.
    """
    weights = weights * (1.0 - eta * (1.0 - probability))
    return weights / jnp.sum(weights, axis=-1, keepdims=True)


class PlasticPlayer(Player):
    """Acts by the best response to the partner it believes in most.

    actor, model: [entry, ...] best responses, and models of what partners do. A model is given the
        own ego view, and gives the logits of the actions of all others, the next seat first.
    learning: the game copies are split evenly among the entries, in order; every entry acts in its
        own, whatever it believes.
    """

    actor: Network
    model: Network
    entries: int = eqx.field(static=True)
    eta: float = eqx.field(static=True)
    greedy: bool = eqx.field(static=True, default=False)
    learning: bool = eqx.field(static=True, default=False)

    def start(self, copies: int) -> Memory:
        if self.learning:
            return ()
        return PlasticMemory(jnp.full((copies, self.entries), 1.0 / self.entries))

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory]:
        x = flatten(view.observation)
        if self.learning:
            shares = x.reshape(self.entries, -1, x.shape[-1])
            answers = jax.vmap(lambda actor, x: actor(x))(self.actor, shares)
            return answers.reshape(x.shape[0], -1), memory
        answers = jax.vmap(lambda actor: actor(x))(self.actor)
        best = jnp.argmax(memory.weights, axis=-1)
        chosen = (jnp.arange(self.entries) == best[:, None]).T[..., None]
        logits = jnp.sum(jnp.where(chosen, answers, 0.0), axis=0)
        if self.greedy:
            logits = categorical.greedy(logits, view.observation.legal)
        return logits, memory

    @property
    def notices(self) -> bool:
        return not self.learning

    def notice(
        self, game: Game, view: View, after: State, over: Bool[Array, " copy"], memory: Memory
    ) -> Memory:
        if self.learning:
            return memory
        policy = self.predict(view)
        action = jax.vmap(game.last_actions)(after)[:, 1:].astype(jnp.int32)
        there = jax.vmap(game.alive)(view.state)[:, 1:] & view.alive[:, None]
        weights = memory.weights
        for other in range(action.shape[1]):
            taken = jnp.broadcast_to(action[:, other, None], weights.shape)
            given = categorical.take(policy[:, :, other], taken)
            new = polynomial_weights(weights, given, self.eta)
            weights = jnp.where(there[:, other, None], new, weights)
        return PlasticMemory(weights)

    def predict(self, view: View) -> Float[Array, "copy entry other action"]:
        """What each entry's partner would do in all other seats."""
        x = flatten(view.observation)
        logits = jax.vmap(lambda model: model(x))(self.model)
        actions = view.observation.legal.shape[-1]
        each = jax.nn.softmax(logits.reshape(self.entries, x.shape[0], -1, actions))
        return jnp.swapaxes(each, 0, 1)

    def insight(self, game: Game, view: View, memory: Memory) -> Insight | None:
        if self.learning:
            return None
        weights: Float[Array, "copy entry"] = memory.weights
        return Insight(None, jnp.sum(self.predict(view) * weights[..., None, None], axis=1))
