"""What the models of HOP+ learn from, and how: buffers of lines and steps, and gradient steps."""

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
from coplay.models.goal_codes import GoalModel, Steps, goal_loss
from coplay.models.world_model import (
    Transition,
    WorldModel,
    likely_board,
    with_rewards,
    world_loss,
)
from coplay.nn.networks import ViewShape


class HopPlusState(NamedTuple):
    """What learning changes. goals, world and their optimisers: one set for all seats.

    lives, steps: the newest last; lines, rows: [] how many of them are real. rounds: [] updates so
    far.
    """

    policy: PPOState
    goals: GoalModel
    world: WorldModel | None
    goals_optimiser: Any
    world_optimiser: Any
    chunks: Steps
    steps: Transition | None
    lines: Int[Array, ""]
    rows: Int[Array, ""]
    rounds: Int[Array, ""]


class UpdateData(NamedTuple):
    """What an update takes from a rollout.

    game, state: to imagine from; states [time, copy, ...]. lives: [copy * seat] lines of all seats.
    known: [time, copy, seat, ...] what players knew of all seats when they decided. own: the part
    of the active seats. surest: the probability of everybody's most probable action, by the policy
    that acted. alive, joint: [time, copy, seat] who was in the game, and what all did. begins:
    [time, copy] the first step of an episode.
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
        return optax.chain(
            optax.clip_by_global_norm(1.0), optax.adam(self.config.model_rate, eps=1e-7)
        )

    def no_chunks(self, units: int) -> Steps:
        """A buffer of empty lines."""
        config, shape = self.config, self.shape
        size = (config.buffer_lines, config.line)
        return Steps(
            observation=Observation(
                planes=jnp.zeros((*size, *shape.planes), bool),
                features=jnp.zeros((*size, shape.features)),
                legal=jnp.ones((*size, shape.actions), bool),
            ),
            following=jnp.zeros((*size, *shape.planes), bool),
            joint=jnp.zeros((*size, self.game_seats), jnp.int8),
            alive=jnp.zeros(size, bool),
            first=jnp.zeros(size, bool),
            left=jnp.zeros(size, jnp.int32),
            target=jnp.zeros(size),
            start=jnp.zeros((config.buffer_lines, units)),
        )

    def no_transitions(self) -> Transition:
        """An empty buffer of own steps."""
        rows, shape = self.config.buffer_steps, self.shape
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

    def fill(self, state: HopPlusState, new: UpdateData) -> HopPlusState:
        """The buffers with what was played."""
        config, seats = self.config, self.game_seats
        lines, steps = new.chunks.alive.shape
        pieces = steps // config.line

        def cut(x: Shaped[Array, "chunk time *rest"]) -> Shaped[Array, "piece slot *rest"]:
            return x.reshape(lines * pieces, config.line, *x.shape[2:])

        others = jnp.asarray(np.tile(self.observed, lines // seats))[:, None]
        chunks = new.chunks._replace(start=None, alive=new.chunks.alive & others)  # type: ignore[arg-type]
        chunks = jax.tree.map(cut, chunks)
        rest = jnp.arange(config.line - 1, -1, -1)
        memory = jnp.moveaxis(new.known.goals, 0, 2).reshape(lines, steps, -1)
        chunks = chunks._replace(left=jnp.minimum(chunks.left, rest), start=cut(memory)[:, 0])
        # Lines without a step of anybody in the game are not kept.
        kept, number = _newest(state.chunks, chunks, jnp.any(chunks.alive, axis=1))
        state = state._replace(
            chunks=kept, lines=jnp.minimum(state.lines + number, config.buffer_lines)
        )
        if state.world is None or state.steps is None:
            return state
        order = np.array(self.active)

        def rows(x: Shaped[Array, "time copy own *rest"]) -> Shaped[Array, "row *rest"]:
            return x.reshape(-1, *x.shape[3:])

        own = new.own
        step = Transition(
            planes=rows(own.observation.planes) != 0,
            action=rows(ego_first(new.joint)[:, :, order]),
            following=rows(own.final.planes) != 0,
            reward=rows(own.reward),
            leaves=rows(own.terminated),
            legal=rows(own.observation.legal),
            alive=rows(own.alive),
        )
        kept_steps, number = _newest(state.steps, step, step.alive)
        values = with_rewards(state.world.values, step.reward, step.alive)
        return state._replace(
            steps=kept_steps,
            rows=jnp.minimum(state.rows + number, config.buffer_steps),
            world=eqx.tree_at(lambda model: model.values, state.world, values),
        )

    def learn(
        self,
        state: HopPlusState,
        goal_key: PRNGKeyArray,
        world_key: PRNGKeyArray,
        due: Bool[Array, ""],
    ) -> tuple[HopPlusState, dict[str, Float[Array, ""]]]:
        """Gradient steps of the models, from their buffers, in rounds in which they are due."""
        config = self.config
        terms: dict[str, Float[Array, ""]] = {}
        inferred = config.goal == "inferred"

        def learn_model(
            loss: Any, model: Any, optimiser: Any, size: int, filled: Array, held: int, key: Any
        ) -> tuple[Any, Any, dict]:
            index_key, loss_key = jax.random.split(key)
            number = max(config.model_updates, 1)
            first = held - jnp.maximum(filled, 1)
            index = jax.random.randint(index_key, (number * size,), first, held)
            drawn = (index.reshape(number, size), jax.random.split(loss_key, number))
            # One vector of all numbers: a step of Adam for each array takes long to compile.
            start, as_model = ravel_pytree(model)

            def one(carry: tuple, drawn: tuple) -> tuple[tuple, dict]:
                flat, optimiser = carry
                slope, terms = jax.grad(loss, has_aux=True)(as_model(flat), *drawn)
                change, optimiser = self.optimiser.update(ravel_pytree(slope)[0], optimiser)
                return (flat + change, optimiser), terms

            (flat, changed), found = jax.lax.scan(one, (start, optimiser), drawn)
            take = due & (filled > 0) & (config.model_updates > 0)
            flat, changed = jax.tree.map(
                lambda x, old: jnp.where(take, x, old), (flat, changed), (start, optimiser)
            )
            return as_model(flat), changed, jax.tree.map(jnp.mean, found)

        if config.learn_opponents:
            chunks = state.chunks

            def goals_loss(model: GoalModel, index: Array, key: Any) -> tuple[Array, dict]:
                batch = jax.tree.map(lambda x: x[index], chunks)
                return goal_loss(model, batch, key, 1.0, inferred, config.goal_config)

            goals, changed, found = learn_model(
                goals_loss,
                state.goals,
                state.goals_optimiser,
                config.model_lines,
                state.lines,
                config.buffer_lines,
                goal_key,
            )
            state = state._replace(goals=goals, goals_optimiser=changed)
            terms |= found
        if state.world is not None and state.steps is not None and config.learn_world:
            steps = state.steps

            def steps_loss(model: WorldModel, index: Array, key: Any) -> tuple[Array, dict]:
                batch: Transition = jax.tree.map(lambda x: x[index], steps)
                loss, terms = world_loss(model, batch)
                planes, after = (x.astype(jnp.float32) for x in (batch.planes, batch.following))
                likely = likely_board(planes, model(planes, batch.action))
                right = jnp.all(likely == after, axis=(1, 2, 3)).astype(jnp.float32)
                return loss, terms | {"world_exact": masked_mean(right, batch.alive, None)}

            world, changed, found = learn_model(
                steps_loss,
                state.world,
                state.world_optimiser,
                config.model_steps,
                state.rows,
                config.buffer_steps,
                world_key,
            )
            state = state._replace(world=world, world_optimiser=changed)
            terms |= found
        return state, terms


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
