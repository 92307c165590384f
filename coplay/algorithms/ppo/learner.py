"""Independent PPO: every learning seat improves on its own ego views and rewards.

One update, from top to bottom of `PPO.update`: values of all ego views, advantages, several epochs
of shuffled minibatches, the clipped loss, a step of the optimiser. Seats with separate parameters
are the same program over a leading axis of parameter sets; with shared parameters there is one set.

Learners built on PPO have other networks and players (`new_network`, `new_player`), give them other
inputs (`values`, `outputs`), weigh rewards in other ways (`advantages`), learn a model besides
(`PPOState.model`), or learn from samples of their own (`prepare`, `improve`, `loss_terms`).
"""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from coplay.algorithms.ppo.config import PPOConfig
from coplay.algorithms.ppo.player import PPOPlayer
from coplay.core.game import Observation
from coplay.core.group import Group
from coplay.core.numerics import masked_mean
from coplay.core.player import Player
from coplay.core.trajectory import Trajectory, rows_where
from coplay.nn import categorical
from coplay.nn.networks import ViewShape, make_network, read
from coplay.nn.sparse_views import SparseView
from coplay.rl import parameter_sets as sets
from coplay.rl.advantages import explained_variance, normalise, trajectory_gae
from coplay.rl.minibatches import as_samples, by_copy, shuffled_pass
from coplay.rl.optimisers import learning_rate, make_transform, take_step
from coplay.rl.ppo_loss import PPOTerms, ppo_loss

Net = Any  # a `Network`, or what a learner built on this one has in its place


class PPOState(NamedTuple):
    """What learning changes; every array has a leading [parameter set] axis.

    identity: [set, seat of the game, id] which does not change: the stream of each seat, one-hot,
        with `shared+id`, else empty. An identity goes with the stream and not with the position,
        as all that tells seats apart does.
    model, model_optimiser: what a learner built on this one learns besides; () if nothing.
    """

    actor: Net
    critic: Net
    actor_optimiser: optax.OptState
    critic_optimiser: optax.OptState
    identity: Float[Array, "*set seat id"]
    model: Any = ()
    model_optimiser: Any = ()


class PPOBatch(NamedTuple):
    """Samples of one parameter set, [copy, time, seat of the set, ...].

    A minibatch is made of whole game copies: shuffling those is cheap, and their rows lie together
    in memory. `view`: the ego views as the networks read them (`coplay.nn.networks.read`).
    `past`: what a recurrent network needs besides; what has no time has a time axis of length 1.
    """

    view: Any
    legal: Bool[Array, "copy time seat action"]
    alive: Bool[Array, "copy time seat"]
    action: Int[Array, "copy time seat"]
    log_policy: Float[Array, "copy time seat action"]
    value: Float[Array, "copy time seat"]
    advantage: Float[Array, "copy time seat"]
    target: Float[Array, "copy time seat"]
    past: Any = ()


