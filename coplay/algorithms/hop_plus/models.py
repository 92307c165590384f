"""What the models of HOP+ learn from, and how: buffers, and gradient steps on them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from coplay.algorithms.hop_plus.config import HopPlusConfig
from coplay.algorithms.hop_plus.player import HopPlusMemory, ego_first
from coplay.algorithms.ppo.learner import PPOState
from coplay.core.game import Game, Observation
from coplay.core.numerics import masked_mean
from coplay.core.trajectory import Trajectory
from coplay.models.goal_codes import GoalModel, Steps, past_features
from coplay.models.goal_loss import Terms, goal_loss, loss_without_goals
from coplay.models.world_model import (
    Transition,
    WorldModel,
    likely_board,
    with_rewards,
    world_loss,
)
from coplay.nn.networks import ViewShape
from coplay.rl.optimisers import OptimiserConfig, make_optimiser


class HopPlusState(NamedTuple):
    """What learning changes. goals, world and their optimisers: one set for all seats.

    chunks, transitions: buffers, the newest last. chunk_count, transition_count: [] how many of
    them are real. updates: [] so far.
    """

    policy: PPOState
    goals: GoalModel
    world: WorldModel | None
    goals_optimiser: Any
    world_optimiser: Any
    chunks: Steps
    transitions: Transition | None
    chunk_count: Int[Array, ""]
    transition_count: Int[Array, ""]
    updates: Int[Array, ""]


class HopPlusData(NamedTuple):
    """What an update takes from a rollout.

    game, state: to imagine from; states [time, copy, ...]. chunks: [copy * seat] of all seats, as
    long as the rollout. known: [time, copy, seat, ...] what players knew of all seats when they
    decided. own: the part of the active seats. oracle: the probability of everybody's most probable
    action, by the policy that acted. alive, joint: [time, copy, seat] who was in the game, and what
    all did. begins: [time, copy] the first step of an episode. streams: of all seats of the game.
    last_alive, everyone_last: [copy, seat] after the last step and its reset.
    """

    game: Game
    chunks: Steps
    known: HopPlusMemory
    own: Trajectory
    oracle: Float[Array, "time copy seat"]
    alive: Bool[Array, "time copy seat"]
    joint: Int[Array, "time copy seat"]
    begins: Bool[Array, "time copy"]
    state: Any
    streams: Int[Array, " seat"]
    last_alive: Bool[Array, "copy seat"]
    everyone_last: Observation


class Models(NamedTuple):
    """How the models of a learner learn. active: its seats in the game."""

    config: HopPlusConfig
    shape: ViewShape
    game_seats: int
    active: tuple[int, ...]

    @property
    def optimiser(self) -> optax.GradientTransformation:
        """Of all numbers of a model as one vector."""
        rate = self.config.models.learning_rate
        return make_optimiser(OptimiserConfig(learning_rate=rate, max_grad_norm=1.0, epsilon=1e-7))

    def no_chunks(self, goals: GoalModel) -> Steps:
        """A buffer of empty chunks, with what the model learns from."""
        config, shape = self.config.models, self.shape
        size = (config.buffer_chunks, config.chunk_length)
        numbers = shape.features - past_features(shape, self.game_seats) + 1
        return Steps(
            observation=Observation(
                planes=jnp.zeros((*size, *shape.planes), shape.plane_type),
                features=jnp.zeros((*size, shape.features)),
                legal=jnp.ones((*size, shape.actions), bool),
            ),
            following=jnp.zeros((*size, *shape.planes), shape.plane_type),
            outcome=jnp.zeros((*size, numbers)) if goals.content_numbers else None,
            joint=jnp.zeros((*size, self.game_seats), jnp.int8),
            alive=jnp.zeros(size, bool),
            first=jnp.zeros(size, bool),
            left=jnp.zeros(size, jnp.int32),
            target=jnp.zeros(size),
            start=jnp.zeros((config.buffer_chunks, goals.memory_size)),
            begin=jnp.zeros((*size, goals.memory_size)) if self.config.inter else None,
        )

    def no_transitions(self) -> Transition:
        """An empty buffer of own steps."""
        rows, shape = self.config.models.buffer_transitions, self.shape
        return Transition(
            planes=jnp.zeros((rows, *shape.planes), bool),
            action=jnp.zeros((rows, self.game_seats), jnp.int8),
            following=jnp.zeros((rows, *shape.planes), bool),
            reward=jnp.zeros(rows),
            leaves=jnp.zeros(rows, bool),
            legal=jnp.ones((rows, shape.actions), bool),
            alive=jnp.zeros(rows, bool),
        )

    @property
    def observed(self) -> np.ndarray:
        """[seat] whether it is a co-player of an active seat."""
        return np.array(
            [any(own != seat for own in self.active) for seat in range(self.game_seats)]
        )

    def fill(self, state: HopPlusState, new: HopPlusData) -> HopPlusState:
        """The buffers after a rollout."""
        return self._fill_transitions(self._fill_chunks(state, new), new)

    def _fill_chunks(self, state: HopPlusState, new: HopPlusData) -> HopPlusState:
        config, length = self.config.models, self.config.models.chunk_length
        count, steps = new.chunks.alive.shape
        pieces = steps // length
        # What is drawn from the buffer must not hang on the order of the seats.
        order = jnp.argsort(new.streams)

        def cut(x: Shaped[Array, "chunk time *rest"]) -> Shaped[Array, "piece slot *rest"]:
            copies = count // self.game_seats  # views may have no numbers, so no -1
            by_stream = x.reshape(copies, self.game_seats, *x.shape[1:])[:, order]
            return by_stream.reshape(count * pieces, length, *x.shape[2:])

        others = jnp.asarray(np.tile(self.observed, count // self.game_seats))[:, None]
        chunks = new.chunks._replace(start=None, alive=new.chunks.alive & others)  # type: ignore[arg-type]
        if state.chunks.outcome is None:
            chunks = chunks._replace(outcome=None)
        chunks = jax.tree.map(cut, chunks)
        rest = jnp.arange(length - 1, -1, -1)
        memory = jnp.moveaxis(new.known.goals, 0, 2).reshape(count, steps, -1)
        chunks = chunks._replace(left=jnp.minimum(chunks.left, rest), start=cut(memory)[:, 0])
        # Chunks without a step of anybody in the game are not kept.
        kept, number = _newest(state.chunks, chunks, jnp.any(chunks.alive, axis=1))
        number = jnp.minimum(state.chunk_count + number, config.buffer_chunks)
        return state._replace(chunks=kept, chunk_count=number)

    def _fill_transitions(self, state: HopPlusState, new: HopPlusData) -> HopPlusState:
        """Also notes the rewards that the world model does not know yet."""
        if state.world is None or state.transitions is None:
            return state
        active = np.array(self.active)
        order = jnp.argsort(new.streams[active])

        def rows(x: Shaped[Array, "time copy own *rest"]) -> Shaped[Array, "row *rest"]:
            return x[:, :, order].reshape(-1, *x.shape[3:])

        own = new.own
        step = Transition(
            planes=rows(own.observation.planes) != 0,
            action=rows(ego_first(new.joint)[:, :, active]),
            following=rows(own.final.planes) != 0,
            reward=rows(own.reward),
            leaves=rows(own.terminated),
            legal=rows(own.observation.legal),
            alive=rows(own.alive),
        )
        kept, number = _newest(state.transitions, step, step.alive)
        values = with_rewards(state.world.values, step.reward, step.alive)
        size = self.config.models.buffer_transitions
        return state._replace(
            transitions=kept,
            transition_count=jnp.minimum(state.transition_count + number, size),
            world=eqx.tree_at(lambda model: model.values, state.world, values),
        )

    def learn(
        self,
        state: HopPlusState,
        goal_key: PRNGKeyArray,
        world_key: PRNGKeyArray,
        due: Bool[Array, ""],
    ) -> tuple[HopPlusState, Terms]:
        """Gradient steps of the models, from their buffers, in updates in which they are due."""
        config = self.config.models
        terms: Terms = {}
        if config.learn_opponents:
            goals, optimiser, terms = self._learn_model(
                self._goal_loss,
                (state.goals, state.goals_optimiser),
                (state.chunks, state.chunk_count),
                config.batch_chunks,
                goal_key,
                due,
            )
            state = state._replace(goals=goals, goals_optimiser=optimiser)
        if state.world is not None and state.transitions is not None and config.learn_world:
            world, optimiser, found = self._learn_model(
                _world_loss,
                (state.world, state.world_optimiser),
                (state.transitions, state.transition_count),
                config.batch_transitions,
                world_key,
                due,
            )
            state = state._replace(world=world, world_optimiser=optimiser)
            terms = terms | found
        return state, terms

    def _goal_loss(
        self, model: GoalModel, batch: Steps, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], Terms]:
        goals = self.config.goals
        if goals.use != "inferred":
            return loss_without_goals(model, batch)
        return goal_loss(model, batch, key, 1.0, goals.model)

    def _learn_model(
        self,
        loss: Callable[[Any, Any, PRNGKeyArray], tuple[Float[Array, ""], Terms]],
        learned: tuple[Any, Any],
        buffer: tuple[Any, Int[Array, ""]],
        size: int,
        key: PRNGKeyArray,
        due: Bool[Array, ""],
    ) -> tuple[Any, Any, Terms]:
        """A model and its optimiser after gradient steps on batches of `size` rows, and the mean of
        the terms of its loss. buffer: its rows, and how many of the last ones are real."""
        (model, optimiser), (rows, filled) = learned, buffer
        updates = self.config.models.updates
        held = jax.tree.leaves(rows)[0].shape[0]
        index_key, loss_key = jax.random.split(key)
        number = max(updates, 1)
        first = held - jnp.maximum(filled, 1)
        index = jax.random.randint(index_key, (number * size,), first, held)
        drawn = (index.reshape(number, size), jax.random.split(loss_key, number))
        # One vector of all numbers: a step of Adam for each array takes long to compile.
        start, as_model = ravel_pytree(model)

        def loss_of(
            model: Any, index: Int[Array, " row"], key: PRNGKeyArray
        ) -> tuple[Array, Terms]:
            return loss(model, jax.tree.map(lambda x: x[index], rows), key)

        def one(carry: tuple, drawn: tuple) -> tuple[tuple, Terms]:
            flat, optimiser = carry
            slope, terms = jax.grad(loss_of, has_aux=True)(as_model(flat), *drawn)
            change, optimiser = self.optimiser.update(ravel_pytree(slope)[0], optimiser, flat)
            return (flat + change, optimiser), terms

        (flat, changed), found = jax.lax.scan(one, (start, optimiser), drawn)
        take = due & (filled > 0) & (updates > 0)
        flat, changed = jax.tree.map(
            lambda x, old: jnp.where(take, x, old), (flat, changed), (start, optimiser)
        )
        return as_model(flat), changed, jax.tree.map(jnp.mean, found)


def _world_loss(
    model: WorldModel, batch: Transition, key: PRNGKeyArray
) -> tuple[Float[Array, ""], Terms]:
    """The world model's loss; its terms with the share of boards that are predicted exactly."""
    loss, terms = world_loss(model, batch)
    planes, after = (x.astype(jnp.float32) for x in (batch.planes, batch.following))
    likely = likely_board(planes, model(planes, batch.action))
    right = jnp.all(likely == after, axis=(1, 2, 3)).astype(jnp.float32)
    return loss, terms | {"world_exact": masked_mean(right, batch.alive, None)}


def _newest(old: Any, new: Any, keep: Bool[Array, " row"]) -> tuple[Any, Int[Array, ""]]:
    """A buffer after new rows, those to be kept only: the newest last; and how many came."""
    number = jnp.sum(keep)
    # The k-th row to be kept, for every k; beyond the last, rows that the slice leaves out.
    order = jnp.searchsorted(jnp.cumsum(keep), jnp.arange(1, keep.shape[0] + 1))
    order = jnp.minimum(order, keep.shape[0] - 1)

    def moved(old: Array, new: Array) -> Array:
        size = old.shape[0]
        rows = jnp.concatenate([old, new[order].astype(old.dtype)])
        return jax.lax.dynamic_slice_in_dim(rows, number, size)

    return jax.tree.map(moved, old, new), number
