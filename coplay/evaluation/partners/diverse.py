"""Partners that differ: a population in which everyone does well with its own kind only.

BRDiv maximises, for two players with a common payoff, the diagonal of the matrix of returns minus
the rest. Here a company is one player of kind i among players of kind j, and its return is the mean
over all seats. In each iteration every kind plays three parts: a company of its own, alone among
another kind, and with one stranger. Who the stranger is goes round, so the cost grows with the
number of kinds and not with the number of pairs.
"""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from coplay.algorithms.ppo.learner import PPO, Net, PPOBatch, PPOState
from coplay.algorithms.ppo.player import PPOPlayer
from coplay.core.compilation import use_cache
from coplay.core.game import Game, Observation
from coplay.core.group import Group
from coplay.core.reading import read_field
from coplay.core.trajectory import Trajectory, rows_where
from coplay.evaluation.partners.behaviour import behaviour
from coplay.evaluation.partners.config import Order
from coplay.evaluation.partners.practice import BLOCK, ROLLOUT, actor_of, ppo
from coplay.matches.rollout import Table, new_table, rollout
from coplay.nn.networks import ViewShape, flatten
from coplay.rl.minibatches import by_copy
from coplay.training import checkpoints
from coplay.training.partner_packs import NETWORK, FamilyData

PARTS = 3
"""A company of its own, alone among another kind, with one stranger."""
SAVE_EVERY = 4
"""Blocks between two files by which making goes on."""


class PartNote(NamedTuple):
    """What is known of each copy beside its steps, in the place of a trajectory's memory.

    part: one-hot, which part it plays. gone: the seat has left, in an episode that goes on.
    """

    part: Float[Array, "*batch copy seat part"]
    gone: Bool[Array, "*batch copy seat"]


class CompanyPPO(PPO):
    """PPO for the return of a whole company (`as_part`). Its critic is told which part a copy
    plays; the actor is not. A seat that has left is worth nothing more by itself."""

    def new_network(
        self, shape: ViewShape, outputs: int, key: PRNGKeyArray, head_scale: float
    ) -> Net:
        extra = PARTS if outputs == 1 else 0
        return super().new_network(shape.with_more(extra), outputs, key, head_scale)

    def values(
        self, state: PPOState, trajectory: Trajectory, identity: Float[Array, "seat id"]
    ) -> tuple[Any, Any, Any, Any, Any]:
        critic = state.critic
        note: PartNote = trajectory.memory
        view = flatten(jax.tree.map(by_copy, trajectory.observation))
        every = jnp.broadcast_to(note.part[:, None], (*view.shape[:-1], PARTS))

        def value(given: tuple[Observation, Array]) -> Array:
            return critic(flatten(given[0], given[1]))[..., 0]

        steps = jnp.broadcast_to(note.part, (trajectory.over.shape[0], *note.part.shape))
        cut = jnp.any(trajectory.truncated, axis=-1)
        final = rows_where(value, cut, (trajectory.final, steps))
        told = jnp.concatenate([view, every], axis=-1)
        values = jnp.where(by_copy(trajectory.alive), critic(told)[..., 0], 0.0)
        last = jnp.where(note.gone, 0.0, value((trajectory.last, note.part)))
        return view, every, values, final, last

    def outputs(
        self, networks: tuple[Net, Net], batch: PPOBatch
    ) -> tuple[Float[Array, "*sample action"], Float[Array, "*sample 1"]]:
        actor, critic = networks
        view = batch.view.reshape(-1, batch.view.shape[-1])
        told = jnp.concatenate([view, batch.past.reshape(-1, PARTS)], axis=-1)
        return actor(view), critic(told)


class PopulationState(NamedTuple):
    """Arrays are [kind, ...]. own: games of companies of one kind. cross: games of each kind, in
    seat 0, among another."""

    learner: PPOState
    own: Table
    cross: Table


def company(game: Game, one: Any, others: Any) -> tuple[Group, ...]:
    """An actor in seat 0 among others of another kind."""
    none = jnp.zeros(0)
    return (
        Group(PPOPlayer(one, none), (0,), True),
        Group(PPOPlayer(others, none), tuple(range(1, game.seats)), True),
    )


