"""MAPPO: PPO for teams, with actors that see their own views and a critic that may see all.

One update, from top to bottom of `MAPPO.update`: values of all that was seen (normalised by running
statistics), advantages, chunks of the rollout that begin with the memories as they were and hold
all seats together, several epochs of shuffled minibatches of such chunks, the clipped losses, a
step of the optimiser for the actor and one for the critic. A parameter set is one for all seats
(with or without their numbers as inputs) or one for each; either way it is the same program over a
leading axis of sets.

HyperMAPPO is the same learner with a `Hypernetwork`, which makes contexts that change the actor's
weights; MAPPO has None.
"""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from coplay.algorithms.mappo import data
from coplay.algorithms.mappo.config import MAPPOConfig
from coplay.algorithms.mappo.data import Context, MAPPOBatch, MAPPOData, MAPPOState, Parameters
from coplay.algorithms.mappo.diagnostics import moved
from coplay.algorithms.mappo.hypernetwork import Hypernetwork
from coplay.algorithms.mappo.player import (
    MAPPOMemory,
    MAPPOPlayer,
    PlayConfig,
    actor_inputs,
    critic_inputs,
    critic_shape,
)
from coplay.core.errors import UserError
from coplay.core.game import Game, Observation
from coplay.core.group import Group
from coplay.core.numerics import masked_mean
from coplay.core.player import Player
from coplay.core.trajectory import Trajectory, of_seats, rows_where
from coplay.nn import categorical
from coplay.nn.generated_weights import Generated
from coplay.nn.layer_norm import LayerNormNetwork
from coplay.nn.networks import ViewShape, flatten
from coplay.nn.recurrent_cells import memory_size
from coplay.rl import parameter_sets as sets
from coplay.rl import value_norm
from coplay.rl.advantages import explained_variance, normalise, trajectory_gae
from coplay.rl.minibatches import as_samples, by_copy, shuffled_pass
from coplay.rl.optimisers import OptimiserConfig, learning_rate, make_transform, take_step
from coplay.rl.ppo_loss import ppo_loss


