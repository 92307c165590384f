"""Imagined games among strangers where views do not show everything.

A stranger acts by the opponent model, with one of the prototypes and by its own view. The player
that imagines sees its own view alone and is not told whom it meets.
"""

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from coplay.algorithms.hop_plus.config import HopPlusConfig
from coplay.algorithms.hop_plus.imagination import one_of
from coplay.algorithms.ppo.learner import PPOState
from coplay.algorithms.ppo.recurrent import inputs
from coplay.core.game import Game, Observation, State
from coplay.core.numerics import where_rows
from coplay.core.trajectory import Past, Trajectory, seat_keys
from coplay.models.goal_codes import GoalModel
from coplay.nn import categorical
from coplay.nn.networks import Network, flatten
from coplay.nn.recurrent import GRUNetwork

T = TypeVar("T")


class SeenOthers(NamedTuple):
    """What the others did, the next seat first; `seat` are the learner's. As `Others` of
    `coplay.algorithms.ppo.embedded`, with legal actions, and the codes that the goal model infers
    from what they themselves saw."""

    view: Float[Array, "*batch seat other inputs"]
    action: Int[Array, "*batch seat other"]
    alive: Bool[Array, "*batch seat other"]
    legal: Bool[Array, "*batch seat other action"]
    code: Float[Array, "*batch seat other code"] | None


class StrangerTable(NamedTuple):
    """Where imagined games of one seat are, [copy, ...]; the seat is seat 0 of the states.

    stranger: [copy, other, code] whom it meets. first: the step is the first of an episode.
    action, reward: its last ones, -1 and 0 at first.
    """

    state: State
    memory: Float[Array, "copy units"]
    stranger: Float[Array, "copy other code"]
    first: Bool[Array, " copy"]
    action: Int[Array, " copy"]
    reward: Float[Array, " copy"]


class StrangerSteps(NamedTuple):
    """What was imagined: the part of the own seats as a trajectory, [time, copy, own, ...], and
    what the strangers saw and did, as the learner keeps it of real co-players."""

    own: Trajectory
    others: SeenOthers


class Mind(NamedTuple):
    """The networks of one seat."""

    actor: Network
    encoder: GRUNetwork
    goals: GoalModel
    identity: Float[Array, " id"]


