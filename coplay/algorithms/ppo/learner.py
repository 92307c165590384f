"""Independent PPO: every learning seat improves on its own ego views and rewards.

One update, from top to bottom of `PPO.update`: values of all ego views, advantages, several epochs
of shuffled minibatches, the clipped loss, a step of Adam. Seats with separate parameters are the
same program over a leading axis of parameter sets; with shared parameters there is one set.
"""

from typing import Any, NamedTuple

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
from coplay.core.learner import Learner
from coplay.core.numerics import masked_mean
from coplay.core.player import Player
from coplay.core.trajectory import Trajectory, rows_where
from coplay.nn import categorical
from coplay.nn.networks import ViewShape, flatten, network_by
from coplay.rl import parameter_sets as sets
from coplay.rl.advantages import explained_variance, gae, normalise
from coplay.rl.ppo_loss import PPOTerms, ppo_loss

Net = Any  # a `Network`, or what a learner built on this one has in its place


class PPOState(NamedTuple):
    """What learning changes; every array has a leading [parameter set] axis.

    identity: [set, seat of the game, id] which does not change: the stream of each seat, one-hot,
        with `shared+id`, else empty. An identity goes with the stream and not with the position,
        as all that tells seats apart does.
    """

    actor: Net
    critic: Net
    actor_optimiser: optax.OptState
    critic_optimiser: optax.OptState
    identity: Float[Array, "*set seat id"]


class PPOBatch(NamedTuple):
    """Samples of one parameter set, [copy, time, seat of the set, ...].

    A minibatch is made of whole game copies: shuffling those is cheap, and their rows lie together
    in memory. `view` are the flattened ego views. `past`: what a recurrent network needs besides;
    what has no time has a time axis of length 1.
    """

    view: Float[Array, "copy time seat inputs"]
    legal: Bool[Array, "copy time seat action"]
    alive: Bool[Array, "copy time seat"]
    action: Int[Array, "copy time seat"]
    log_policy: Float[Array, "copy time seat action"]
    value: Float[Array, "copy time seat"]
    advantage: Float[Array, "copy time seat"]
    target: Float[Array, "copy time seat"]
    past: Any = ()


