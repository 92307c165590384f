"""What HOP learns from."""

from typing import NamedTuple

from jaxtyping import Array, Bool, Float, Int, Integer

from coplay.games.game import Observation


class Watched(NamedTuple):
    """What is learned from, by rows [row] = [time * copy]; `seat` are all seats of the game, `own`
    the active ones.

    observation: [row, seat] ego views. alive: in the game. action: as executed.
    goal: [row, seat, feature] of the goal the seat turned out to have; labelled: it is known.
    character: [row, seat] who the seat was (`coplay.minds.characters`), as far as it is an own one.
    told: [row, own, input] what actor and critic were told (`circumstances`), but for the drive.
    policy: [row, own, action] what the search chose from. target: [row, own] discounted return.
    """

    observation: Observation
    alive: Bool[Array, "row seat"]
    action: Integer[Array, "row seat"]
    goal: Float[Array, "row seat feature"]
    labelled: Bool[Array, "row seat"]
    character: Integer[Array, "row seat"]
    told: Float[Array, "row own input"]
    policy: Float[Array, "row own action"]
    target: Float[Array, "row own"]


class Heard(NamedTuple):
    """Of the own seats, beside their trajectory.

    episode: [time + 1, copy] number of the episode, also after the last step.
    worth: [time, copy, own, drive] of each step to players with each drive, and at last without.
    """

    episode: Int[Array, "time copy"]
    worth: Float[Array, "time copy own drive"]


class Pairs(NamedTuple):
    """Steps of co-players, [set, model, sample, ...]. mask: in the game, with a known goal."""

    observation: Observation
    goal: Float[Array, "*set sample feature"]
    action: Integer[Array, "*set sample"]
    mask: Bool[Array, "*set sample"]