def begin(learner: PPO, game: Game, kinds: int, copies: int, key: PRNGKeyArray) -> PopulationState:
    """Before the first iteration."""
    learn_key, own_key, cross_key = jax.random.split(key, 3)
    streams = jnp.arange(game.seats)
    state = jax.vmap(lambda key: learner.init(key, streams))(jax.random.split(learn_key, kinds))
    actors = jax.vmap(actor_of)(state)

    def table(actor: Any, key: PRNGKeyArray) -> Table:
        return new_table(game, company(game, actor, actor), key, copies)

    own, cross = (
        jax.vmap(table)(actors, jax.random.split(key, kinds)) for key in (own_key, cross_key)
    )
    return PopulationState(state, own, cross)


def iterate(
    learner: PPO,
    game: Game,
    weight: Float[Array, ""],
    total: Int[Array, ""],
    key: PRNGKeyArray,
    state: PopulationState,
    number: Int[Array, ""],
) -> tuple[PopulationState, Float[Array, " part"]]:
    """One iteration of all kinds, and the return per episode of a seat in companies of one kind and
    in mixed ones."""
    kinds = state.own.time.shape[0]
    own_key, cross_key, learn_key = jax.random.split(jax.random.fold_in(key, number), 3)
    shift = 1 + number % (kinds - 1)
    actors = jax.vmap(actor_of)(state.learner)
    strangers = jax.tree.map(lambda x: jnp.roll(x, -shift, axis=0), actors)
    streams = jnp.arange(game.seats)

    def play(one: Any, others: Any, table: Table, key: PRNGKeyArray) -> tuple[Table, Trajectory]:
        return rollout(game, company(game, one, others), table, key, ROLLOUT, streams)

    own, alike = jax.vmap(play)(actors, actors, state.own, jax.random.split(own_key, kinds))
    cross, mixed = jax.vmap(play)(
        actors, strangers, state.cross, jax.random.split(cross_key, kinds)
    )
    # What kind j played with a stranger was played as the company of kind j - shift.
    hosted = jax.tree.map(lambda x: jnp.roll(x, shift, axis=0), mixed)
    seats = jnp.arange(game.seats)
    parts = [
        as_part(alike, 0, seats >= 0, 1.0),
        as_part(mixed, 1, seats == 0, -weight / (kinds - 1)),
        as_part(hosted, 2, seats > 0, -weight / (kinds - 1)),
    ]
    joined = jax.vmap(join)(*parts)
    progress = (number / total).astype(jnp.float32)
    learned, _ = jax.vmap(learner.update, in_axes=(0, 0, 0, None))(
        jax.random.split(learn_key, kinds), state.learner, joined, progress
    )
    returns = jnp.stack([_per_episode(alike), _per_episode(mixed)])
    return PopulationState(learned, own, cross), returns


def _per_episode(trajectory: Trajectory) -> Float[Array, ""]:
    episodes = jnp.maximum(jnp.sum(trajectory.over), 1)
    return jnp.sum(trajectory.reward) / episodes / trajectory.reward.shape[-1]


def as_part(
    trajectory: Trajectory, part: int, mine: Bool[Array, " seat"], factor: Float[Array, ""] | float
) -> Trajectory:
    """What one kind learns from games in which it has some of the seats: rewards are those of the
    whole company, by a factor; the other seats are in no loss. Arrays are [kind, ...]."""
    alive = trajectory.alive
    whole = jnp.mean(trajectory.reward, axis=-1, keepdims=True)
    kinds, copies, seats = alive.shape[0], alive.shape[2], alive.shape[3]
    left = ~alive[:, -1] | trajectory.terminated[:, -1]
    note = PartNote(
        jnp.broadcast_to(jnp.eye(PARTS)[part], (kinds, copies, seats, PARTS)),
        left & ~trajectory.over[:, -1, :, None],
    )
    return trajectory._replace(
        alive=alive & mine,
        reward=jnp.broadcast_to(factor * whole, alive.shape),
        # What a seat did before it left may bring the company something later: for everyone the
        # future ends with the episode.
        terminated=trajectory.over[..., None] & ~trajectory.truncated,
        state=None,
        after=None,
        episode=None,
        past=None,
        memory=note,
        recorded=None,
        insight=None,
    )


