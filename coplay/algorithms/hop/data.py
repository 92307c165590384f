"""What HOP learns from."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, Shaped

from coplay.algorithms.hop.config import HOPConfig
from coplay.core.game import Game, Observation, State
from coplay.core.goals import Goals, hindsight
from coplay.core.trajectory import Trajectory
from coplay.models.goal_simulator import belief_context
from coplay.models.personas import NO_PERSONA
from coplay.models.prototype_goals import shares_in_hindsight
from coplay.nn.config import NetworkConfig
from coplay.nn.networks import Network, SparseObservation, ViewShape, nothing_read, read
from coplay.nn.sparse_views import SparseView
from coplay.rl.advantages import gae


class ReplayRows(NamedTuple):
    """What is learned from, by rows [row] = [time * copy]; `seat` are all seats of the game, `own`
    the active ones.

    observation: [row, seat] ego views, what networks read of them (`as_read`). alive: in the game.
    action: as executed.
    goal: [row, seat, feature] of the goal the seat turned out to have; labelled: it is known.
    persona: [row, seat] of own seats (`coplay.models.personas`); `NO_PERSONA` of all others.
    context: [row, own, input] what actor and critic saw beside the view (`belief_context`).
    policy: [row, own, action] by which the seat acted. target: [row, own] discounted return.
    prototype: [row, own, other] that a co-player is taken to follow; no columns without prototypes.
    """

    observation: Observation | SparseObservation
    alive: Bool[Array, "row seat"]
    action: Integer[Array, "row seat"]
    goal: Float[Array, "row seat feature"]
    labelled: Bool[Array, "row seat"]
    persona: Integer[Array, "row seat"]
    context: Float[Array, "row own input"]
    policy: Float[Array, "row own action"]
    target: Float[Array, "row own"]
    prototype: Integer[Array, "row own other"]


OWN = ("context", "policy", "target", "prototype")
"""Fields of `ReplayRows` that only own seats have."""


class RolloutInfo(NamedTuple):
    """What an update needs beside the rows and the trajectory of the own seats.

    episode: [time, copy] number of the episode.
    persona_rewards: [time, copy, own, persona] what each step is worth with each persona, and last
        without one.
    oracle: [row, seat] probability of the most probable action of a seat, by the policy it acted
        by.
    shares: [row, own, other, prototype] probabilities of the prototypes that co-players follow; no
        columns without prototypes.
    """

    episode: Int[Array, "time copy"]
    persona_rewards: Float[Array, "time copy own persona"]
    oracle: Float[Array, "row seat"]
    shares: Float[Array, "row own other prototype"]


def prototype_shares(
    trajectory: Trajectory, active: tuple[int, ...], others: int, number: int
) -> Float[Array, "row own other prototype"]:
    """How probable each of so many prototypes is for the `others` of the active seats, by what
    these believed in the end; no columns without others."""
    rows = trajectory.over.size
    if not others:
        return jnp.zeros((rows, len(active), 0, 0))
    belief = jnp.moveaxis(trajectory.recorded[active].belief, 1, 2)  # [time, copy, own, ...]
    shares = shares_in_hindsight(belief, trajectory.over, number)
    return shares.reshape(rows, len(active), others, number)


class Pairs(NamedTuple):
    """Steps of co-players, [set, model, sample, ...]. view: as the models read it. mask: in the
    game, with a known goal."""

    view: Float[Array, "*set sample input"] | SparseView
    legal: Bool[Array, "*set sample action"]
    goal: Float[Array, "*set sample feature"]
    action: Integer[Array, "*set sample"]
    mask: Bool[Array, "*set sample"]


def rewards_by_persona(
    goals: Goals,
    personas: int,
    reward: Float[Array, "time copy own"],
    realised: Int[Array, "time copy own"],
) -> Float[Array, "time copy own persona"]:
    """What each step is worth with each of so many personas, and last without one."""
    kinds = jnp.append(jnp.arange(personas), NO_PERSONA)
    return jax.vmap(
        lambda persona: goals.persona_reward(
            jnp.broadcast_to(persona, reward.shape), reward, realised
        ),
        out_axes=-1,
    )(kinds)


def goals_in_hindsight(
    goals: Goals, trajectory: Trajectory, realised: Int[Array, "time copy seat"]
) -> tuple[Float[Array, "time copy seat feature"], Bool[Array, "time copy seat"]]:
    """The features of the goals that seats turned out to have, and whether these are known."""
    label = hindsight(realised, trajectory.over, goals.unrealised)
    features = jax.vmap(jax.vmap(goals.features))(trajectory.state)
    chosen = label[..., None] == jnp.arange(features.shape[-2])
    goal = jnp.sum(jnp.where(chosen[..., None], features, 0.0), axis=-2)
    return goal, label >= 0


def contexts_seen(
    game: Game, goals: Goals | None, trajectory: Trajectory, active: tuple[int, ...], personas: int
) -> Float[Array, "time copy own input"]:
    """What actor and critic of the active seats saw beside the view, as if without personas; their
    thoughts are `HOPRecord`s, none without goals."""
    steps, copies = trajectory.over.shape
    none = jnp.full(copies, NO_PERSONA)
    record = trajectory.recorded[active]
    belief, rates = record or (jnp.zeros((steps, len(active), copies, 0, 0)), None)

    def one(state: State, seat: Array, belief: Array, rates: Any) -> Float[Array, "copy input"]:
        ego = jax.vmap(game.ego_state, (0, None))(state, seat)
        return belief_context(game, ego, goals, belief, rates, none, personas)

    over_seats = jax.vmap(one, (None, 0, 0, 0), 1)
    over_time = jax.vmap(over_seats, (0, None, 0, 0))
    return over_time(trajectory.state, jnp.array(active), belief, rates)


def discounted_returns(
    critic: Network,
    own: Trajectory,
    reward: Float[Array, "time copy own"],
    context: Float[Array, "time copy own input"],
    config: HOPConfig,
    shared: bool,
) -> tuple[Float[Array, "time copy own"], Float[Array, "time copy own"]]:
    """Discounted returns and values, by critics [own, ...], or one that is `shared`, which see
    `context` beside the view. The horizon is an end like any other: what would come after it is
    never received."""

    def values(critic: Network, observation: Observation, context: Array) -> Array:
        return critic(read(critic, observation, context))[..., 0]

    whose = None if shared else 0
    value = jax.vmap(values, (whose, 2, 2), 2)(critic, own.observation, context)
    # Where the last episode goes on, it goes on among the same co-players.
    last = jax.vmap(values, (whose, 1, 1), 1)(critic, own.last, context[-1])
    ended = own.terminated | own.truncated
    gains = gae(
        reward,
        value,
        jnp.zeros_like(value),
        last,
        ended,
        jnp.zeros_like(ended),
        config.discount,
        config.gae_lambda,
    )
    return gains + value, value


def empty_replay(
    capacity: int,
    network: NetworkConfig,
    shape: ViewShape,
    seats: int,
    own: int,
    goal: int,
    context: int,
    labelled: int,
) -> ReplayRows:
    """A replay of zeros, in the shapes of a rollout's rows.

    network: what reads the views. seats: of the game. own: seats with parameters. goal, context:
    numbers of a goal and a context. labelled: co-players with a prototype.
    """
    size = (capacity, seats)
    return ReplayRows(
        observation=nothing_read(network, shape, size),
        alive=jnp.zeros(size, bool),
        action=jnp.zeros(size, jnp.int8),
        goal=jnp.zeros((*size, goal)),
        labelled=jnp.zeros(size, bool),
        persona=jnp.full(size, NO_PERSONA, jnp.int8),
        context=jnp.zeros((capacity, own, context)),
        policy=jnp.zeros((capacity, own, shape.actions)),
        target=jnp.zeros((capacity, own)),
        prototype=jnp.zeros((capacity, own, labelled), jnp.int8),
    )


def append(replay: ReplayRows, new: ReplayRows, columns: np.ndarray) -> ReplayRows:
    """The replay after new rows: the newest last, the oldest left out. Its own columns are all
    seats with parameters; `columns` says which of them the own columns of `new` are."""
    own = replay.policy.shape[1]

    def widened(x: Shaped[Array, "row active *rest"]) -> Shaped[Array, "row own *rest"]:
        wide = (x.shape[0], own, *x.shape[2:])
        return jnp.zeros(wide, x.dtype).at[:, columns].set(x)

    wide: dict[str, Any] = {name: widened(getattr(new, name)) for name in OWN}
    new = new._replace(**wide)
    return jax.tree.map(
        lambda old, x: jnp.concatenate([old, x.astype(old.dtype)])[-old.shape[0] :], replay, new
    )


def equal_shares(
    replay: ReplayRows, filled: Int[Array, ""], personas: int
) -> Float[Array, "row seat"]:
    """The cdf over the rows by which to sample them for each seat: only steps in which it was in
    the game and not the random persona, and as many of each persona. A persona that goes straight
    for its goal leaves the game soon and has few steps to learn from."""
    rows = replay.alive.shape[0]
    there = replay.alive & (jnp.arange(rows) >= rows - filled)[:, None]
    kinds = jnp.arange(-1, personas)
    of_kind = there[..., None] & (replay.persona[..., None] == kinds)  # [row, seat, kind]
    number = jnp.sum(of_kind, axis=0, dtype=jnp.float32)
    share = jnp.sum(of_kind / jnp.maximum(number, 1.0), axis=-1)
    share = share / jnp.maximum(jnp.sum(number > 0, axis=-1), 1)
    return jnp.cumsum(share, axis=0)


def draw_rows(
    shares: Float[Array, "row seat"], uniform: Float[Array, "*batch"]
) -> Int[Array, "seat *batch"]:
    """Rows sampled by `equal_shares`, with the same `uniform` in [0, 1) for every seat."""
    last = shares.shape[0] - 1
    found = jax.vmap(lambda share: jnp.searchsorted(share, uniform * share[-1], side="right"))
    return jnp.minimum(found(shares.T), last)


def picked(replay: ReplayRows, index: Int[Array, "seat sample"], own: np.ndarray) -> ReplayRows:
    """The rows `index` of each seat: fields are [seat, sample, ...] and [own, sample, ...]; `own`:
    the seats of the own columns."""

    def rows(x: Any, index: Array) -> Any:
        return jax.tree.map(lambda x: jax.vmap(lambda x, i: x[i], (1, 0))(x, index), x)

    return ReplayRows(
        **{
            name: rows(value, index[own] if name in OWN else index)
            for name, value in replay._asdict().items()
        }
    )


def by_model(
    x: Shaped[Array, "own other row *rest"], separate: bool, one: bool
) -> Shaped[Array, "set model sample *rest"]:
    """Steps of the co-players of own seats, as opponent models learn from them. separate: each own
    seat has a set of models; else all share one. one: a set is one model of all co-players."""
    own, other, row, *rest = x.shape
    if not separate:
        x = jnp.swapaxes(x, 0, 1).reshape(1, other, own * row, *rest)
    return x.reshape(len(x), 1, x.shape[1] * x.shape[2], *rest) if one else x