class PPO(sets.SetLearner):
    """Independent PPO; see the module docstring."""

    config: PPOConfig = eqx.field(static=True)

    meets_partners = True
    training_only: ClassVar[tuple[str, ...]] = (
        "actor_optimiser",
        "critic_optimiser",
        "model_optimiser",
    )

    @property
    def declared_inputs(self) -> tuple[str, ...]:
        return ("view", "identity") if self.config.parameters == "shared+id" else ("view",)

    # --- parameters and players ----------------------------------------------------------------

    def init(self, key: PRNGKeyArray, streams: Int[Array, " seat"], parts: Any = None) -> PPOState:
        keys = sets.set_keys(self, key, streams)
        return jax.vmap(self._init_set, (0, None))(keys, streams)

    def _init_set(self, key: PRNGKeyArray, streams: Int[Array, " seat"]) -> PPOState:
        actor_key, critic_key = jax.random.split(key)
        shape = self.shape.with_more(self._ids)
        actor = self.new_network(shape, self.shape.actions, actor_key, 0.01)
        critic = self.new_network(shape, 1, critic_key, 1.0)
        identity = jnp.eye(self.game_seats, self._ids)[streams]
        start = make_transform(self.config.optimiser).init
        return PPOState(actor, critic, start(actor), start(critic), identity)

    def new_network(
        self, shape: ViewShape, outputs: int, key: PRNGKeyArray, head_scale: float
    ) -> Net:
        """An actor or a critic before learning."""
        return make_network(self.config.network, shape, outputs, key, head_scale)

    @property
    def _ids(self) -> int:
        """How many inputs tell the seats apart."""
        return self.game_seats if self.config.parameters == "shared+id" else 0

    def group(self, state: PPOState) -> Group:
        identity = state.identity[0, np.array(self.active)]
        if self.config.parameters == "shared":
            actor, critic = jax.tree.map(lambda x: x[0], (state.actor, state.critic))
            return Group(self.new_player(actor, identity[0], False, critic), self.active, True)
        rows = self.set_rows if self.separate else np.zeros(len(self.active), int)
        actor, critic = jax.tree.map(lambda x: x[rows], (state.actor, state.critic))
        return Group(self.new_player(actor, identity, False, critic), self.active, False)

    def player(self, state: PPOState, seat: int, greedy: bool = False) -> Player:
        row = self.seats.index(seat) if self.separate else 0
        actor = jax.tree.map(lambda x: x[row], state.actor)
        return self.new_player(actor, state.identity[0, seat], greedy)

    def valued(self, player: Player, state: PPOState, seat: int) -> Player:
        if not isinstance(player, PPOPlayer):
            return player
        row = self.seats.index(seat) if self.separate else 0
        return dataclasses.replace(player, critic=jax.tree.map(lambda x: x[row], state.critic))

    def new_player(
        self, actor: Net, identity: Float[Array, "*seat id"], greedy: bool, critic: Net = None
    ) -> Player:
        """A player; with the critic while it learns."""
        return PPOPlayer(actor, identity, greedy)

    # --- learning ------------------------------------------------------------------------------

    def update(
        self,
        key: PRNGKeyArray,
        state: PPOState,
        trajectory: Any,
        progress: Float[Array, ""],
    ) -> tuple[PPOState, dict[str, Float[Array, " seat"]]]:
        """trajectory: what `training_data` gives; learners built on this one may add to it."""
        learning, batch = self.prepare(state, trajectory)
        return self.improve(key, state, learning, batch, progress)

    def improve(
        self,
        key: PRNGKeyArray,
        state: PPOState,
        learning: PPOState,
        batch: PPOBatch,
        progress: Float[Array, ""],
    ) -> tuple[PPOState, dict[str, Float[Array, " seat"]]]:
        """Learn from what `prepare` gave: the state with its active sets improved, and metrics."""
        rate = learning_rate(self.config.optimiser, progress)

        def one_minibatch(carry: PPOState, picked: PPOBatch) -> tuple[PPOState, tuple]:
            return jax.vmap(self._step, in_axes=(0, 0, None))(carry, picked, rate)

        def one_epoch(carry: PPOState, key: PRNGKeyArray) -> tuple[PPOState, tuple]:
            rows = batch.alive.shape[1]
            return shuffled_pass(one_minibatch, carry, batch, key, rows, self.config.minibatches)

        keys = jax.random.split(key, self.config.epochs)
        learning, (terms, norm) = jax.lax.scan(one_epoch, learning, keys)
        # What the last pass over the data saw, averaged over its minibatches: [set, seat of set].
        terms, norm = jax.tree.map(lambda x: jnp.mean(x[-1], axis=0), (terms, norm))
        metrics = terms._asdict() | {
            "gradient_norm": jnp.broadcast_to(norm[:, None], terms.kl.shape),
            "explained_variance": jax.vmap(explained_variance)(
                *(_samples(x) for x in (batch.value, batch.target, batch.alive))
            ),
            "value": jax.vmap(masked_mean, in_axes=(0, 0, None))(batch.value, batch.alive, (0, 1)),
        }
        state = self.with_active_sets(state, learning)
        return state, {name: value.reshape(-1) for name, value in metrics.items()}

    def stages(
        self, key: PRNGKeyArray, state: PPOState, trajectory: Any, progress: Float[Array, ""]
    ) -> dict[str, Any]:
        learning, batch = self.prepare(state, trajectory)
        gradients, terms = jax.vmap(self.gradients)(learning, batch)
        return sets.stages(batch, terms, gradients)

    def first_ratio(self, state: PPOState, trajectory: Any) -> Float[Array, " seat"]:
        learning, batch = self.prepare(state, trajectory)
        networks = (learning.actor, learning.critic)
        logits, _ = jax.vmap(self.outputs)(networks, batch)
        new = categorical.log_policy(logits.reshape(batch.legal.shape), batch.legal)
        log_ratio = categorical.take(new - batch.log_policy, batch.action)
        error = jnp.abs(jnp.exp(jnp.where(batch.alive, log_ratio, 0.0)) - 1)
        return jnp.max(error, axis=(1, 2)).reshape(-1)

    def prepare(self, state: PPOState, trajectory: Trajectory) -> tuple[PPOState, PPOBatch]:
        """The parameter sets of the active seats and their samples, [set, ...]."""
        learning = self.active_sets(state)
        by_set = (
            sets.by_seat(trajectory)
            if self.separate
            else jax.tree.map(lambda x: x[None], trajectory)
        )
        # A set of its own for each seat has no identities: any seat's are the same empty row.
        seats = np.array(self.active[: by_set.alive.shape[-1]])
        return learning, jax.vmap(self._batch)(learning, by_set, learning.identity[:, seats])

    def _batch(
        self, state: PPOState, trajectory: Trajectory, identity: Float[Array, "seat id"]
    ) -> PPOBatch:
        """Values, advantages and targets of one set's trajectory."""
        view, past, value, final, last = self.values(state, trajectory, identity)
        advantage = self.advantages(trajectory, by_copy(value), final, last)
        return PPOBatch(
            view=view,
            legal=by_copy(trajectory.observation.legal),
            alive=by_copy(trajectory.alive),
            action=by_copy(trajectory.action),
            log_policy=by_copy(trajectory.log_policy),
            value=value,
            advantage=by_copy(normalise(advantage, trajectory.alive)),
            target=by_copy(advantage) + value,
            past=past,
        )

    def advantages(
        self,
        trajectory: Trajectory,
        value: Float[Array, "time copy seat"],
        final: Float[Array, "time copy seat"],
        last: Float[Array, "copy seat"],
    ) -> Float[Array, "time copy seat"]:
        """Advantages of what was done, from the values that `values` gave."""
        config = self.config
        return trajectory_gae(trajectory, value, final, last, config.discount, config.gae_lambda)

    def values(
        self, state: PPOState, trajectory: Trajectory, identity: Float[Array, "seat id"]
    ) -> tuple[
        Any,
        Any,
        Float[Array, "copy time seat"],
        Float[Array, "time copy seat"],
        Float[Array, "copy seat"],
    ]:
        """What the networks are given (`PPOBatch.view` and `PPOBatch.past`), and the values of
        that, of the final views where an episode was cut, and of the last views."""
        critic = state.critic

        def value(seen: Observation | SparseView) -> Array:
            view = read(critic, seen, identity) if isinstance(seen, Observation) else seen
            return critic(view)[..., 0]

        # Of boards only the rows that are needed are written as floats; indices are small already.
        sparse = read(critic, trajectory.final, identity)
        end = sparse if isinstance(sparse, SparseView) else trajectory.final
        # Turned round while planes are still single bytes, then written once as floats.
        view = read(critic, jax.tree.map(by_copy, trajectory.observation), identity)
        final = rows_where(value, jnp.any(trajectory.truncated, axis=-1), end)
        return view, (), critic(view)[..., 0], final, value(trajectory.last)

    def gradients(self, state: PPOState, batch: PPOBatch) -> tuple[tuple[Net, Net], PPOTerms]:
        """Gradients of actor and critic of one parameter set on some samples."""

        def loss(networks: tuple[Net, Net]) -> tuple[Float[Array, ""], PPOTerms]:
            return self._loss(self.outputs(networks, batch), batch)

        return jax.grad(loss, has_aux=True)((state.actor, state.critic))

    def loss_terms(
        self, state: PPOState, batch: PPOBatch, masks: Bool[Array, "part copy time seat"]
    ) -> PPOTerms:
        """The terms of the loss on several parts of the samples, [part, seat of the set]."""
        outputs = self.outputs((state.actor, state.critic), batch)
        return jax.vmap(lambda mask: self._loss(outputs, batch._replace(alive=mask))[1])(masks)

    def _loss(
        self,
        outputs: tuple[Float[Array, "*sample action"], Float[Array, "*sample 1"]],
        batch: PPOBatch,
    ) -> tuple[Float[Array, ""], PPOTerms]:
        """The loss of logits and values of all samples."""
        config = self.config
        seats = batch.alive.shape[-1]
        rest = batch._replace(view=None, past=())
        old = jax.tree.map(as_samples, rest)
        logits, values = outputs
        return ppo_loss(
            categorical.log_policy(logits.reshape(-1, seats, self.shape.actions), old.legal),
            values.reshape(-1, seats),
            old.log_policy,
            old.value,
            old.action,
            old.advantage,
            old.target,
            old.alive,
            clip=config.clip,
            value_clip=config.value_clip,
            entropy_weight=config.entropy_weight,
            value_weight=config.value_weight,
        )

    def outputs(
        self, networks: tuple[Net, Net], batch: PPOBatch
    ) -> tuple[Float[Array, "*sample action"], Float[Array, "*sample 1"]]:
        """Logits and values of all samples, in their order."""
        actor, critic = networks
        view = jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]), batch.view)
        return actor(view), critic(view)

    def _step(
        self, state: PPOState, batch: PPOBatch, rate: Float[Array, ""] | float
    ) -> tuple[PPOState, tuple[PPOTerms, Float[Array, ""]]]:
        """One gradient step of one parameter set on one minibatch."""
        (actor_gradient, critic_gradient), terms = self.gradients(state, batch)
        norm = optax.tree.norm((actor_gradient, critic_gradient))
        optimiser = self.config.optimiser
        actor, actor_optimiser = take_step(
            optimiser, state.actor, actor_gradient, state.actor_optimiser, rate
        )
        critic, critic_optimiser = take_step(
            optimiser, state.critic, critic_gradient, state.critic_optimiser, rate
        )
        state = state._replace(
            actor=actor,
            critic=critic,
            actor_optimiser=actor_optimiser,
            critic_optimiser=critic_optimiser,
        )
        return state, (terms, norm)


def _samples(x: Shaped[Array, "set copy time *rest"]) -> Shaped[Array, "set sample *rest"]:
    return x.reshape(x.shape[0], -1, *x.shape[3:])
