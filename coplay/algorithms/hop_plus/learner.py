"""HOP+: latent goals of co-players, a model of others, a model of the world, and PPO.

The player (`player.py`) infers a goal code for every co-player and acts on its view and those
codes, by its actor or by planning. One update of the learner, from top to bottom of
`HopPlus.update`: codes of all steps; imagined steps, if there are any; PPO on real and imagined
steps together (`algorithms/ppo`, unchanged: codes are further features of the view); then the
models learn from their buffers.

The models are of the game and of players in it, not of a seat, so all seats of a learner share
them; actors and critics are as `parameters` says.
"""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from coplay.algorithms.hop_plus.config import HopPlusConfig
from coplay.algorithms.hop_plus.imagination import Imagination
from coplay.algorithms.hop_plus.models import HopPlusData, HopPlusState, Models
from coplay.algorithms.hop_plus.partial import PartialHopPlus
from coplay.algorithms.hop_plus.player import (
    HopPlusMemory,
    HopPlusPlayer,
    between_episodes,
    ego_first,
)
from coplay.algorithms.ppo.learner import PPO, PPOState
from coplay.core.errors import UserError
from coplay.core.game import Game, Observation
from coplay.core.group import Group
from coplay.core.learner import Learner
from coplay.core.numerics import masked_mean
from coplay.core.trajectory import Trajectory, in_full, of_seats, streams_of
from coplay.models.code_simulator import with_codes
from coplay.models.goal_codes import (
    GoalModel,
    Steps,
    check_content,
    new_goal_model,
    past_features,
)
from coplay.models.imagination import ImaginedRollout
from coplay.models.opponent_model import accuracy
from coplay.models.world_model import WorldModel, new_world_model, refuse_unseen
from coplay.rl.advantages import ending_at_horizon
from coplay.rl.parameter_sets import SetLearner, in_order_of_streams

MEASURED = 64  # game copies in which predictions of actions are measured