class StrangerGames(NamedTuple):
    """How a learner imagines. active: its seats in the game. rows: the parameter sets of theirs."""

    config: HopPlusConfig
    active: tuple[int, ...]
    rows: np.ndarray

    def copies(self, real: int) -> int:
        """Imagined game copies beside so many real ones: whole minibatches."""
        share, minibatches = self.config.imagination.strangers, self.config.minibatches
        return max(round(real * share / (1 - share) / minibatches), 1) * minibatches

    def rollout(
        self,
        key: PRNGKeyArray,
        state: PPOState,
        game: Game,
        played: State,
        begins: Bool[Array, "time copy"],
        streams: Int[Array, " seat"],
    ) -> StrangerSteps:
        """Imagined games of all active seats. They begin where real episodes began; where none
        did, nothing counts. played: [time, copy, ...] real states. streams: of all seats."""
        steps, real = begins.shape
        copies = self.copies(real)
        rows = np.broadcast_to(self.rows, len(self.active))
        actors, model = jax.tree.map(lambda x: x[rows], (state.actor, state.model))
        minds = Mind(
            actors, model.encoder, model.decoder.goals, state.identity[0, np.array(self.active)]
        )
        pool = jax.tree.map(lambda x: x.reshape(steps * real, *x.shape[2:]), played)

        def one_seat(key: PRNGKeyArray, seat: Int[Array, ""], mind: Mind) -> tuple:
            return self.one_seat(key, seat, mind, game, pool, begins.reshape(-1), (steps, copies))

        keys = seat_keys(key, streams)[np.array(self.active)]
        found, last, memory = jax.vmap(one_seat)(keys, jnp.array(self.active), minds)
        own, others = jax.tree.map(lambda x: jnp.moveaxis(x, 0, 2), found)
        last, memory = jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), (last, memory))
        counts = jnp.any(begins)
        own = own._replace(
            last=last, memory=memory, over=own.over[..., 0], alive=own.alive & counts
        )
        return StrangerSteps(own, others._replace(alive=others.alive & counts))

    def one_seat(
        self,
        key: PRNGKeyArray,
        seat: Int[Array, ""],
        mind: Mind,
        game: Game,
        pool: State,
        begins: Bool[Array, " row"],
        shape: tuple[int, int],
    ) -> tuple[tuple[Trajectory, SeenOthers], Observation, Float[Array, "copy units"]]:
        """The games of one seat: [time, copy, ...] its steps and the others', its view after the
        last step, and its memory before the first. pool, begins: [row] real states, and which are
        the first of an episode. shape: steps and copies."""
        pick_key, company_key, uniform_key, step_key = jax.random.split(key, 4)
        steps, copies = shape
        uniform = jax.random.uniform(pick_key, ((steps + 1) * copies,))
        chosen = one_of(begins, uniform)
        starts = jax.tree.map(lambda x: x[chosen], pool)
        starts = jax.vmap(game.ego_state, in_axes=(0, None))(starts, seat)
        starts = jax.tree.map(lambda x: x.reshape(steps + 1, copies, *x.shape[1:]), starts)
        company = mind.goals.inference.sample_groups(
            company_key, (steps + 1, copies), game.seats - 1
        )
        uniform = jax.random.uniform(uniform_key, (steps * copies * game.seats,))
        uniform = uniform.reshape(steps, copies, game.seats)
        keys = jax.random.split(step_key, steps * copies).reshape(steps, copies)
        units = self.config.memory.units
        start = StrangerTable(
            state=jax.tree.map(lambda x: x[0], starts),
            memory=jnp.zeros((copies, units)),
            stranger=company[0],
            first=jnp.ones(copies, bool),
            action=jnp.full(copies, -1, jnp.int32),
            reward=jnp.zeros(copies),
        )
        fresh = (jax.tree.map(lambda x: x[1:], starts), company[1:])

        def step(table: StrangerTable, drawn: tuple) -> tuple[StrangerTable, tuple]:
            return self.step(mind, game, table, *drawn)

        end, found = jax.lax.scan(step, start, (uniform, keys, fresh))
        last = jax.tree.map(lambda x: x[:, 0], jax.vmap(game.observe)(end.state))
        return found, last, start.memory

    def step(
        self,
        mind: Mind,
        game: Game,
        table: StrangerTable,
        uniform: Float[Array, "copy seat"],
        keys: Key[Array, " copy"],
        fresh: tuple[State, Float[Array, "copy other code"]],
    ) -> tuple[StrangerTable, tuple[Trajectory, SeenOthers]]:
        """One step of all copies; fresh: where copies begin that are over, and among whom."""
        keep = self.config.memory.keep
        views = jax.vmap(game.observe)(table.state)
        mine, theirs = (jax.tree.map(lambda x, i=i: x[:, i], views) for i in (0, slice(1, None)))
        memory = table.memory if keep else jnp.where(table.first[:, None], 0.0, table.memory)
        x = inputs(mine, mind.identity, table.first, table.action, table.reward, keep)
        codes, memory = mind.encoder.step(x, memory)
        logits = mind.actor(jnp.concatenate([flatten(mine, mind.identity), codes], axis=-1))
        log_policy = categorical.log_policy(logits, mine.legal)
        own = categorical.sample(uniform[:, 0], log_policy)
        expected = mind.goals.predict_actions(mind.goals.see(theirs), table.stranger, theirs.legal)
        rest = categorical.sample(uniform[:, 1:], expected)
        alive = jax.vmap(game.alive)(table.state)
        joint = jnp.concatenate([own[:, None], rest], axis=1)
        after, outcome = jax.vmap(game.step)(keys, table.state, joint)
        still = jax.vmap(game.alive)(after)[:, 0]
        over = outcome.truncated | ~still
        row = Trajectory(
            observation=mine,
            alive=alive[:, 0],
            action=own,
            log_policy=log_policy,
            reward=outcome.reward[:, 0],
            terminated=outcome.terminated[:, 0],
            truncated=outcome.truncated & still,
            over=over,
            final=jax.tree.map(lambda x: x[:, 0], jax.vmap(game.observe)(after)),
            last=None,  # type: ignore[arg-type]
            episode_reward=None,  # type: ignore[arg-type]
            episode_steps=None,  # type: ignore[arg-type]
            past=Past(table.first, table.action, table.reward),
        )
        others = SeenOthers(
            view=flatten(theirs),
            action=rest,
            alive=alive[:, 1:] & alive[:, :1],
            legal=theirs.legal,
            code=None,
        )
        state, company = fresh
        following = StrangerTable(
            state=where_rows(over, state, after),
            memory=memory,
            stranger=table.stranger if keep else where_rows(over, company, table.stranger),
            first=over,
            action=own,
            reward=outcome.reward[:, 0],
        )
        return following, (row, others)


def joined(real: T, imagined: T) -> T:
    """Real and imagined steps, the imagined copies behind the real ones. Fields that only real
    steps have are left out."""
    if not isinstance(real, Trajectory) or not isinstance(imagined, Trajectory):
        return jax.tree.map(
            lambda x, y: jnp.concatenate([x, y.astype(x.dtype)], axis=1), real, imagined
        )
    late = {
        name: jax.tree.map(
            lambda x, y: jnp.concatenate([x, y.astype(x.dtype)]),
            getattr(real, name),
            getattr(imagined, name),
        )
        for name in ("last", "memory")
    }
    gone = {
        "last": None,
        "memory": None,
        "episode_reward": None,
        "episode_steps": None,
        "meeting_over": None,
        "stream": None,
    }
    steps = joined(tuple(real._replace(**gone)), tuple(imagined._replace(**gone)))  # type: ignore[arg-type]
    return Trajectory(*steps)._replace(**late)  # type: ignore[return-value]
