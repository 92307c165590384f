"""Trajectories: what was played, with the axes [time, copy, seat]; randomness by seat."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from coplay.core.game import Observation, State

Played = TypeVar("Played")
COPY = "copy"
"""The axis of devices that share the game copies of a run."""


class Past(NamedTuple):
    """What seats know of the step before, [time, copy, seat]; see `View`.

    first: the step is the first of an episode. action, reward: `last_action`, `last_reward`.
    """

    first: Bool[Array, "time copy seat"]
    action: Int[Array, "time copy seat"]
    reward: Float[Array, "time copy seat"]


class Trajectory(NamedTuple):
    """What was played, [time, copy, seat, ...].

    observation: ego views before acting.
    alive: in the game before acting; what is not alive is in no loss and no metric.
    action: as chosen. log_policy: log-probabilities of all actions when it was chosen.
    reward: of this step.
    terminated: the seat left in this step. truncated: the episode was cut and the seat was alive.
    over: [time, copy] the episode ended in this step.
    final: ego views after the step, before any reset: what a truncated seat saw last.
    last: ego views after the last step and its reset, [copy, seat, ...].
    meeting_over: the meeting ended in this step: partners change and everybody forgets all; None:
        there are no meetings.
    episode_reward, episode_steps: totals of the episode so far; final where `over`.
    state, after: [time, copy, ...] game states before the step, and after it before any reset: for
        learners that are given the game. episode: [time, copy] episodes that the copy had finished
        before. All three None in the part of some seats.
    past, memory: for learners that remember; may be left out where there are none. memory: what was
        remembered before the first step, by the seats of each group [seat of the group, copy, ...];
        in the part of some seats, theirs [copy, seat, ...].
    recorded: by the seats of each group, [time, seat of the group, copy, ...] what its players
        recorded when they decided (`Player.record`). None in the part of some seats.
    insight: per group of players, [time, seat of the group, copy, ...] what they expected of others
        when they decided (`Player.insight`). None where it was not asked for.
    stream: the streams of the seats, the same at every step: learners whose updates draw something
        for every seat draw it by these (`seat_keys`), and not by the order of seats.

        def update(self, key, state, trajectory, progress):  # of a `Learner`
            counted = jnp.where(trajectory.alive, trajectory.reward, 0.0)
    """

    observation: Observation
    alive: Bool[Array, "time copy seat"]
    action: Int[Array, "time copy seat"]
    log_policy: Float[Array, "time copy seat action"]
    reward: Float[Array, "time copy seat"]
    terminated: Bool[Array, "time copy seat"]
    truncated: Bool[Array, "time copy seat"]
    over: Bool[Array, "time copy"]
    final: Observation
    last: Observation
    episode_reward: Float[Array, "time copy seat"]
    episode_steps: Int[Array, "time copy seat"]
    state: State = None
    after: State = None
    episode: Int[Array, "time copy"] | None = None
    past: Past | None = None
    memory: Any = None
    recorded: Any = None
    insight: Any = None
    meeting_over: Bool[Array, "time copy seat"] | None = None
    stream: Int[Array, "time copy seat"] | None = None


def seat_keys(key: PRNGKeyArray, streams: Int[Array, " seat"]) -> Key[Array, " seat"]:
    """[seat] keys. A seat's randomness hangs on its stream, not on its position: `streams` is a
    permutation of the seats, and an audit can move the randomness along with the players.

        keys = coplay.seat_keys(key, streams)[np.array(self.seats)]  # in `Learner.init`
    """
    return jax.random.split(key, streams.shape[0])[streams]


def seat_uniforms(
    key: PRNGKeyArray, streams: Int[Array, " seat"], count: int
) -> Float[Array, "seat count"]:
    """Uniform numbers in [0, 1) for every seat, by its stream.

    Drawn flat: random numbers drawn in a shape of several axes take XLA far longer to compile.
    """
    seats = streams.shape[0]
    return jax.random.uniform(key, (seats * count,)).reshape(seats, count)[streams]


def streams_of(trajectory: Trajectory) -> Int[Array, " seat"]:
    """The streams of a trajectory's seats; in the order of the seats where it does not say them."""
    if trajectory.stream is None:
        return jnp.arange(trajectory.alive.shape[2])
    return trajectory.stream[0, 0]


def rows_where(
    function: Callable[[Any], Float[Array, "copy *rest"]],
    mask: Bool[Array, "time copy"],
    inputs: Any,
) -> Float[Array, "time copy *rest"]:
    """`function` of the rows in the mask, 0 elsewhere; `inputs` are arrays [time, copy, ...].

    Rows are gathered as many at a time as there are copies, until none is left: the cost follows
    the number of rows in the mask. Ends of episodes are rare among all steps.
    """
    steps, copies = mask.shape
    rows = mask.reshape(-1)
    order = jnp.cumsum(rows) - 1  # the rank of each row among those in the mask
    count = order[-1] + 1
    flat = jax.tree.map(lambda x: x.reshape(steps * copies, *x.shape[2:]), inputs)
    some = jax.eval_shape(function, jax.tree.map(lambda x: x[:copies], flat))

    def more(carry: tuple) -> Bool[Array, ""]:
        return carry[0] < count

    def next_rows(carry: tuple) -> tuple:
        done, results = carry
        index = jnp.searchsorted(order, done + jnp.arange(copies))
        index = jnp.minimum(index, steps * copies - 1)
        values = function(jax.tree.map(lambda x: x[index], flat))
        rank = jnp.clip(order - done, 0, copies - 1)
        here = rows & (order >= done) & (order < done + copies)
        here = here.reshape(-1, *(1,) * (values.ndim - 1))
        return done + copies, jnp.where(here, values[rank], results)

    start = (0, jnp.zeros((steps * copies, *some.shape[1:]), some.dtype))
    _, results = jax.lax.while_loop(more, next_rows, start)
    return results.reshape(steps, copies, *some.shape[1:])


def in_full(played: Played) -> Played:
    """A trajectory, or what has its views, without indices: for learners that add to views."""
    views = {name: getattr(played, name) for name in ("observation", "final", "last")}
    bare = {name: view._replace(indices=None) for name, view in views.items()}
    return played._replace(**bare)  # type: ignore[attr-defined]


def of_seats(trajectory: Trajectory, seats: tuple[int, ...]) -> Trajectory:
    """The part of a trajectory that concerns some seats, in their order."""
    memory = trajectory.memory
    if memory is not None:
        memory = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), memory.get(seats, ()))
    trajectory = trajectory._replace(
        state=None, after=None, episode=None, memory=memory, recorded=None, insight=None
    )
    if seats == tuple(range(trajectory.alive.shape[2])):
        return trajectory
    return picked_seats(trajectory._replace(memory=None), np.array(seats))._replace(memory=memory)


def picked_seats(trajectory: Trajectory, index: Int[Array | np.ndarray, " seat"]) -> Trajectory:
    """The part of a trajectory, as `of_seats` gives it, that concerns the seats `index`, in this
    order; its memory is [copy, seat, ...]."""
    everyone = trajectory._replace(over=None, last=None, memory=None)  # type: ignore[arg-type]
    part = jax.tree.map(lambda x: x[:, :, index], everyone)
    last, memory = jax.tree.map(lambda x: x[:, index], (trajectory.last, trajectory.memory))
    return part._replace(over=trajectory.over, last=last, memory=memory)