class HopPlus(SetLearner):
    """See the module docstring."""

    config: HopPlusConfig = eqx.field(static=True)

    play_fields = HopPlusConfig.play_fields
    training_only = (
        *PPO.training_only,
        *("goals_optimiser", "world_optimiser", "chunks", "transitions"),
        *("chunk_count", "transition_count"),
    )

    @classmethod
    def made(cls, **fields: Any) -> Learner:
        """Where views do not show everything, a `PartialHopPlus`."""
        config, shape = fields["config"], fields["shape"]
        if config.views == "auto" and shape.full_view:
            return cls(**fields)
        return PartialHopPlus(**fields | {"config": config.resolved(shape)})

    @property
    def coefficients(self) -> tuple[str, ...]:
        # The history has no encoder of its own here.
        return tuple(x for x in super().coefficients if not x.startswith("history."))

    def check(self, game: Game) -> None:
        check_content(self.config.goals, self.shape)
        if self.config.uses_world_model:
            refuse_unseen(game)
        if self.game_seats < 2:
            raise UserError("HOP+ thinks about co-players: the game needs at least two seats")

    def check_rollout(self, steps: int) -> None:
        length = self.config.models.chunk_length
        if steps % length:
            raise UserError(
                f"models.chunk_length ({length}) must divide the rollout ({steps} steps)"
            )

    def _checked(self, goals: GoalModel) -> GoalModel:
        """A pretrained goal model; an error if it does not go with the configuration."""
        folder, config = self.config.goals.from_, goals.config
        if config.dim != self.config.goals.dim:
            raise UserError(
                f"goals '{folder}' have {config.dim} numbers: give --goals.dim {config.dim}"
            )
        if self.config.imagination.strangers and config.inference != "prototypes":
            raise UserError(f"strangers are made of prototypes, and goals '{folder}' have none")
        return goals

    # --- parameters and players ----------------------------------------------------------------

    @property
    def _ppo(self) -> PPO:
        """PPO on views with goal codes."""
        shape, others = self.shape, self.game_seats - 1
        return PPO(
            config=self.config.resolved(shape),
            shape=shape.with_more(others * self.config.known_numbers(shape.actions)),
            game_seats=self.game_seats,
            seats=self.seats,
            active=self.active,
        )

    @property
    def _together(self) -> bool:
        """Whether every seat of the game is its own, so that each is looked at only once."""
        return self.active == tuple(range(self.game_seats))

    @property
    def _imagination(self) -> Imagination:
        return Imagination(self.config, self.active, self._ppo.set_rows)

    @property
    def _models(self) -> Models:
        return Models(self.config, self.shape, self.game_seats, self.active)

    def init(
        self,
        key: PRNGKeyArray,
        streams: Int[Array, " seat"],
        parts: Mapping[str, Any] = MappingProxyType({}),
    ) -> HopPlusState:
        policy_key, goal_key, world_key = jax.random.split(key, 3)
        config, shape = self.config, self.shape
        goals = (
            self._checked(parts["goals.from"])
            if "goals.from" in parts
            else new_goal_model(config.goals.model, shape, self.game_seats, goal_key)
        )
        world = None
        if config.uses_world_model:
            world = (
                parts["world_model.from"]
                if "world_model.from" in parts
                else new_world_model(
                    config.world_model, shape.planes[2], self.game_seats, shape.actions, world_key
                )
            )

        def start(model: GoalModel | WorldModel) -> Any:
            return self._models.optimiser.init(ravel_pytree(model)[0])

        return HopPlusState(
            policy=self._ppo.init(policy_key, streams),
            goals=goals,
            world=world,
            goals_optimiser=start(goals),
            world_optimiser=None if world is None else start(world),
            chunks=self._models.no_chunks(goals),
            transitions=None if world is None else self._models.no_transitions(),
            chunk_count=jnp.int32(0),
            transition_count=jnp.int32(0),
            updates=jnp.int32(0),
        )

    def group(self, state: HopPlusState) -> Group:
        inner = self._ppo.group(state.policy)
        rows = self._ppo.set_rows
        critic = jax.tree.map(lambda x: x[rows], state.policy.critic)
        actor, identity = inner.player.actor, inner.player.identity  # type: ignore[attr-defined]
        if inner.shared:
            critic = jax.tree.map(lambda x: x[0], critic)
            models = (state.goals, state.world)
        else:
            count = len(self.active)
            critic = jax.tree.map(lambda x: jnp.broadcast_to(x, (count, *x.shape[1:])), critic)
            models = jax.tree.map(
                lambda x: jnp.broadcast_to(x, (count, *x.shape)), (state.goals, state.world)
            )
        player = HopPlusPlayer(
            actor,
            critic,
            identity,
            *models,
            self.config,
            self.game_seats,
            self.config.plan_while_learning,
            together=self._together,
        )
        return Group(player, self.active, inner.shared)

    def player(self, state: HopPlusState, seat: int, greedy: bool = False) -> HopPlusPlayer:
        row = self.seats.index(seat) if self.separate else 0
        actor, critic = jax.tree.map(lambda x: x[row], (state.policy.actor, state.policy.critic))
        identity = state.policy.identity[0, seat]
        planned = self.config.planner != "none"
        return HopPlusPlayer(
            actor,
            critic,
            identity,
            state.goals,
            state.world,
            self.config,
            self.game_seats,
            True,
            greedy or planned,
        )

    def alone(self, state: HopPlusState, seat: int, at: int) -> tuple["HopPlus", HopPlusState]:
        """With empty buffers: what was played among others says little about new co-players."""
        policy = self._ppo.alone(state.policy, seat, at)[1]
        learner = dataclasses.replace(self, seats=(at,), active=(at,))
        return learner, state._replace(
            policy=policy,
            chunks=learner._models.no_chunks(state.goals),
            transitions=None if state.world is None else learner._models.no_transitions(),
            chunk_count=jnp.int32(0),
            transition_count=jnp.int32(0),
        )

    # --- from what was played to chunks and transitions ----------------------------------------

    def training_data(self, game: Game, trajectory: Trajectory) -> HopPlusData:
        trajectory = in_full(trajectory)
        steps, copies, seats = trajectory.alive.shape
        assert trajectory.past is not None and trajectory.recorded is not None
        joint = jax.vmap(jax.vmap(game.last_actions))(trajectory.after).astype(jnp.int32)
        alive = trajectory.alive
        # In a segment that goes on, the next row is its next step.
        goes_on = jnp.concatenate([alive[1:], jnp.zeros_like(alive[:1])])
        goes_on &= alive & ~trajectory.over[..., None]

        def backward(later: tuple, row: tuple) -> tuple[tuple, tuple]:
            count, gained = later
            goes_on, reward, over = row
            count = jnp.where(goes_on, count + 1, 0)
            total = jnp.sum(reward, axis=-1, keepdims=True)
            others = (total - reward) / max(seats - 1, 1)
            gained = others + self.config.discount * jnp.where(over[:, None], 0.0, gained)
            return (count, gained), (count, gained)

        start = (jnp.zeros((copies, seats), jnp.int32), jnp.zeros((copies, seats)))
        rows = (goes_on, trajectory.reward, trajectory.over)
        left, target = jax.lax.scan(backward, start, rows, reverse=True)[1]

        def by_chunk(x: Shaped[Array, "time copy seat *rest"]) -> Shaped[Array, "chunk time *rest"]:
            return jnp.moveaxis(x, 0, 2).reshape(copies * seats, steps, *x.shape[3:])

        past = past_features(self.shape, seats)
        known = self._known(trajectory.recorded[self.active])
        fresh = trajectory.past.first & (not self.config.keep_memory)
        chunks = Steps(
            observation=jax.tree.map(by_chunk, trajectory.observation),
            following=by_chunk(trajectory.final.planes),
            outcome=by_chunk(
                jnp.concatenate(
                    [trajectory.final.features[..., past:], trajectory.reward[..., None]], axis=-1
                )
            ),
            joint=by_chunk(ego_first(joint)),
            alive=by_chunk(alive),
            first=by_chunk(fresh),
            left=by_chunk(left),
            target=by_chunk(target),
            start=by_chunk(known.goals)[:, 0],
            begin=by_chunk(known.goals) if self.config.inter else None,
        )
        after = jax.tree.map(lambda x: x[-1], trajectory.after)
        still = jax.vmap(game.alive)(after) & ~trajectory.over[-1][:, None]
        return HopPlusData(
            game=game,
            chunks=chunks,
            known=known,
            own=of_seats(trajectory, self.active),
            oracle=jnp.exp(jnp.max(trajectory.log_policy, axis=-1)),
            alive=alive,
            joint=joint,
            begins=trajectory.past.first[..., 0],
            state=trajectory.state,
            streams=streams_of(trajectory),
            # A new episode begins with everybody in the game.
            last_alive=still | trajectory.over[-1][:, None],
            everyone_last=trajectory.last,
        )

    def _known(self, recorded: HopPlusMemory) -> HopPlusMemory:
        """What players knew of all seats when they decided, [time, copy, seat, ...]. Active seats
        share a model, so all of them know the same."""
        if self._together:
            return jax.tree.map(lambda x: jnp.moveaxis(x[:, :, :, 0], 1, 2), recorded)
        place = (np.arange(self.game_seats) - self.active[0]) % self.game_seats
        return jax.tree.map(lambda x: x[:, 0][:, :, place], recorded)

    # --- learning ------------------------------------------------------------------------------

    def update(
        self,
        key: PRNGKeyArray,
        state: HopPlusState,
        trajectory: HopPlusData,
        progress: Float[Array, ""],
    ) -> tuple[HopPlusState, dict[str, Float[Array, "seat *action"]]]:
        imagine_key, policy_key, goal_key, world_key = jax.random.split(key, 4)
        own, metrics = (
            self._with_codes(state.goals, trajectory),
            self._prediction_metrics(state, trajectory),
        )
        imagined = None
        if self.config.imagination.active:
            imagined = self._imagination.rollout(imagine_key, state, trajectory)
        policy, learned = self._learn_policy(
            policy_key, state.policy, own, imagined, trajectory.streams, progress
        )
        metrics |= learned
        state = self._models.fill(state._replace(policy=policy), trajectory)
        due = state.updates % self.config.models.every == 0
        state, terms = self._models.learn(state, goal_key, world_key, due)
        metrics |= {name: jnp.full(len(self.active), value) for name, value in terms.items()}
        return state._replace(updates=state.updates + 1), metrics

    def stages(
        self,
        key: PRNGKeyArray,
        state: HopPlusState,
        trajectory: HopPlusData,
        progress: Float[Array, ""],
    ) -> dict[str, Any]:
        """Of PPO on the steps that were played, with the codes that players acted by."""
        own = self._with_codes(state.goals, trajectory)
        return self._ppo.stages(key, state.policy, own, progress)

    def first_ratio(
        self, state: HopPlusState, trajectory: HopPlusData
    ) -> Float[Array, " seat"] | None:
        if self.config.plan_while_learning:  # the search acted, and PPO corrects for it
            return None
        return self._ppo.first_ratio(state.policy, self._with_codes(state.goals, trajectory))

    def _prediction_metrics(self, state: HopPlusState, new: HopPlusData) -> dict[str, Array]:
        """How well co-players' actions were predicted, before anything is learned from them, in
        some of the game copies."""
        seats = self.game_seats
        some = min(new.alive.shape[1], MEASURED) * seats
        chunks = jax.tree.map(lambda x: x[:some], new.chunks)
        z = jnp.moveaxis(new.known.z, 0, 2).reshape(-1, *new.known.z.shape[::3])[:some]
        seen = state.goals.see(chunks.observation)
        log_probs = state.goals.predict_actions(seen, z, chunks.observation.legal)
        mask = chunks.alive & jnp.asarray(np.tile(self._models.observed, some // seats))[:, None]
        found = accuracy(log_probs, chunks.joint[..., 0].astype(jnp.int32), mask)
        count = len(self.active)
        # An oracle that knows every policy predicts the most probable actions.
        oracle = masked_mean(new.oracle, new.alive & self._models.observed, None)
        metrics = found.metrics() | {
            "opponent_oracle_top1": oracle,
            "opponent_loss_before_update": found.loss,
        }
        return {
            name: jnp.broadcast_to(value, (count, *value.shape)) for name, value in metrics.items()
        }

    def _with_codes(self, goals: GoalModel, new: HopPlusData) -> Trajectory:
        """The own trajectory, its views with the goal codes that the players acted by."""
        gone = ("past", "memory", "episode_reward", "episode_steps", "stream")
        own = new.own._replace(**dict.fromkeys(gone))  # type: ignore[arg-type]
        if self.config.goals.use == "none":
            return own
        last_codes = jnp.zeros_like(new.known.z[0])
        if self.config.goals.use == "inferred":
            last_codes = goals.infer(self._after(goals, new), goals.see(new.everyone_last)).mean
        last: HopPlusMemory = jax.tree.map(lambda x: x[-1], new.known)._replace(z=last_codes)
        return own._replace(
            observation=self._add_codes(own.observation, new.known.told, new.alive),
            # Of the shapes that PPO wants: the horizon is an end, so nobody asks for their values.
            final=self._add_codes(own.final, new.known.told, new.alive),
            # The last correction stands for the one after the last step.
            last=self._add_codes(own.last, last.told, new.last_alive),
        )

    def _after(self, goals: GoalModel, new: HopPlusData) -> Float[Array, "copy seat units"]:
        """The memory of all seats after the last step and its reset."""
        copies, seats = new.alive.shape[1:]

        def last(x: Shaped[Array, "chunk time *rest"]) -> Shaped[Array, "copy seat *rest"]:
            return x[:, -1].reshape(copies, seats, *x.shape[2:])

        view = jax.tree.map(last, new.chunks.observation)
        before = new.known.goals[-1]
        after = goals.remember(before, goals.see(view), last(new.chunks.joint))
        after = jnp.where(new.alive[-1][..., None], after, before)
        last_known = jax.tree.map(lambda x: x[-1], new.known)._replace(goals=after)
        return between_episodes(goals, self.config, last_known, new.own.over[-1]).goals

    def _add_codes(
        self,
        views: Observation,
        told: Float[Array, "*batch seat number"],
        alive: Bool[Array, "*batch seat"],
    ) -> Observation:
        """Views [..., own, ...] of the active seats with what is told of their co-players."""
        seats = self.game_seats
        order = (np.array(self.active)[:, None] + np.arange(1, seats)) % seats  # [own, other]
        features = with_codes(views.features, told[..., order, :], alive[..., order])
        return views._replace(features=features)

    # --- PPO -----------------------------------------------------------------------------------

    def _learn_policy(
        self,
        key: PRNGKeyArray,
        state: PPOState,
        own: Trajectory,
        imagined: ImaginedRollout | None,
        streams: Int[Array, " game_seat"],
        progress: Float[Array, ""],
    ) -> tuple[PPOState, dict[str, Float[Array, " seat"]]]:
        """PPO on real and imagined steps together; rewards, returns and, once there are imagined
        steps, losses of both apart."""
        ppo, real = self._ppo, own.alive.shape[1]
        both = ending_at_horizon(own if imagined is None else _joined(own, imagined))
        arranged, both, place = in_order_of_streams(ppo, state, both, streams)
        learning, batch = ppo.prepare(arranged, both)
        new, metrics = ppo.improve(key, state, learning, batch, progress)
        copy = np.arange(both.alive.shape[1])
        parts = {"real": copy < real}
        if imagined is not None:
            first = real + self._imagination.counts(real)[0]
            parts |= {"imagined": (copy >= real) & (copy < first), "strangers": copy >= first}
            parts = {name: part for name, part in parts.items() if part.any()}
        count = len(self.active)
        if imagined is not None:
            after = jax.tree.map(lambda x: x[ppo.set_rows], new)
            masks = jnp.stack([batch.alive & part[:, None, None] for part in parts.values()])
            terms = jax.vmap(ppo.loss_terms, (0, 0, 1))(after, batch, masks)
            for index, name in enumerate(parts):
                metrics[f"{name}_policy_loss"] = terms.policy_loss[:, index].reshape(count)
                metrics[f"{name}_value_loss"] = terms.value_loss[:, index].reshape(count)
        for name, part in parts.items():
            mask = batch.alive & part[:, None, None]
            returns = jax.vmap(masked_mean, in_axes=(0, 0, None))(batch.target, mask, (0, 1))
            counted = both.alive & part[:, None]
            metrics[f"{name}_return"] = returns.reshape(count)
            metrics[f"{name}_reward"] = masked_mean(both.reward, counted, (0, 1))
        metrics = {name: value[place] for name, value in metrics.items()}
        new = new._replace(identity=state.identity)
        return (new if self.config.learn_policy else state), metrics


def _joined(own: Trajectory, imagined: ImaginedRollout) -> Trajectory:
    """Real and imagined steps, the imagined copies behind the real ones."""
    imagined = in_full(imagined)
    fields = ("observation", "alive", "action", "log_policy", "reward", "terminated", "truncated")
    parts = {
        name: jax.tree.map(
            lambda x, y: jnp.concatenate([x, y.astype(x.dtype)], axis=1),
            getattr(own, name),
            getattr(imagined, name),
        )
        for name in (*fields, "final")
    }
    last = jax.tree.map(
        lambda x, y: jnp.concatenate([x, y.astype(x.dtype)]), own.last, imagined.last
    )
    over = jnp.concatenate([own.over, imagined.over[..., 0]], axis=1)
    return own._replace(last=last, over=over, **parts)