class PPO(Learner):
    """Independent PPO; see the module docstring."""

    config: PPOConfig = eqx.field(static=True)
    shape: ViewShape
    game_seats: int = eqx.field(static=True)
    seats: tuple[int, ...] = eqx.field(static=True)
    active: tuple[int, ...] = eqx.field(static=True)

    @property
    def declared_inputs(self) -> tuple[str, ...]:
        return ("view", "identity") if self.config.parameters == "shared+id" else ("view",)

    # --- parameters and players ----------------------------------------------------------------

    def init(self, key: PRNGKeyArray, streams: Int[Array, " seat"], parts: Any = None) -> PPOState:
        keys = sets.set_keys(self, key, streams)
        return jax.vmap(self._init_set, (0, None))(keys, streams)

    def _init_set(self, key: PRNGKeyArray, streams: Int[Array, " seat"]) -> PPOState:
        actor_key, critic_key = jax.random.split(key)
        shape = ViewShape(self.shape.planes, self.shape.features + self._ids, self.shape.actions)
        actor = self._network(shape, self.shape.actions, actor_key, 0.01)
        critic = self._network(shape, 1, critic_key, 1.0)
        identity = jnp.eye(self.game_seats, self._ids)[streams]
        start = self._optimiser.init
        return PPOState(actor, critic, start(actor), start(critic), identity)

    def _network(self, shape: ViewShape, outputs: int, key: PRNGKeyArray, head_scale: float) -> Net:
        return network_by(self.config, shape, outputs, key, head_scale)

    @property
    def _optimiser(self) -> optax.GradientTransformation:
        """Clipped Adam without the learning rate, which follows the progress of the run."""
        return optax.chain(
            optax.clip_by_global_norm(self.config.gradient_clip), optax.scale_by_adam(eps=1e-5)
        )

    @property
    def _ids(self) -> int:
        """How many inputs tell the seats apart."""
        return self.game_seats if self.config.parameters == "shared+id" else 0

    @property
    def _rows(self) -> np.ndarray:
        """Which parameter sets the active seats use."""
        return sets.set_rows(self)

    def group(self, state: PPOState) -> Group:
        identity = state.identity[0, np.array(self.active)]
        if self.config.parameters == "shared":
            actor, critic = jax.tree.map(lambda x: x[0], (state.actor, state.critic))
            return Group(self._player(actor, identity[0], False, critic), self.active, True)
        rows = (
            self._rows if self.config.parameters == "separate" else np.zeros(len(self.active), int)
        )
        actor, critic = jax.tree.map(lambda x: x[rows], (state.actor, state.critic))
        return Group(self._player(actor, identity, False, critic), self.active, False)

    def player(self, state: PPOState, seat: int, greedy: bool = False) -> Player:
        row = self.seats.index(seat) if self.config.parameters == "separate" else 0
        actor = jax.tree.map(lambda x: x[row], state.actor)
        return self._player(actor, state.identity[0, seat], greedy)

    def _player(
        self, actor: Net, identity: Float[Array, "*seat id"], greedy: bool, critic: Net = None
    ) -> Player:
        """A player; with the critic while it learns."""
        return PPOPlayer(actor, identity, greedy)

    def alone(self, state: PPOState, seat: int, at: int) -> tuple["PPO", PPOState]:
        return sets.alone(self, state, seat, at)

    # --- learning ------------------------------------------------------------------------------

    def update(
        self,
        key: PRNGKeyArray,
        state: PPOState,
        trajectory: Trajectory,
        progress: Float[Array, ""],
    ) -> tuple[PPOState, dict[str, Float[Array, " seat"]]]:
        learning, batch = self._prepare(state, trajectory)
        return self._improve(key, state, learning, batch, progress)

    def _improve(
        self,
        key: PRNGKeyArray,
        state: PPOState,
        learning: PPOState,
        batch: PPOBatch,
        progress: Float[Array, ""],
    ) -> tuple[PPOState, dict[str, Float[Array, " seat"]]]:
        """Learn from what `_prepare` gave."""
        rate = self.config.learning_rate * (
            1.0 - progress if self.config.schedule == "linear" else 1.0
        )

        def one_epoch(carry: PPOState, key: PRNGKeyArray) -> tuple[PPOState, tuple]:
            order = jax.random.permutation(key, batch.alive.shape[1])
            parts = order.reshape(self.config.minibatches, -1)

            def one_minibatch(carry: PPOState, part: Array) -> tuple[PPOState, tuple]:
                picked = jax.tree.map(lambda x: x[:, part], batch)
                return jax.vmap(self._step, in_axes=(0, 0, None))(carry, picked, rate)

            return jax.lax.scan(one_minibatch, carry, parts)

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
        rows = self._rows
        state = jax.tree.map(lambda x, new: x.at[rows].set(new), state, learning)
        return state, {name: value.reshape(-1) for name, value in metrics.items()}

    def stages(
        self,
        key: PRNGKeyArray,
        state: PPOState,
        trajectory: Trajectory,
        progress: Float[Array, ""],
    ) -> dict[str, Any]:
        learning, batch = self._prepare(state, trajectory)
        gradients, terms = jax.vmap(self._gradients)(learning, batch)
        return sets.stages(batch, terms, gradients)

    def first_ratio(self, state: PPOState, trajectory: Trajectory) -> Float[Array, " seat"]:
        learning, batch = self._prepare(state, trajectory)
        networks = (learning.actor, learning.critic)
        logits, _ = jax.vmap(self._outputs)(networks, batch)
        new = categorical.log_policy(logits.reshape(batch.legal.shape), batch.legal)
        log_ratio = categorical.take(new - batch.log_policy, batch.action)
        error = jnp.abs(jnp.exp(jnp.where(batch.alive, log_ratio, 0.0)) - 1)
        return jnp.max(error, axis=(1, 2)).reshape(-1)

    def _prepare(self, state: PPOState, trajectory: Trajectory) -> tuple[PPOState, PPOBatch]:
        """The parameter sets of the active seats and their samples, [set, ...]."""
        rows = self._rows
        learning = jax.tree.map(lambda x: x[rows], state)
        by_set = self._by_set(trajectory)
        # A set of its own for each seat has no identities: any seat's are the same empty row.
        seats = np.array(self.active[: by_set.alive.shape[-1]])
        return learning, jax.vmap(self._batch)(learning.critic, by_set, learning.identity[:, seats])

    def _by_set(self, trajectory: Trajectory) -> Trajectory:
        """The trajectory as [set, time, copy, seat of the set, ...]."""
        if self.config.parameters != "separate":
            return jax.tree.map(lambda x: x[None], trajectory)
        over = jnp.broadcast_to(trajectory.over, (len(self.active), *trajectory.over.shape))
        last, memory = jax.tree.map(
            lambda x: jnp.moveaxis(x, 1, 0)[:, :, None], (trajectory.last, trajectory.memory)
        )
        rest = trajectory._replace(over=None, last=None, memory=None)  # type: ignore[arg-type]
        rest = jax.tree.map(lambda x: jnp.moveaxis(x, 2, 0)[:, :, :, None], rest)
        return rest._replace(over=over, last=last, memory=memory)

    def _batch(
        self, critic: Net, trajectory: Trajectory, identity: Float[Array, "seat id"]
    ) -> PPOBatch:
        """Values, advantages and targets of one set's trajectory."""
        view, past, value, final, last = self._values(critic, trajectory, identity)
        advantage = gae(
            trajectory.reward,
            by_copy(value),
            final,
            last,
            trajectory.terminated,
            trajectory.truncated,
            self.config.discount,
            self.config.trace,
        )
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

    def _values(
        self, critic: Net, trajectory: Trajectory, identity: Float[Array, "seat id"]
    ) -> tuple[
        Float[Array, "copy time seat inputs"],
        Any,
        Float[Array, "copy time seat"],
        Float[Array, "time copy seat"],
        Float[Array, "copy seat"],
    ]:
        """What the networks are given (`PPOBatch.view` and `PPOBatch.past`), and the values of
        that, of
        the final views where an episode was cut, and of the last views."""

        def value(observation: Observation) -> Array:
            return critic(flatten(observation, identity))[..., 0]

        # Turned round while the planes are still single bytes, then written once as floats.
        view = flatten(jax.tree.map(by_copy, trajectory.observation), identity)
        final = rows_where(value, jnp.any(trajectory.truncated, axis=-1), trajectory.final)
        return view, (), critic(view)[..., 0], final, value(trajectory.last)

    def _gradients(self, state: PPOState, batch: PPOBatch) -> tuple[tuple[Net, Net], PPOTerms]:
        """Gradients of actor and critic of one parameter set on some samples."""

        def loss(networks: tuple[Net, Net]) -> tuple[Float[Array, ""], PPOTerms]:
            return self._loss(self._outputs(networks, batch), batch)

        return jax.grad(loss, has_aux=True)((state.actor, state.critic))

    def _terms(
        self, state: PPOState, batch: PPOBatch, masks: Bool[Array, "part copy time seat"]
    ) -> PPOTerms:
        """The terms of the loss on several parts of the samples, [part, seat of the set]."""
        outputs = self._outputs((state.actor, state.critic), batch)
        return jax.vmap(lambda mask: self._loss(outputs, batch._replace(alive=mask))[1])(masks)

    def _loss(
        self,
        outputs: tuple[Float[Array, "*sample action"], Float[Array, "*sample 1"]],
        batch: PPOBatch,
    ) -> tuple[Float[Array, ""], PPOTerms]:
        """The loss of logits and values of all samples."""
        config = self.config
        seats = batch.alive.shape[-1]
        rest = batch._replace(view=None, past=())  # type: ignore[arg-type]
        old = jax.tree.map(_samples_of_one, rest)
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

    def _outputs(
        self, networks: tuple[Net, Net], batch: PPOBatch
    ) -> tuple[Float[Array, "*sample action"], Float[Array, "*sample 1"]]:
        """Logits and values of all samples, in their order."""
        actor, critic = networks
        view = batch.view.reshape(-1, batch.view.shape[-1])
        return actor(view), critic(view)

    def _step(
        self, state: PPOState, batch: PPOBatch, rate: Float[Array, ""] | float
    ) -> tuple[PPOState, tuple[PPOTerms, Float[Array, ""]]]:
        """One gradient step of one parameter set on one minibatch."""
        (actor_gradient, critic_gradient), terms = self._gradients(state, batch)
        norm = optax.tree.norm((actor_gradient, critic_gradient))
        actor, actor_optimiser = self._apply(
            state.actor, actor_gradient, state.actor_optimiser, rate
        )
        critic, critic_optimiser = self._apply(
            state.critic, critic_gradient, state.critic_optimiser, rate
        )
        state = PPOState(actor, critic, actor_optimiser, critic_optimiser, state.identity)
        return state, (terms, norm)

    def _apply(
        self,
        network: Net,
        gradient: Net,
        optimiser: optax.OptState,
        rate: Float[Array, ""] | float,
    ) -> tuple[Net, optax.OptState]:
        step, optimiser = self._optimiser.update(gradient, optimiser)
        return jax.tree.map(lambda x, s: x - rate * s, network, step), optimiser


def by_copy(x: Shaped[Array, "time copy *rest"]) -> Shaped[Array, "copy time *rest"]:
    """A trajectory's array with the game copies first, as a `PPOBatch` has them."""
    return jnp.swapaxes(x, 0, 1)


def _samples(x: Shaped[Array, "set copy time *rest"]) -> Shaped[Array, "set sample *rest"]:
    return x.reshape(x.shape[0], -1, *x.shape[3:])


def _samples_of_one(x: Shaped[Array, "copy time *rest"]) -> Shaped[Array, "sample *rest"]:
    return x.reshape(-1, *x.shape[2:])
