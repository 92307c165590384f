"""What a game says about the goals of its players: for players that think about others.

A game lists *candidates*: the goals a seat may have, in a fixed order. Which of them are open, and
how each looks to the seat, depends on the state. A goal becomes known in hindsight: some step
*realises* it, and it was the goal of all steps since the one realised before (`hindsight`).

Candidates may mean something else in the next episode (this drift, that drift). What is carried
from episode to episode is a player's *habit*: a class of what it realised in an episode. Beliefs
over habits turn into a prior over candidates at every moment of an episode (`Goals.prior`).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer

from coplay.core.numerics import sum_in_order


class Goals(eqx.Module):
    """The goals of a game's players; states are single states of that game."""

    @property
    def names(self) -> tuple[str, ...]:
        """The candidates, in order."""
        raise NotImplementedError

    @property
    def unrealised(self) -> int:
        """The candidate that steps belong to if no goal is realised before the episode's end; -1:
        such steps show no goal."""
        raise NotImplementedError

    @property
    def habit_names(self) -> tuple[str, ...]:
        """The classes of what a player realised in an episode."""
        raise NotImplementedError

    @property
    def personas(self) -> tuple[str, ...]:
        """Personas: players that value only a part of what the game rewards."""
        return ()

    def persona_reward(
        self,
        persona: Int[Array, "*batch"],
        reward: Float[Array, "*batch"],
        realised: Int[Array, "*batch"],
    ) -> Float[Array, "*batch"]:
        """What a step was worth to players with these drives (-1: none), who got `reward` and
        realised these candidates in it.

        In a whole episode no drive may count for more than the reward: searches take the value of a
        position by a drive as a bound from below (`personas.guide_search`)."""
        return reward

    def features(self, state: Any) -> Float[Array, "seat goal feature"]:
        """Each candidate as numbers, as the seat that may have the goal sees it."""
        raise NotImplementedError

    def open(self, state: Any) -> Bool[Array, "seat goal"]:
        """Which candidates a seat can have in this state; always at least one."""
        raise NotImplementedError

    def realised(self, state: Any, following: Any) -> Int[Array, " seat"]:
        """The candidate that each seat realised in the step between two states; -1: none."""
        raise NotImplementedError

    def habit(self, counts: Integer[Array, "*batch goal"]) -> Int[Array, "*batch"]:
        """The habit shown in a whole episode in which each candidate was realised so many times;
        -1: the episode shows none."""
        raise NotImplementedError

    def prior(
        self,
        habits: Float[Array, "*batch habit"],
        counts: Integer[Array, "*batch goal"],
        open_: Bool[Array, "*batch goal"],
    ) -> Float[Array, "*batch goal"]:
        """Probabilities of the candidates, before any action towards the next goal was seen.

        habits: probabilities of the habits. counts: what was realised so far in the episode.
        open_: the candidates that are open now.
        """
        raise NotImplementedError


def restricted(
    weights: Float[Array, "*batch goal"], open_: Bool[Array, "*batch goal"]
) -> Float[Array, "*batch goal"]:
    """Weights as probabilities of the open candidates; even ones if all their weight is gone."""
    kept = jnp.where(open_, weights, 0.0)
    total = sum_in_order(kept, keepdims=True)
    even = open_ / jnp.maximum(sum_in_order(open_.astype(jnp.int32), keepdims=True), 1)
    # Below this a quotient of float32 numbers is no longer meaningful.
    return jnp.where(total > 1e-30, kept / jnp.where(total > 1e-30, total, 1.0), even)


def hindsight(
    realised: Int[Array, "time *batch seat"], over: Bool[Array, "time *batch"], unrealised: int
) -> Int[Array, "time *batch seat"]:
    """The goal of every step, known afterwards: what is realised next in its episode.

    realised: what each step realised; -1: nothing. over: the episode ended in this step.
    unrealised: the goal of steps that are followed by no realisation until the episode's end.
    Steps whose episode goes on beyond the last row without a realisation get -1: not known yet.
    """

    def backward(
        later: Int[Array, "*batch seat"], row: tuple[Array, Array]
    ) -> tuple[Int[Array, "*batch seat"], Int[Array, "*batch seat"]]:
        now, ended = row
        following = jnp.where(ended[..., None], unrealised, later)
        goal = jnp.where(now >= 0, now, following)
        return goal, goal

    start = jnp.full_like(realised[0], -1)
    return jax.lax.scan(backward, start, (realised, over), reverse=True)[1]