class MAPPO(sets.SetLearner):
    """See the module docstring."""

    config: MAPPOConfig = eqx.field(static=True)
    meets_partners = True
    training_only = ("optimisers",)

    @property
    def hypernetwork(self) -> Hypernetwork | None:
        """What makes the contexts of the actor's weights; None: nothing does."""
        return None

    @property
    def declared_inputs(self) -> tuple[str, ...]:
        sees_id = ("identity",) if self.config.parameters in ("shared+id", "separate") else ()
        memory = ("memory",) if self.config.memory.kind != "none" else ()
        told = ("last_action", "last_reward") if self.config.memory.told else ()
        hyper = () if self.hypernetwork is None else self.hypernetwork.declared_inputs
        return tuple(dict.fromkeys(("view", *sees_id, *memory, *told, *hyper)))

    @property
    def declared_data(self) -> tuple[str, ...]:
        global_state = self.shape.global_state and self.config.critic_input != "own"
        return (".trajectory.reward", *((".global_state",) if global_state else ()))

    def parameters(self, state: MAPPOState) -> Parameters:
        return state.parameters

    def _acting(self, state: MAPPOState) -> Parameters:
        """The parameters that act."""
        return state.parameters if self.hypernetwork is None else self.hypernetwork.acting(state)

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
        seen = self.shape.with_more(self._more_inputs)
        actor = self._network(seen, self.shape.actions, actor_key, 0.01)
        shown = critic_shape(self.config.critic_input, self.shape, self.game_seats)
        critic = self._network(shown, 1, critic_key, 1.0)
        hyper: Any = ()
        if self.hypernetwork is not None:
            hyper_key = jax.random.fold_in(key, 2)
            hyper = self.hypernetwork.new_weights(hyper_key, actor, critic, parts)
        parameters = Parameters(actor, critic, hyper)
        start = (
            make_transform(self.optimiser(name)).init(part)
            for name, part in zip(Parameters._fields, parameters, strict=True)
        )
        team = jax.random.bits(jax.random.fold_in(key, 1), (1,), jnp.uint32).astype(jnp.int32)
        return MAPPOState(
            parameters,
            Parameters(*start),
            value_norm.new_norm(),
            jnp.eye(self.game_seats)[streams],
            team,
            jnp.zeros((), jnp.int32),
            hyper if self.hypernetwork is not None and self.hypernetwork.anchored else (),
        )

    @property
    def _more_inputs(self) -> int:
        """How many inputs the actor has beside the view."""
        latent = 0 if self.hypernetwork is None else self.hypernetwork.actor_features
        told = self.shape.actions + 2 if self.config.memory.told else 0
        return (self.game_seats if self._sees_id else 0) + latent + told

    def _network(
        self, shape: ViewShape, outputs: int, key: PRNGKeyArray, scale: float
    ) -> LayerNormNetwork:
        network, memory = self.config.network, self.config.memory
        return LayerNormNetwork(
            shape,
            outputs,
            key=key,
            hidden=network.hidden,
            channels=network.convolutions if shape.planes[0] else (),
            set_width=network.set_width if shape.entities else 0,
            activation=network.activation,
            layer_norm=network.layer_norm,
            memory_kind=memory.kind,
            units=memory.units,
            head_scale=scale,
        )

    def optimiser(self, part: str) -> OptimiserConfig:
        """How a part of the parameters is optimised."""
        config = self.config
        if part == "hyper" and self.hypernetwork is not None:
            return self.hypernetwork.optimiser
        if part == "critic" and config.critic_learning_rate is not None:
            return dataclasses.replace(config.optimiser, learning_rate=config.critic_learning_rate)
        return config.optimiser

    @property
    def _sees_id(self) -> bool:
        """Whether actors see their seat's number."""
        return self.config.parameters == "shared+id"

    @property
    def alike(self) -> bool:
        """Whether all agents have the very same policy."""
        hyper = self.hypernetwork
        return self.config.parameters == "shared" or (hyper is not None and hyper.alike)

    @property
    def _recurrent(self) -> bool:
        """Whether anything has a memory."""
        return self.hypernetwork is not None or self.config.memory.kind != "none"

    def check_rollout(self, steps: int) -> None:
        length = self.config.memory.chunk_length
        if self._recurrent and length < steps and steps % length:
            raise UserError(
                f"memory.chunk_length ({length}) must divide the steps of a rollout ({steps})"
            )

    @property
    def play_config(self) -> PlayConfig:
        """What acting depends on beside the parameters."""
        size = memory_size(self.config.memory.kind, self.config.memory.units)
        sizes, sees = (size, size, 0, 0), self.config.critic_input
        plain = PlayConfig(sees, sizes, recurrent=size > 0, told=self.config.memory.told)
        return plain if self.hypernetwork is None else self.hypernetwork.play_config(plain)

    def group(self, state: MAPPOState) -> Group:
        index = np.array(self.active)
        config = self.play_config._replace(perturbation=self.config.perturbation)
        if self.separate:
            parameters, team = jax.tree.map(
                lambda x: x[self.set_rows], (self._acting(state), state.team)
            )
            identities = state.identity[0, index][:, None]
            return Group(self._player(parameters, identities, team, config), self.active, False)
        parameters, team = jax.tree.map(lambda x: x[0], (self._acting(state), state.team))
        player = self._player(parameters, state.identity[0, index], team, config)
        return Group(player, self.active, True)

    def player(self, state: MAPPOState, seat: int, greedy: bool = False) -> Player:
        row = self.seats.index(seat) if self.separate else 0
        parameters, team = jax.tree.map(lambda x: x[row], (self._acting(state), state.team))
        identities = state.identity[0, seat][None]
        parts = (parameters._replace(critic=None), identities, team)
        return self._player(*parts, self.play_config, greedy)

    def _player(
        self,
        parameters: Parameters,
        identities: Float[Array, "*group row seats"],
        team: Int[Array, "*group 1"],
        config: PlayConfig,
        greedy: bool = False,
    ) -> MAPPOPlayer:
        hyper = None if self.hypernetwork is None else parameters.hyper
        critic = parameters.critic if self._recurrent else None
        return MAPPOPlayer(
            parameters.actor,
            critic,
            hyper,
            identities,
            team,
            config,
            self._sees_id,
            greedy,
        )

    # --- learning ------------------------------------------------------------------------------

    def training_data(self, game: Game, trajectory: Trajectory) -> MAPPOData:
        """The part of its own seats, and the world as their critics are shown it."""
        own = of_seats(trajectory, self.active)
        after = data.remembered(trajectory, self.active)
        if self.config.critic_input == "own" or game.view_is_global:
            return MAPPOData(own, after)
        return MAPPOData(own, after, *data.global_states(game, trajectory, self.active))

    def update(
        self,
        key: PRNGKeyArray,
        state: MAPPOState,
        trajectory: MAPPOData,
        progress: Float[Array, ""],
    ) -> tuple[MAPPOState, dict[str, Float[Array, " seat"]]]:
        minibatches = self.config.minibatches
        learning, batch, metrics = self.prepare(self.active_sets(state), trajectory)

        def one_minibatch(carry: MAPPOState, picked: MAPPOBatch) -> tuple[MAPPOState, dict]:
            return sets.over_sets(self._step, (0, 0, None))(carry, picked, progress)

        def one_epoch(carry: MAPPOState, key: PRNGKeyArray) -> tuple[MAPPOState, dict]:
            if minibatches == 1:
                carry, terms = one_minibatch(carry, batch)
                return carry, jax.tree.map(lambda x: x[None], terms)
            rows = batch.alive.shape[1]
            return shuffled_pass(one_minibatch, carry, batch, key, rows, minibatches)

        keys = jax.random.split(key, self.config.epochs)
        learning, terms = jax.lax.scan(one_epoch, learning, keys)
        # [epoch, minibatch, set, seat of the set]: what the last pass over the data saw; but the
        # first step must find the policy that acted.
        metrics |= {name: jnp.mean(x[-1], axis=0) for name, x in terms.items()}
        metrics["ratio_error"] = terms["ratio_error"][0, 0]
        metrics |= moved(self, learning, batch)
        state = self.with_active_sets(state, learning)
        return state, {name: value.reshape(-1) for name, value in metrics.items()}

    def stages(
        self,
        key: PRNGKeyArray,
        state: MAPPOState,
        trajectory: MAPPOData,
        progress: Float[Array, ""],
    ) -> dict[str, Any]:
        learning, batch, _ = self.prepare(self.active_sets(state), trajectory)
        gradients, terms = sets.over_sets(self.gradients)(learning, batch)
        return sets.stages(batch, terms, gradients)

    def first_ratio(self, state: MAPPOState, trajectory: MAPPOData) -> Float[Array, " seat"]:
        learning, batch, _ = self.prepare(self.active_sets(state), trajectory)
        terms = sets.over_sets(lambda s, b: self._loss(self._acting(s), s, b)[1])(learning, batch)
        return terms["ratio_error"].reshape(-1)

    def prepare(
        self, learning: MAPPOState, seen: MAPPOData
    ) -> tuple[MAPPOState, MAPPOBatch, dict[str, Float[Array, "set seat"]]]:
        """Sets with their statistics brought up to date, samples [set, row, ...] to learn from, and
        what is known before learning."""
        seen = data.team_rewarded(seen) if self.config.rewards == "team" else seen
        by_set = data.by_seat(seen) if self.separate else jax.tree.map(lambda x: x[None], seen)
        identity = learning.identity[0, np.array(self.active)]
        identity = identity[:, None] if self.separate else identity[None]
        return sets.over_sets(self._prepare_set)(learning, by_set, identity)

    def _prepare_set(
        self, state: MAPPOState, seen: MAPPOData, identity: Float[Array, "seat seats"]
    ) -> tuple[MAPPOState, MAPPOBatch, dict[str, Float[Array, " seat"]]]:
        config, trajectory = self.config, seen.trajectory
        batch = self._whole(seen, identity)
        after = jax.tree.map(by_copy, seen.after)
        critic = state.parameters.critic
        generated = self._critic_generated(state.parameters, after.latent)
        value = critic.shown(batch.critic, after.critic, generated)[..., 0]
        mean, deviation = value_norm.statistics(state.values)

        def following(row: tuple[Observation, Array | None, Array, Array]) -> Array:
            """The value after a step that did not end the episode for the seat."""
            observation, global_state, memory, latent = row
            shown = critic_inputs(config.critic_input, flatten(observation), global_state, identity)
            generated = self._critic_generated(state.parameters, latent)
            return critic.step(shown, memory, generated)[0][..., 0] * deviation + mean

        memory, latent = seen.after.critic, seen.after.latent
        rows = (trajectory.final, seen.final, memory, latent)
        final = rows_where(following, jnp.any(trajectory.truncated, axis=-1), rows)
        last = following((trajectory.last, seen.last, memory[-1], latent[-1]))
        real = value * deviation + mean
        advantage = trajectory_gae(
            trajectory, by_copy(real), final, last, config.discount, config.gae_lambda
        )
        target = by_copy(advantage) + real
        metrics = {
            "explained_variance": explained_variance(
                *(x.reshape(-1, x.shape[-1]) for x in (real, target, batch.alive))
            ),
            "value": masked_mean(real, batch.alive, (0, 1)),
        }
        if config.value_norm:
            values = value_norm.updated(state.values, target, batch.alive)
            state = state._replace(values=values)
            mean, deviation = value_norm.statistics(values)
        batch = batch._replace(
            value=value,
            advantage=normalise(by_copy(advantage), batch.acting),
            target=(target - mean) / deviation,
        )
        return state, self._chunks(batch, after), metrics

    def _whole(self, seen: MAPPOData, identity: Float[Array, "seat seats"]) -> MAPPOBatch:
        """Whole rollouts of game copies, without what the critic makes of them."""
        trajectory, hyper = seen.trajectory, self.hypernetwork
        assert trajectory.past is not None
        observation = jax.tree.map(by_copy, trajectory.observation)
        own, alive = flatten(observation), by_copy(trajectory.alive)
        global_state = None if seen.global_state is None else by_copy(seen.global_state)
        first, action, reward = (by_copy(x) for x in trajectory.past)
        ids, told = identity if self._sees_id else None, self.config.memory.told
        return MAPPOBatch(
            view=actor_inputs(own, first, action, reward, ids, self.shape.actions, told),
            critic=critic_inputs(self.config.critic_input, own, global_state, identity),
            context=own[..., :0] if hyper is None else hyper.inputs(own, trajectory, identity),
            legal=observation.legal,
            first=first,
            alive=alive,
            acting=alive & (jnp.sum(observation.legal, axis=-1) > 1),
            action=by_copy(trajectory.action),
            log_policy=by_copy(trajectory.log_policy),
            memory=jax.tree.map(lambda x: x[:, None], trajectory.memory),
        )

    def _chunks(self, batch: MAPPOBatch, after: MAPPOMemory) -> MAPPOBatch:
        """Rollouts cut into chunks that begin with the memories as they were; after: memories after
        each step, [copy, time, seat, ...]."""
        steps, length = batch.alive.shape[1], self.config.memory.chunk_length
        if not self._recurrent or length >= steps:
            return batch
        self.check_rollout(steps)
        return data.cut(batch, after, length)

    # --- the loss and the steps ------------------------------------------------------------------

    def contexts(self, parameters: Parameters, batch: MAPPOBatch) -> Context | None:
        """The contexts of all samples."""
        hyper = self.hypernetwork
        return None if hyper is None else hyper.contexts(parameters.hyper, batch)

    def _critic_generated(
        self, parameters: Parameters, latent: Float[Array, "*sample latent"]
    ) -> Generated | None:
        """What contexts change in the critic."""
        hyper = self.hypernetwork
        return None if hyper is None else hyper.critic_generated(parameters.hyper, latent)

    def policies(
        self, parameters: Parameters, batch: MAPPOBatch, context: Context | None
    ) -> Float[Array, "row time seat action"]:
        """Log-policies of all samples, as agents act while training."""
        view, generated, hyper = batch.view, None, self.hypernetwork
        if hyper is not None and context is not None:
            view = hyper.actor_inputs(view, context)
            generated = hyper.generated(parameters.hyper, context)
        logits, _ = parameters.actor.unroll(
            view, batch.memory.actor[:, 0], batch.first, batch.alive, generated
        )
        log_policy = categorical.log_policy(logits, batch.legal)
        share = self.config.perturbation
        return categorical.mixed(log_policy, batch.legal, share) if share else log_policy

    def _loss(
        self, parameters: Parameters, state: MAPPOState, batch: MAPPOBatch
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, " seat"]]]:
        """The loss of one parameter set on some samples, and its terms per seat."""
        config, hyper = self.config, self.hypernetwork
        context = self.contexts(parameters, batch)
        log_policy = self.policies(parameters, batch, context)
        value, _ = parameters.critic.unroll(
            batch.critic,
            batch.memory.critic[:, 0],
            batch.first,
            batch.alive,
            None if context is None else self._critic_generated(parameters, context.now),
        )
        rest = {"view": None, "critic": None, "context": None, "memory": None}
        flat = jax.tree.map(as_samples, batch._replace(**rest))  # type: ignore[arg-type]
        loss, terms = ppo_loss(
            as_samples(log_policy),
            as_samples(value[..., 0]),
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
        kl = categorical.kl(flat.log_policy, as_samples(log_policy))
        loss = loss + config.align_weight * masked_mean(kl, flat.acting, None)
        all_terms = terms._asdict()
        if hyper is not None and context is not None:
            penalty, more = hyper.penalty(parameters, state, batch, context)
            loss, all_terms = loss + penalty, all_terms | more
        log_ratio = categorical.take(as_samples(log_policy) - flat.log_policy, flat.action)
        error = jnp.abs(jnp.exp(jnp.where(flat.acting, log_ratio, 0.0)) - 1)
        return loss, all_terms | {"ratio_error": jnp.max(error, axis=0)}

    def gradients(
        self, state: MAPPOState, batch: MAPPOBatch
    ) -> tuple[Parameters, dict[str, Float[Array, " seat"]]]:
        """Gradients of all parts of one parameter set, and the loss's terms per seat."""
        return jax.grad(self._loss, has_aux=True)(state.parameters, state, batch)

    def _step(
        self, state: MAPPOState, batch: MAPPOBatch, progress: Float[Array, ""]
    ) -> tuple[MAPPOState, dict[str, Float[Array, " seat"]]]:
        """One gradient step of one parameter set on one minibatch."""
        gradients, terms = self.gradients(state, batch)
        terms["gradient_norm"] = jnp.full(batch.alive.shape[-1], optax.tree.norm(gradients))
        parts, optimisers = [], []
        for name, part, gradient, optimiser in zip(
            Parameters._fields, state.parameters, gradients, state.optimisers, strict=True
        ):
            config = self.optimiser(name)
            rate = learning_rate(config, progress)
            part, optimiser = take_step(config, part, gradient, optimiser, rate)
            parts.append(part)
            optimisers.append(optimiser)
        state = state._replace(
            parameters=Parameters(*parts),
            optimisers=Parameters(*optimisers),
            steps=state.steps + 1,
        )
        return state if self.hypernetwork is None else self.hypernetwork.synchronised(state), terms

    # --- what the measurements of an update ask --------------------------------------------------

    def as_others(
        self, batch: MAPPOBatch, context: Context | None, shift: Int[Array, ""]
    ) -> tuple[MAPPOBatch, Context | None]:
        """Each agent's view with number and context of the agent `shift` seats further on."""
        if self._sees_id:
            seats = self.game_seats
            ids = jnp.roll(batch.view[..., -seats:], -shift, axis=2)
            batch = batch._replace(view=jnp.concatenate([batch.view[..., :-seats], ids], axis=-1))
        if self.hypernetwork is not None and context is not None:
            context = self.hypernetwork.of_others(context, shift)
        return batch, context

    def increments(
        self, parameters: Parameters, batch: MAPPOBatch, context: Context | None
    ) -> dict[str, Float[Array, " seat"]]:
        """See `Hypernetwork.increments`; empty without a hypernetwork."""
        if self.hypernetwork is None or context is None:
            return {}
        return self.hypernetwork.increments(parameters, batch, context)
