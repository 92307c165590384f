"""Goals of games in which players take things off a board: which one a player takes next."""

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer

from coplay.core.game import State
from coplay.core.goals import Goals, restricted


class ThingGoals(Goals):
    """Which thing a player takes next, or none in the rest of the episode.

    Things have no identity between episodes: a habit is how many of them a player takes.
    """

    game: Any

    noun: ClassVar[str]
    """What a thing is called."""
    verb: ClassVar[str]
    """What a player does with it, as in `removes`."""

    def things(self, state: State) -> tuple[Integer[Array, " thing"], Bool[Array, " thing"]]:
        """The cells of the things, and which of them are left."""
        raise NotImplementedError

    def taken(self, state: State, following: State) -> Bool[Array, "seat thing"]:
        """Who took what in the step between two states."""
        raise NotImplementedError

    @property
    def count(self) -> int:
        """How many things there are at the start."""
        raise NotImplementedError

    @property
    def names(self) -> tuple[str, ...]:
        return (*(f"{self.noun} {index}" for index in range(self.count)), "none")

    @property
    def unrealised(self) -> int:
        return self.count

    @property
    def habit_names(self) -> tuple[str, ...]:
        return tuple(f"{self.verb} {number}" for number in range(self.count + 1))

    def features(self, state: State) -> Float[Array, "seat goal feature"]:
        """The way from the seat to the thing: up, down, left, right as four flags, rows and
        columns as shares of the board; then whether the goal is none."""
        ways = way(self.game, state.cell[:, None], self.things(state)[0][None, :])
        padded = jnp.pad(ways, ((0, 0), (0, 1), (0, 1)))
        return padded.at[:, -1, -1].set(1.0)

    def open(self, state: State) -> Bool[Array, "seat goal"]:
        """Things that are left, and always none."""
        one = jnp.append(self.things(state)[1], True)
        return jnp.broadcast_to(one, (self.game.seats, one.shape[0]))

    def realised(self, state: State, following: State) -> Int[Array, " seat"]:
        mine = self.taken(state, following)
        return jnp.where(jnp.any(mine, axis=1), jnp.argmax(mine, axis=1), -1)

    def habit(self, counts: Integer[Array, "*batch goal"]) -> Int[Array, "*batch"]:
        return jnp.sum(counts[..., :-1], axis=-1, dtype=jnp.int32)

    def prior(
        self,
        habits: Float[Array, "*batch habit"],
        counts: Integer[Array, "*batch goal"],
        open_: Bool[Array, "*batch goal"],
    ) -> Float[Array, "*batch goal"]:
        """One more is taken with the probability that the total exceeds what was taken so far,
        given that it is at least that; anything that is left may be the next."""
        number = jnp.arange(habits.shape[-1])
        so_far = self.habit(counts)[..., None]
        stops = jnp.sum(jnp.where(number == so_far, habits, 0.0), axis=-1, keepdims=True)
        more = jnp.sum(jnp.where(number > so_far, habits, 0.0), axis=-1, keepdims=True)
        left = open_[..., :-1]
        each = more / jnp.maximum(jnp.sum(left, axis=-1, keepdims=True), 1)
        weights = jnp.concatenate([jnp.broadcast_to(each, left.shape), stops], axis=-1)
        return restricted(weights, open_)


def way(
    game: Any, here: Integer[Array, "*#batch"], there: Integer[Array, "*#batch"]
) -> Float[Array, "*batch six"]:
    """The way between cells in six numbers: up, down, left, right as flags, rows and columns as
    shares of the board."""
    config = game.config
    down = there // config.width - here // config.width
    right = there % config.width - here % config.width
    parts = [down < 0, down > 0, right < 0, right > 0, down / config.height, right / config.width]
    return jnp.stack([x.astype(jnp.float32) for x in parts], axis=-1)
