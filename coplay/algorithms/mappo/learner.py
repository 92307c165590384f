"""MAPPO: PPO for teams, with actors that see their own views and a critic that may see all.

One update, from top to bottom of `MAPPO.update`: values of all that was seen (normalised by running
statistics), advantages, pieces of the rollout that begin with the memories as they were and hold
all seats together, several epochs of shuffled minibatches of such pieces, the clipped losses, a
step of Adam for the actor and one for the critic. A parameter set is one for all seats (with or
without their numbers as inputs) or one for each; either way it is the same program over a leading
axis of sets.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from coplay.algorithms.mappo import data as data
from coplay.algorithms.mappo.config import MAPPOConfig
from coplay.algorithms.mappo.data import Context, MAPPOBatch, MAPPOState, Parameters, UpdateData
from coplay.algorithms.mappo.diagnostics import moved
from coplay.algorithms.mappo.player import (
    Hyper,
    MAPPOMemory,
    MAPPOPlayer,
    PlayConfig,
    critic_inputs,
)
from coplay.algorithms.mappo.seam import WithoutHypernetwork
from coplay.algorithms.ppo.learner import by_copy
from coplay.core.errors import UserError
from coplay.core.game import Game, Observation
from coplay.core.group import Group
from coplay.core.numerics import masked_mean
from coplay.core.player import Player
from coplay.core.trajectory import Trajectory, of_seats, rows_where
from coplay.nn import categorical
from coplay.nn.layer_norm import LayerNormNetwork
from coplay.nn.networks import ViewShape, flatten
from coplay.nn.recurrent_cells import memory_size
from coplay.rl import parameter_sets as sets
from coplay.rl import value_norm
from coplay.rl.advantages import explained_variance, gae, normalise
from coplay.rl.ppo_loss import ppo_loss


class MAPPO(WithoutHypernetwork):
    """See the module docstring."""

    config: MAPPOConfig = eqx.field(static=True)
    shape: ViewShape
    game_seats: int = eqx.field(static=True)
    seats: tuple[int, ...] = eqx.field(static=True)
    active: tuple[int, ...] = eqx.field(static=True)

    @property
    def declared_inputs(self) -> tuple[str, ...]:
        sees_id = ("identity",) if self.config.parameters in ("shared+id", "separate") else ()
        return ("view", *sees_id, *(("memory",) if self.config.memory != "none" else ()))

    @property
    def declared_data(self) -> tuple[str, ...]:
        global_state = self.shape.global_state and self.config.critic != "own"
        return (".trajectory.reward", *((".global_state",) if global_state else ()))

    def parameters(self, state: MAPPOState) -> Parameters:
        return state.parameters

    # --- parameters and players ----------------------------------------------------------------

    def init(
        self,
        key: PRNGKeyArray,
        streams: Int[Array, " seat"],
        parts: Mapping[str, Any] = MappingProxyType({}),
    ) -> MAPPOState:
        keys = sets.set_keys(self, key, streams)
        return jax.vmap(lambda key: self._init_set(key, streams, parts))(keys)

    def _init_set(
        self, key: PRNGKeyArray, streams: Int[Array, " seat"], parts: Mapping[str, Any]
    ) -> MAPPOState:
        actor_key, critic_key = jax.random.split(key)
        planes, features = self.shape.planes, self.shape.features + self._more_inputs
        actor = self._network(planes, features, self.shape.actions, actor_key, 0.01)
        critic = self._network(*self._critic_shape, 1, critic_key, 1.0)
        parameters = Parameters(actor, critic)
        identity = jnp.eye(self.game_seats)[streams]
        team = jax.random.bits(jax.random.fold_in(key, 1), (1,), jnp.uint32).astype(jnp.int32)
        return MAPPOState(
            parameters,
            self._start_optimisers(parameters),
            value_norm.new_norm(),
            identity,
            team,
            jnp.zeros((), jnp.int32),
        )

    @property
    def _more_inputs(self) -> int:
        """How many inputs the actor has beside the view."""
        return self.game_seats if self._sees_id else 0

    @property
    def _critic_shape(self) -> tuple[tuple[int, int, int], int]:
        """The board and the other numbers that `critic_inputs` gives."""
        shape, sees = self.shape, self.config.critic
        if sees == "own":
            return shape.planes, shape.features
        if sees == "global" and shape.global_state:
            return (0, 0, 0), shape.global_state + self.game_seats
        return shape.planes, shape.features + shape.global_state + self.game_seats

    def _network(
        self,
        planes: tuple[int, int, int],
        features: int,
        outputs: int,
        key: PRNGKeyArray,
        scale: float,
    ) -> LayerNormNetwork:
        config = self.config
        return LayerNormNetwork(
            ViewShape(planes, features, self.shape.actions),
            outputs,
            key=key,
            hidden=config.hidden,
            channels=config.channels if config.network == "cnn" and planes[0] else (),
            activation=config.activation,
            layer_norm=config.layer_norm,
            memory_kind=config.memory,
            units=config.units,
            head_scale=scale,
        )

    def _start_optimisers(self, parameters: Parameters) -> Parameters:
        parts = zip(Parameters._fields, parameters, strict=True)
        return Parameters(*(self._transform(name).init(part) for name, part in parts))

    def _transform(self, part: str) -> optax.GradientTransformation:
        """Clipped Adam of one part without its step size, which may follow the run."""
        return optax.chain(
            optax.clip_by_global_norm(self.config.gradient_clip), optax.scale_by_adam(eps=1e-5)
        )

    def _rate(self, part: str) -> float:
        return self.config.actor_rate if part == "actor" else self.config.critic_rate

    @property
    def _separate(self) -> bool:
        return sets.separate(self)

    @property
    def _sees_id(self) -> bool:
        """Whether actors see their seat's number."""
        return self.config.parameters == "shared+id"

    @property
    def _alike(self) -> bool:
        """Whether all agents have the very same policy."""
        return self.config.parameters == "shared"

    @property
    def _recurrent(self) -> bool:
        """Whether anything has a memory."""
        return self.config.memory != "none"

    def check_rollout(self, steps: int) -> None:
        length = self.config.chunk
        if self._recurrent and length < steps and steps % length:
            raise UserError(f"chunk ({length}) must divide the steps of a rollout ({steps})")

    @property
    def play_config(self) -> PlayConfig:
        """What acting depends on beside the parameters."""
        size = memory_size(self.config.memory, self.config.units)
        return PlayConfig(critic=self.config.critic, sizes=(size, size, 0, 0), recurrent=size > 0)

    @property
    def _rows(self) -> np.ndarray:
        """Which parameter sets the active seats use."""
        return sets.set_rows(self)

    def group(self, state: MAPPOState) -> Group:
        index = np.array(self.active)
        if self._separate:
            parameters, team = jax.tree.map(lambda x: x[self._rows], (state.parameters, state.team))
            identities = state.identity[0, index][:, None]
            return Group(self._player(parameters, identities, team), self.active, False)
        parameters, team = jax.tree.map(lambda x: x[0], (state.parameters, state.team))
        player = self._player(parameters, state.identity[0, index], team)
        return Group(player, self.active, True)

    def player(self, state: MAPPOState, seat: int, greedy: bool = False) -> Player:
        row = self.seats.index(seat) if self._separate else 0
        parameters, team = jax.tree.map(lambda x: x[row], (state.parameters, state.team))
        identities = state.identity[0, seat][None]
        return self._player(parameters._replace(critic=None), identities, team, greedy)

    def _player(
        self,
        parameters: Parameters,
        identities: Float[Array, "*group row seats"],
        team: Int[Array, "*group 1"],
        greedy: bool = False,
    ) -> MAPPOPlayer:
        hyper = parameters.hyper if isinstance(parameters.hyper, Hyper) else None
        critic = parameters.critic if self._recurrent else None
        return MAPPOPlayer(
            parameters.actor,
            critic,
            hyper,
            identities,
            team,
            self.play_config,
            self._sees_id,
            greedy,
        )

    def alone(self, state: MAPPOState, seat: int, at: int) -> tuple["MAPPO", MAPPOState]:
        return sets.alone(self, state, seat, at)

    # --- learning ------------------------------------------------------------------------------

    def training_data(self, game: Game, trajectory: Trajectory) -> UpdateData:
        """The part of its own seats, and the world as their critics are shown it."""
        own = of_seats(trajectory, self.active)
        after = data.remembered(trajectory, self.active)
        if self.config.critic == "own" or game.view_is_global:
            return UpdateData(own, after)
        return UpdateData(own, after, *data.global_states(game, trajectory, self.active))

    def update(
        self,
        key: PRNGKeyArray,
        state: MAPPOState,
        trajectory: UpdateData,
        progress: Float[Array, ""],
    ) -> tuple[MAPPOState, dict[str, Float[Array, " seat"]]]:
        rows, minibatches = self._rows, self.config.minibatches
        learning = jax.tree.map(lambda x: x[rows], state)
        learning, batch, metrics = self._prepared(learning, trajectory)
        left = 1.0 - progress if self.config.schedule == "linear" else jnp.float32(1.0)

        def one_epoch(carry: MAPPOState, key: PRNGKeyArray) -> tuple[MAPPOState, dict]:
            if minibatches == 1:
                carry, terms = sets.over_sets(self._step, (0, 0, None))(carry, batch, left)
                return carry, jax.tree.map(lambda x: x[None], terms)
            order = jax.random.permutation(key, batch.alive.shape[1])

            def one_minibatch(carry: MAPPOState, part: Array) -> tuple[MAPPOState, dict]:
                picked = jax.tree.map(lambda x: x[:, part], batch)
                return sets.over_sets(self._step, (0, 0, None))(carry, picked, left)

            return jax.lax.scan(one_minibatch, carry, order.reshape(minibatches, -1))

        keys = jax.random.split(key, self.config.epochs)
        learning, terms = jax.lax.scan(one_epoch, learning, keys)
        # [epoch, minibatch, set, seat of the set]: what the last pass over the data saw; but the
        # first step must find the policy that acted.
        metrics |= {name: jnp.mean(x[-1], axis=0) for name, x in terms.items()}
        metrics["ratio_error"] = terms["ratio_error"][0, 0]
        metrics |= moved(self, learning, batch)
        state = jax.tree.map(lambda x, new: x.at[rows].set(new), state, learning)
        return state, {name: value.reshape(-1) for name, value in metrics.items()}

    def stages(
        self,
        key: PRNGKeyArray,
        state: MAPPOState,
        trajectory: UpdateData,
        progress: Float[Array, ""],
    ) -> dict[str, Any]:
        learning = jax.tree.map(lambda x: x[self._rows], state)
        learning, batch, _ = self._prepared(learning, trajectory)
        gradients, terms = sets.over_sets(self._gradients)(learning, batch)
        return sets.stages(batch, terms, gradients)

    def first_ratio(self, state: MAPPOState, trajectory: UpdateData) -> Float[Array, " seat"]:
        learning = jax.tree.map(lambda x: x[self._rows], state)
        learning, batch, _ = self._prepared(learning, trajectory)
        terms = sets.over_sets(lambda s, b: self._loss(s.parameters, s, b)[1])(learning, batch)
        return terms["ratio_error"].reshape(-1)

    def _prepared(
        self, learning: MAPPOState, seen: UpdateData
    ) -> tuple[MAPPOState, MAPPOBatch, dict[str, Float[Array, "set seat"]]]:
        """Sets with their statistics brought up to date, samples [set, row, ...] to learn from, and
        what is known before learning."""
        by_set = data.by_seat(seen) if self._separate else jax.tree.map(lambda x: x[None], seen)
        seats = np.array(self.active)
        identity = learning.identity[0, seats]
        identity = identity[:, None] if self._separate else identity[None]
        return sets.over_sets(self._prepare)(learning, by_set, identity)

    def _prepare(
        self, state: MAPPOState, seen: UpdateData, identity: Float[Array, "seat seats"]
    ) -> tuple[MAPPOState, MAPPOBatch, dict[str, Float[Array, " seat"]]]:
        config, trajectory = self.config, seen.trajectory
        batch = self._whole(seen, identity)
        after = jax.tree.map(by_copy, seen.after)
        critic = state.parameters.critic
        generated = self._critic_generated(state.parameters.hyper, after.latent)
        value = critic.shown(batch.critic, after.critic, generated)[..., 0]
        mean, deviation = value_norm.statistics(state.values)

        def following(row: tuple[Observation, Array | None, Array, Array]) -> Array:
            """The value after a step that did not end the episode for the seat."""
            observation, global_state, memory, latent = row
            shown = critic_inputs(config.critic, flatten(observation), global_state, identity)
            generated = self._critic_generated(state.parameters.hyper, latent)
            return critic.step(shown, memory, generated)[0][..., 0] * deviation + mean

        memory, latent = seen.after.critic, seen.after.latent
        rows = (trajectory.final, seen.final, memory, latent)
        final = rows_where(following, jnp.any(trajectory.truncated, axis=-1), rows)
        last = following((trajectory.last, seen.last, memory[-1], latent[-1]))
        real = value * deviation + mean
        advantage = gae(
            trajectory.reward,
            by_copy(real),
            final,
            last,
            trajectory.terminated,
            trajectory.truncated,
            config.discount,
            config.trace,
        )
        target = by_copy(advantage) + real
        metrics = {
            "explained_variance": explained_variance(
                *(x.reshape(-1, x.shape[-1]) for x in (real, target, batch.alive))
            ),
            "value": masked_mean(real, batch.alive, (0, 1)),
        }
        if config.normalise_values:
            values = value_norm.updated(state.values, target, batch.alive, config.value_decay)
            state = state._replace(values=values)
            mean, deviation = value_norm.statistics(values)
        batch = batch._replace(
            value=value,
            advantage=normalise(by_copy(advantage), batch.acting),
            target=(target - mean) / deviation,
        )
        return state, self._pieces(batch, after), metrics

    def _whole(self, seen: UpdateData, identity: Float[Array, "seat seats"]) -> MAPPOBatch:
        """Whole rollouts of game copies, without what the critic makes of them."""
        trajectory = seen.trajectory
        assert trajectory.past is not None
        observation = jax.tree.map(by_copy, trajectory.observation)
        own, alive = flatten(observation), by_copy(trajectory.alive)
        global_state = None if seen.global_state is None else by_copy(seen.global_state)
        ids = jnp.broadcast_to(identity, (*own.shape[:-1], identity.shape[-1]))
        return MAPPOBatch(
            view=jnp.concatenate([own, ids], axis=-1) if self._sees_id else own,
            critic=critic_inputs(self.config.critic, own, global_state, identity),
            context=self._known(own, trajectory, identity),
            legal=observation.legal,
            first=by_copy(trajectory.past.first),
            alive=alive,
            acting=alive & (jnp.sum(observation.legal, axis=-1) > 1),
            action=by_copy(trajectory.action),
            log_policy=by_copy(trajectory.log_policy),
            memory=jax.tree.map(lambda x: x[:, None], trajectory.memory),
        )

    def _pieces(self, batch: MAPPOBatch, after: MAPPOMemory) -> MAPPOBatch:
        """Rollouts cut into pieces that begin with the memories as they were; after: memories after
        each step, [copy, time, seat, ...]."""
        steps, length = batch.alive.shape[1], self.config.chunk
        if not self._recurrent or length >= steps:
            return batch
        self.check_rollout(steps)
        return data.cut(batch, after, length)

    # --- the loss and the steps ------------------------------------------------------------------

    def _policies(
        self, parameters: Parameters, batch: MAPPOBatch, context: Context | None
    ) -> Float[Array, "row time seat action"]:
        """Log-policies of all samples."""
        logits, _ = parameters.actor.unroll(
            self._with_context(batch.view, context),
            batch.memory.actor[:, 0],
            batch.first,
            batch.alive,
            self._generated(parameters.hyper, context),
        )
        return categorical.log_policy(logits, batch.legal)

    def _loss(
        self, parameters: Parameters, state: MAPPOState, batch: MAPPOBatch
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, " seat"]]]:
        """The loss of one parameter set on some samples, and its terms per seat."""
        config = self.config
        context = self._context(parameters.hyper, batch)
        log_policy = self._policies(parameters, batch, context)
        value, _ = parameters.critic.unroll(
            batch.critic,
            batch.memory.critic[:, 0],
            batch.first,
            batch.alive,
            self._critic_generated(parameters.hyper, None if context is None else context.now),
        )
        rest = {"view": None, "critic": None, "context": None, "memory": None}
        flat = jax.tree.map(data.samples, batch._replace(**rest))  # type: ignore[arg-type]
        loss, terms = ppo_loss(
            data.samples(log_policy),
            data.samples(value[..., 0]),
            flat.log_policy,
            flat.value,
            flat.action,
            flat.advantage,
            flat.target,
            flat.alive,
            clip=config.clip,
            value_clip=config.value_clip,
            entropy_weight=config.entropy_weight,
            value_weight=config.value_weight,
            huber=config.huber,
            acting=flat.acting,
        )
        kl = categorical.kl(flat.log_policy, data.samples(log_policy))
        loss = loss + config.align_weight * masked_mean(kl, flat.acting, None)
        penalty, more = self._penalty(parameters, state, batch, context)
        log_ratio = categorical.take(data.samples(log_policy) - flat.log_policy, flat.action)
        error = jnp.abs(jnp.exp(jnp.where(flat.acting, log_ratio, 0.0)) - 1)
        return loss + penalty, terms._asdict() | more | {"ratio_error": jnp.max(error, axis=0)}

    def _gradients(
        self, state: MAPPOState, batch: MAPPOBatch
    ) -> tuple[Parameters, dict[str, Float[Array, " seat"]]]:
        """Gradients of all parts of one parameter set, and the loss's terms per seat."""
        return jax.grad(self._loss, has_aux=True)(state.parameters, state, batch)

    def _step(
        self, state: MAPPOState, batch: MAPPOBatch, left: Float[Array, ""]
    ) -> tuple[MAPPOState, dict[str, Float[Array, " seat"]]]:
        """One gradient step of one parameter set on one minibatch."""
        gradients, terms = self._gradients(state, batch)
        terms["gradient_norm"] = jnp.full(batch.alive.shape[-1], optax.tree.norm(gradients))
        parts, optimisers = [], []
        for name, part, gradient, optimiser in zip(
            Parameters._fields, state.parameters, gradients, state.optimisers, strict=True
        ):
            step, optimiser = self._transform(name).update(gradient, optimiser)
            rate = self._rate(name) * left
            parts.append(jax.tree.map(lambda x, s, rate=rate: x - rate * s, part, step))
            optimisers.append(optimiser)
        state = state._replace(
            parameters=Parameters(*parts),
            optimisers=Parameters(*optimisers),
            steps=state.steps + 1,
        )
        return self._synchronised(state), terms

    def _as_others(
        self, batch: MAPPOBatch, context: Context | None, shift: Int[Array, ""]
    ) -> tuple[MAPPOBatch, Context | None]:
        """What the agent `shift` seats further on would be given in the place of each agent: the
        agent's view with the other's number and context."""
        if self._sees_id:
            seats = self.game_seats
            ids = jnp.roll(batch.view[..., -seats:], -shift, axis=2)
            batch = batch._replace(view=jnp.concatenate([batch.view[..., :-seats], ids], axis=-1))
        return batch, context
