"""What a game says about what a seat does not see: for players that plan where views show a part.

A player may not look at the true state. It may imagine: sample full states that agree with what its
seat saw, step them by the rules, and correct them by what it sees next. `HiddenStates` is what a
game must say for that; `coplay.models.particles` keeps a belief by it.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
from jaxtyping import Array, Integer, PRNGKeyArray

from coplay.core.game import Game, Observation, State


class Imagined(NamedTuple):
    """A full state that a seat holds possible, itself first.

    known: what the seat found out in this course of events and no longer sees; private to the game.
    """

    state: State
    known: Any


class HiddenStates(eqx.Module):
    """Full states of ONE game copy that agree with the own views of seat 0; callers `vmap`.

    Own views must tell what everybody did last. The own view that a state gives after `begin` or
    `mend` is the one that was seen, bit for bit, but for the order of `indices`.
    """

    def begin(self, key: PRNGKeyArray, seen: Observation) -> Imagined:
        """A state that an episode may begin with, sampled from those in which the own view is
        `seen`."""
        raise NotImplementedError

    def told(self, seen: Observation) -> Integer[Array, " seat"]:
        """What everybody did last, as the own view tells."""
        raise NotImplementedError

    def allow(
        self, key: PRNGKeyArray, imagined: Imagined, actions: Integer[Array, " seat"]
    ) -> Imagined:
        """The nearest state of the same own view in which everybody can do what was done; the same
        one if they can."""
        return imagined

    def mend(self, key: PRNGKeyArray, imagined: Imagined, seen: Observation) -> Imagined:
        """The nearest state that agrees with a new own view; the same one if it does."""
        raise NotImplementedError


def first_view(game: Game, state: State) -> Observation:
    """The ego view of seat 0."""
    return jax.tree.map(lambda x: x[0], game.observe(state))
