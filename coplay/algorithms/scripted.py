"""Players made of rules: `random` for every game, a game's own scripted ones, and players that act
as one of several others: the switcher and the mix."""

from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.core.game import Game, ScriptedPolicy, State
from coplay.core.numerics import where_rows
from coplay.core.player import Memory, Player, View
from coplay.nn.categorical import NEVER

FAVOURED, AVOIDED = (1.0, 6.0), 4.0
"""What is added to the logit of a habitual player's favourite action, at least and at most, and
what is taken off those that it avoids."""


class Random(Player):
    """Uniform over the legal actions."""

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory]:
        return jnp.zeros(view.observation.legal.shape), memory


class Habitual(Player):
    """Takes each action as often in every step, as far as it is legal, whatever it sees: it has
    habits and no goal. logits: [action] of what it does."""

    logits: Float[Array, "*partner action"]

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory]:
        return jnp.broadcast_to(self.logits, view.observation.legal.shape), memory


def draw_habits(actions: int, count: int, seed: int) -> Float[np.ndarray, "partner action"]:
    """Logits of so many habitual players. Each has a favourite, which it takes more or less often,
    and hardly ever takes a quarter of the others."""
    rng = np.random.default_rng([seed, 1])
    # The favourite goes round, so that every action has its players.
    favourite = np.eye(actions)[np.arange(count) % actions]
    avoided = rng.random((count, actions)) < 0.25
    return rng.uniform(*FAVOURED, (count, 1)) * favourite - AVOIDED * avoided * (1 - favourite)


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

    @property
    def notices(self) -> bool:
        return self.first.notices or self.second.notices

    def notice(
        self, game: Game, view: View, after: State, over: Bool[Array, " copy"], memory: Memory
    ) -> Memory:
        first, second = memory
        return (
            self.first.notice(game, view, after, over, first),
            self.second.notice(game, view, after, over, second),
        )


class MixMemory(NamedTuple):
    """drawn: [copy] which of the players acts in this episode. players: the memory of each."""

    drawn: Int[Array, " copy"]
    players: tuple[Memory, ...]


class Mix(Player):
    """In every episode one of its players, drawn for each game copy.

    Only the drawn player acts and remembers; the others know nothing of the episode.
    weights: how often each is drawn, relative to the others; empty: all alike.
    """

    players: tuple[Player, ...]
    weights: tuple[float, ...] = eqx.field(static=True, default=())

    def start(self, copies: int) -> Memory:
        return MixMemory(
            jnp.zeros(copies, jnp.int32), tuple(player.start(copies) for player in self.players)
        )

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory]:
        draw_key, *keys = jax.random.split(key, 1 + len(self.players))
        if self.weights:
            logits = jnp.log(jnp.array(self.weights))
            anew = jax.random.categorical(draw_key, logits, shape=memory.drawn.shape)
        else:
            anew = jax.random.randint(draw_key, memory.drawn.shape, 0, len(self.players))
        drawn = jnp.where(view.time == 0, anew, memory.drawn)
        logits = jnp.zeros(view.observation.legal.shape)
        memories = []
        for index, (player, key, mine) in enumerate(
            zip(self.players, keys, memory.players, strict=True)
        ):
            own, new = player.act(game, key, view, mine)
            logits = jnp.where((drawn == index)[:, None], own, logits)
            memories.append(where_rows(drawn == index, new, mine))
        return logits, MixMemory(drawn, tuple(memories))

    @property
    def notices(self) -> bool:
        return any(player.notices for player in self.players)

    def notice(
        self, game: Game, view: View, after: State, over: Bool[Array, " copy"], memory: Memory
    ) -> Memory:
        memories = (
            where_rows(memory.drawn == index, player.notice(game, view, after, over, mine), mine)
            for index, (player, mine) in enumerate(zip(self.players, memory.players, strict=True))
        )
        return MixMemory(memory.drawn, tuple(memories))