def join(*parts: Trajectory) -> Trajectory:
    """Parts one after the other along the axis of copies."""
    late = [(one.last, one.memory) for one in parts]
    last, memory = jax.tree.map(lambda *x: jnp.concatenate(x, axis=0), *late)
    rest = [one._replace(last=None, memory=None) for one in parts]  # type: ignore[arg-type]
    steps = jax.tree.map(lambda *x: jnp.concatenate(x, axis=1), *rest)
    return steps._replace(last=last, memory=memory)


# --- the family ----------------------------------------------------------------------------------


def make_diverse(order: Order) -> FamilyData:
    """A population that is trained together, and the matrix of returns by which it differs."""
    use_cache()
    game, config = order.made, order.config
    kinds, copies = config.diverse, max(config.copies // 4, 1)
    seats = tuple(range(game.seats))
    plain = ppo(game, seats, NETWORK, PARTS * copies)
    learner = CompanyPPO(
        config=plain.config,
        shape=plain.shape,
        game_seats=plain.game_seats,
        seats=seats,
        active=seats,
    )
    blocks = -(-config.diverse_steps // (2 * copies * ROLLOUT * BLOCK))
    key = jax.random.fold_in(jax.random.key(config.seed), 3000)
    start = jax.jit(partial(begin, learner, kinds=kinds, copies=copies))
    path = order.folder / "runs" / "diverse.npz"
    state, done = _kept(path, jax.eval_shape(lambda: start(game, key=key)))
    if state is None:
        state = start(game, key=key)

    @jax.jit
    def block(
        game: Game, weight: Array, total: Array, key: PRNGKeyArray, state: Any, first: Array
    ) -> tuple[PopulationState, Float[Array, "iteration part"]]:
        step = partial(iterate, learner, game, weight, total, key)
        return jax.lax.scan(step, state, first + jnp.arange(BLOCK))

    weight, total = jnp.float32(config.diverse_weight), jnp.int32(blocks * BLOCK)
    for number in range(done, blocks):
        order.watcher.work("diverse: blocks", number, blocks)
        state, returns = block(game, weight, total, key, state, jnp.int32(number * BLOCK))
        if (number + 1) % SAVE_EVERY == 0 or number + 1 == blocks:
            checkpoints.save(path, state, {"blocks": number + 1})
            alike, mixed = np.asarray(returns).mean(0)
            order.watcher.say(
                f"diverse: {number + 1} of {blocks} blocks; return of a seat among its own kind "
                f"{alike:.2f}, in mixed company {mixed:.2f}"
            )
    actors = jax.vmap(actor_of)(state.learner)
    matrix = company_returns(game, actors, jax.random.fold_in(key, 1))
    hows = [
        {
            "kind": number,
            "steps": blocks * BLOCK * ROLLOUT * 2 * copies,
            "own": round(float(row[number]), 4),
            "matrix": [round(float(x), 4) for x in row],
        }
        for number, row in enumerate(matrix)
    ]
    return FamilyData(jax.tree.map(np.asarray, actors), hows)


def _kept(path: Path, like: PopulationState) -> tuple[PopulationState | None, int]:
    """Where making was interrupted: the state, and how many blocks are done."""
    try:
        state, note = checkpoints.load(path, like)
        return state, read_field(note, "blocks", int, str(path))
    except (FileNotFoundError, checkpoints.DamagedCheckpoint):
        return None, 0


def company_returns(game: Game, actors: Any, key: PRNGKeyArray) -> np.ndarray:
    """[one, others]: the return per episode and seat of a company of one actor among others of
    another kind."""
    kinds = jax.tree.leaves(actors)[0].shape[0]
    pairs = np.stack(np.meshgrid(np.arange(kinds), np.arange(kinds), indexing="ij"), -1)

    def one(game: Game, actors: Any, pair: Int[Array, " 2"], key: PRNGKeyArray) -> Array:
        first, second = (jax.tree.map(lambda x, at=at: x[at], actors) for at in pair)
        return jnp.mean(behaviour(game, company(game, first, second), key)[:, 0])

    @jax.jit
    def every(game: Game, actors: Any, pairs: Array, keys: Key[Array, " pair"]) -> Array:
        return jax.lax.map(lambda given: one(game, actors, *given), (pairs, keys))

    flat = jnp.asarray(pairs.reshape(-1, 2))
    found = every(game, actors, flat, jax.random.split(key, len(flat)))
    return np.asarray(found).reshape(kinds, kinds)
