"""What MAPPO and HyperMAPPO learn from and what they change: the arrays and their axes."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from coplay.algorithms.mappo.player import MAPPOMemory
from coplay.core.game import Game, Observation
from coplay.core.trajectory import Trajectory, rows_where
from coplay.nn.global_state import global_state_of_all
from coplay.rl import parameter_sets as sets
from coplay.rl import value_norm


class Parameters(NamedTuple):
    """The parts that are optimised, each by itself. hyper: () in MAPPO."""

    actor: Any
    critic: Any
    hyper: Any = ()


class MAPPOState(NamedTuple):
    """What learning changes; every array has a leading [parameter set] axis.

    optimisers: one per part. values: running statistics of the critic's targets.
    identity: [set, seat of the game, seats] the stream of each seat, one-hot; it does not change.
    team: [set, 1] a number that tells this team from others. steps: [set] gradient steps so far.
    target: a slow copy of the hypernetwork, which never acts; () without one.
    """

    parameters: Parameters
    optimisers: Parameters
    values: value_norm.ValueNorm
    identity: Float[Array, "*set seat seats"]
    team: Int[Array, "*set 1"]
    steps: Int[Array, "*set"]
    target: Any = ()


class MAPPOData(NamedTuple):
    """What is learned from.

    trajectory: of the active seats. after: [time, copy, seat, ...] what the players remembered
        after each step.
    global_state, final, last: the global state as the seats' critics are given it: before each step
        [time, copy, seat, number], after steps in which an episode was cut, and after the last step
        [copy, seat, number]; None where the own view is all there is.
    """

    trajectory: Trajectory
    after: MAPPOMemory
    global_state: Float[Array, "*set time copy seat number"] | None = None
    final: Float[Array, "*set time copy seat number"] | None = None
    last: Float[Array, "*set copy seat number"] | None = None


class MAPPOBatch(NamedTuple):
    """Samples of one parameter set, [row, time, seat of the set, ...]; a row is a game copy, or a
    chunk of one that is contiguous in time.

    view: what the actor is given. critic: what the critic is given. context: what the context
    network is given (width 0 in MAPPO). first: an episode begins. acting: alive with a choice.
    log_policy: of all actions, as it was when they were chosen. value, target: as the critic
    predicts them. memory: before the first step, with a time axis of length 1.
    """

    view: Float[Array, "row time seat inputs"]
    critic: Float[Array, "row time seat shown"]
    context: Float[Array, "row time seat known"]
    legal: Bool[Array, "row time seat action"]
    first: Bool[Array, "row time seat"]
    alive: Bool[Array, "row time seat"]
    acting: Bool[Array, "row time seat"]
    action: Int[Array, "row time seat"]
    log_policy: Float[Array, "row time seat action"]
    memory: MAPPOMemory
    value: Any = None
    advantage: Any = None
    target: Any = None


class Context(NamedTuple):
    """Contexts of all samples, and those of the steps before, [row, time, seat, latent]."""

    now: Float[Array, "row time seat latent"]
    before: Float[Array, "row time seat latent"]


def cut(batch: MAPPOBatch, after: MAPPOMemory, length: int) -> MAPPOBatch:
    """Rollouts of game copies cut into chunks of `length` steps, one after the other in time, which
    begin with the memories as they were; after: memories after each step, [copy, time, ...]."""
    copies, steps = batch.alive.shape[:2]
    rows = copies * steps // length
    memory = jax.tree.map(
        lambda first, all_: jnp.concatenate([first, all_[:, length - 1 : -1 : length]], axis=1),
        batch.memory,
        after,
    )
    rest = batch._replace(memory=())  # type: ignore[arg-type]
    rest = jax.tree.map(lambda x: x.reshape(rows, length, *x.shape[2:]), rest)
    return rest._replace(memory=jax.tree.map(lambda x: x.reshape(rows, 1, *x.shape[2:]), memory))


def team_rewarded(seen: MAPPOData) -> MAPPOData:
    """What was seen, with the mean reward of all learning seats in the place of each one's own."""
    reward = seen.trajectory.reward
    mean = jnp.broadcast_to(jnp.mean(reward, axis=-1, keepdims=True), reward.shape)
    return seen._replace(trajectory=seen.trajectory._replace(reward=mean))


def by_seat(seen: MAPPOData) -> MAPPOData:
    """What was seen by each seat alone, as [seat, time, copy, 1, ...]."""
    after, global_state, final = sets.steps_by_seat((seen.after, seen.global_state, seen.final))
    last = sets.late_by_seat(seen.last)
    return MAPPOData(sets.by_seat(seen.trajectory), after, global_state, final, last)


def remembered(trajectory: Trajectory, seats: tuple[int, ...]) -> MAPPOMemory:
    """What the players of a learner's seats remembered after each step, [time, copy, seat, ...];
    arrays of width 0 where they have no memory."""
    recorded = trajectory.recorded[seats]
    if recorded is None:
        none = jnp.zeros((*trajectory.alive.shape[:2], len(seats), 0))
        return MAPPOMemory(none, none, none, none)
    return jax.tree.map(lambda x: jnp.moveaxis(x, 1, 2), recorded)


def global_states(game: Game, trajectory: Trajectory, seats: tuple[int, ...]) -> tuple[Array, ...]:
    """The global state as the critics of some seats are given it, as in `MAPPOData`: before every
    step, after steps in which an episode was cut (0 elsewhere), and after the last step."""
    index = np.array(seats)
    global_state = global_state_of_all(game, trajectory.state, trajectory.observation, 2)[
        :, :, index
    ]

    def after(row: tuple[Any, Observation]) -> Array:
        return global_state_of_all(game, row[0], row[1], 1)[:, index]

    rows = (trajectory.after, trajectory.final)
    final = rows_where(after, jnp.any(trajectory.truncated, axis=-1), rows)
    # Where the last step ended an episode, what follows it is not asked for.
    return global_state, final, after(jax.tree.map(lambda x: x[-1], rows))
