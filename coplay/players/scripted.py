"""Scripted players: `random` for every game, a game's own ones, and the switcher between two."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from coplay.games.game import Game, ScriptedPolicy, State
from coplay.minds.categorical import NEVER
from coplay.players.player import Memory, Player, View


class Random(Player):
    """Uniform over the legal actions."""

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory]:
        return jnp.zeros(view.observation.legal.shape), memory


class Scripted(Player):
    """Acts by a policy of the game, whose probabilities it takes as they are."""

    policy: ScriptedPolicy = eqx.field(static=True)

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory]:
        probs = jax.vmap(self.policy, in_axes=(None, 0))(game, view.state)
        return jnp.where(probs > 0, jnp.log(jnp.where(probs > 0, probs, 1.0)), NEVER), memory


class Switcher(Player):
    """Plays `first`, then `second`: from a step of every episode on, or in turn every so many
    episodes."""

    first: Player
    second: Player
    unit: Literal["step", "episode"] = eqx.field(static=True)
    every: int = eqx.field(static=True)

    def start(self, copies: int) -> Memory:
        return self.first.start(copies), self.second.start(copies)

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory]:
        before, first = self.first.act(game, key, view, memory[0])
        after, second = self.second.act(game, key, view, memory[1])
        if self.unit == "step":
            switched = view.time >= self.every
        else:
            switched = (view.episode // self.every) % 2 == 1
        return jnp.where(switched[:, None], after, before), (first, second)

    def notice(
        self, game: Game, view: View, after: State, over: Bool[Array, " copy"], memory: Memory
    ) -> Memory:
        first, second = memory
        return (
            self.first.notice(game, view, after, over, first),
            self.second.notice(game, view, after, over, second),
        )
