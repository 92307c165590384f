"""PPO whose networks are given an embedding of the player's own history.

A recurrent *encoder* reads what the seat saw, did and got, and gives an embedding in every step. A
feed-forward actor and critic are given the ego view and the embedding. The encoder learns nothing
from the policy's loss: it is trained with a *decoder* on what the others did, which only training
sees (`model_loss`). Learners built on this one say what the decoder is and what is decoded.

One update: embeddings of the rollout by the encoder that acted; the policy learns from them as in
PPO; then encoder and decoder learn from the same rollout.
"""

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.algorithms.ppo.config import EmbeddedPPOConfig
from coplay.algorithms.ppo.learner import PPO, Net, PPOBatch, PPOState
from coplay.algorithms.ppo.recurrent import emptied, inputs
from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.core.group import Group
from coplay.core.player import Memory, Player, View
from coplay.core.trajectory import Trajectory, of_seats, rows_where
from coplay.nn import categorical
from coplay.nn.networks import Network, ViewShape, flatten
from coplay.nn.recurrent import GRUNetwork
from coplay.rl import parameter_sets as sets
from coplay.rl.minibatches import by_copy, shuffled_pass
from coplay.rl.optimisers import learning_rate, make_transform, take_step


class EmbeddedPlayer(Player):
    """Acts by the ego view and an embedding of its history. In a group every array has a leading
    [seat] axis. A player that left the game remembers nothing new until the next episode."""

    actor: Network
    encoder: GRUNetwork
    identity: Float[Array, "*seat id"]
    units: int = eqx.field(static=True)
    keep: bool = eqx.field(static=True)
    greedy: bool = eqx.field(static=True, default=False)

    def start(self, copies: int) -> Memory:
        return jnp.zeros((copies, self.units))

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory]:
        embedding, memory = self.embed(view, memory)
        seen = view.observation
        logits = self.actor(jnp.concatenate([flatten(seen, self.identity), embedding], axis=-1))
        if self.greedy:
            logits = categorical.greedy(logits, seen.legal)
        return logits, memory

    def embed(
        self, view: View, memory: Float[Array, "copy units"]
    ) -> tuple[Float[Array, "copy embedding"], Float[Array, "copy units"]]:
        """The embedding of the history up to now, and the new memory."""
        first = view.time == 0
        if not self.keep:
            memory = jnp.where(first[:, None], 0.0, memory)
        seen, identity = view.observation, self.identity
        x = inputs(seen, identity, first, view.last_action, view.last_reward, self.keep)
        embedding, new = self.encoder.step(x, memory)
        return embedding, jnp.where(view.alive[:, None], new, memory)


class Others(NamedTuple):
    """What the others did in each step, the next seat first; `seat` are the learner's.

    view: their ego views. action: as chosen. alive: they and the seat itself were in the game.
    """

    view: Float[Array, "*batch seat other inputs"]
    action: Int[Array, "*batch seat other"]
    alive: Bool[Array, "*batch seat other"]


class EmbeddedData(NamedTuple):
    """What is learned from: the trajectory of the learner's seats, and what the others did,
    [time, copy, seat, other, ...]: `Others`, or what has its fields."""

    own: Trajectory
    others: Any


class History(NamedTuple):
    """What encoder and decoder learn from, of one parameter set, [copy, time, seat, ...].

    x: what the encoder is given. view: the ego views. cleared: the memory is empty before the step.
    memory: before the first step, with a time axis of length 1. others: `Others`, if asked for.
    """

    x: Float[Array, "copy time seat inputs"]
    view: Float[Array, "copy time seat view"]
    cleared: Bool[Array, "copy time seat"]
    alive: Bool[Array, "copy time seat"]
    memory: Float[Array, "copy 1 seat units"]
    others: Any


class EmbeddedPPO(PPO):
    """See the module docstring. A model is a module with a field `encoder`."""

    config: EmbeddedPPOConfig = eqx.field(static=True)

    play_fields: ClassVar[tuple[str, ...]] = ("memory.keep",)

    # --- what a learner built on this one says -------------------------------------------------

    @property
    def embedding(self) -> int:
        """How many numbers the encoder gives."""
        raise NotImplementedError

    def new_decoder(self, key: PRNGKeyArray) -> Any:
        """A module before learning."""
        raise NotImplementedError

    def model_loss(
        self, model: "HistoryModel", history: History, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, " seat"]]]:
        """The loss of a model, and metrics by seat of the set."""
        raise NotImplementedError

    # --- parameters and players ----------------------------------------------------------------

    @property
    def declared_inputs(self) -> tuple[str, ...]:
        return (*super().declared_inputs, "last_action", "last_reward", "memory")

    @property
    def declared_data(self) -> tuple[str, ...]:
        return (".reward", ".others.action")

    @property
    def view_size(self) -> int:
        """How many numbers an ego view has, without identities."""
        return int(np.prod(self.shape.planes)) + self.shape.features

    def check(self, game: Game) -> None:
        if game.seats < 2:
            raise UserError(f"{type(self).__name__} models others: the game needs two seats")

    def _init_set(self, key: PRNGKeyArray, streams: Int[Array, " seat"]) -> PPOState:
        state = super()._init_set(key, streams)
        encoder_key, decoder_key = jax.random.split(jax.random.fold_in(key, 2))
        ids = state.identity.shape[-1]
        network, shape = self.config.network, self.shape
        encoder = GRUNetwork(
            # The last action, the last reward, and whether an episode begins.
            shape.with_more(ids + shape.actions + 2),
            self.embedding,
            self.config.memory.units,
            key=encoder_key,
            hidden=network.hidden,
            channels=network.convolutions,
            centred=network.kind == "centred",
            set_width=network.set_width,
            activation=network.activation,
            head_scale=1.0,
        )
        model = HistoryModel(encoder, self.new_decoder(decoder_key))
        start = make_transform(self.config.model_optimiser).init
        return state._replace(model=model, model_optimiser=start(model))

    def new_network(
        self, shape: ViewShape, outputs: int, key: PRNGKeyArray, head_scale: float
    ) -> Net:
        return super().new_network(shape.with_more(self.embedding), outputs, key, head_scale)

    def group(self, state: PPOState) -> Group:
        return super().group(_with_encoder(state))

    def player(self, state: PPOState, seat: int, greedy: bool = False) -> Player:
        return super().player(_with_encoder(state), seat, greedy)

    def new_player(
        self, actor: Net, identity: Float[Array, "*seat id"], greedy: bool, critic: Net = None
    ) -> EmbeddedPlayer:
        memory = self.config.memory
        network, encoder = actor
        return EmbeddedPlayer(network, encoder, identity, memory.units, memory.keep, greedy)

    # --- learning ------------------------------------------------------------------------------

    def training_data(self, game: Game, trajectory: Trajectory) -> EmbeddedData:
        seats = trajectory.alive.shape[-1]
        turns = (np.array(self.active)[:, None] + np.arange(1, seats)) % seats
        alive = trajectory.alive[:, :, turns] & trajectory.alive[:, :, np.array(self.active), None]
        others = Others(
            view=flatten(jax.tree.map(lambda x: x[:, :, turns], trajectory.observation)),
            action=trajectory.action[:, :, turns],
            alive=alive,
        )
        return EmbeddedData(of_seats(trajectory, self.active), others)

    def prepare(self, state: PPOState, trajectory: Any) -> tuple[PPOState, PPOBatch]:
        return super().prepare(state, trajectory.own)

    def update(
        self, key: PRNGKeyArray, state: PPOState, trajectory: Any, progress: Float[Array, ""]
    ) -> tuple[PPOState, dict[str, Float[Array, " seat"]]]:
        model_key, key = jax.random.split(key)
        learning, batch = self.prepare(state, trajectory)
        history = self._histories(learning, trajectory)
        learning, fits = self._fit(model_key, learning, history, progress)
        state, metrics = self.improve(key, state, learning, batch, progress)
        return state, metrics | fits

    def values(
        self, state: PPOState, trajectory: Trajectory, identity: Float[Array, "seat id"]
    ) -> tuple[
        Float[Array, "copy time seat inputs"],
        Any,
        Float[Array, "copy time seat"],
        Float[Array, "time copy seat"],
        Float[Array, "copy seat"],
    ]:
        encoder, critic, keep = state.model.encoder, state.critic, self.config.memory.keep
        history = self._history(trajectory, None, identity)
        embeddings, memories = encoder.unroll(
            history.x, history.memory[:, 0], history.cleared, history.alive
        )
        view = jnp.concatenate([flatten_with(history.view, identity), embeddings], axis=-1)

        def following(row: tuple) -> Float[Array, "copy seat"]:
            """The value after a step that did not end the episode for the seat."""
            seen, action, reward, memory = row
            x = inputs(seen, identity, jnp.zeros(action.shape, bool), action, reward, keep)
            embedding = encoder.step(x, memory)[0]
            return critic(jnp.concatenate([flatten(seen, identity), embedding], axis=-1))[..., 0]

        rows = (trajectory.final, trajectory.action, trajectory.reward, by_copy(memories))
        final = rows_where(following, jnp.any(trajectory.truncated, axis=-1), rows)
        last = following((trajectory.last, *(x[-1] for x in rows[1:])))
        return view, (), critic(view)[..., 0], final, last

    def _histories(self, learning: PPOState, data: EmbeddedData) -> History:
        """What the models of the active sets learn from, [set, copy, time, seat of the set, …]."""
        if self.separate:
            own, others = sets.by_seat(data.own), sets.steps_by_seat(data.others)
        else:
            own, others = jax.tree.map(lambda x: x[None], (data.own, data.others))
        seats = np.array(self.active[: own.alive.shape[-1]])
        return jax.vmap(self._history)(own, others, learning.identity[:, seats])

    def _history(
        self, trajectory: Trajectory, others: Any, identity: Float[Array, "seat id"]
    ) -> History:
        past, keep = trajectory.past, self.config.memory.keep
        assert past is not None
        first, action, reward = (by_copy(x) for x in past)
        seen = jax.tree.map(by_copy, trajectory.observation)
        return History(
            x=inputs(seen, identity, first, action, reward, keep),
            view=flatten(seen),
            cleared=emptied(first, action, keep),
            alive=by_copy(trajectory.alive),
            memory=trajectory.memory[:, None],
            others=jax.tree.map(by_copy, others),
        )

    def _fit(
        self, key: PRNGKeyArray, learning: PPOState, history: History, progress: Float[Array, ""]
    ) -> tuple[PPOState, dict[str, Float[Array, " seat"]]]:
        """Encoders and decoders of the active sets after learning, and metrics."""
        config = self.config
        rate = learning_rate(config.model_optimiser, progress)

        def step(state: PPOState, part: History, key: PRNGKeyArray) -> tuple[PPOState, dict]:
            gradient, metrics = jax.grad(self.model_loss, has_aux=True)(state.model, part, key)
            model, optimiser = take_step(
                config.model_optimiser, state.model, gradient, state.model_optimiser, rate
            )
            return state._replace(model=model, model_optimiser=optimiser), metrics

        def one_minibatch(carry: tuple, part: History) -> tuple[tuple, dict]:
            state, key = carry
            key, own = jax.random.split(key)
            state, metrics = jax.vmap(step, (0, 0, None))(state, part, own)
            return (state, key), metrics

        def one_epoch(carry: PPOState, key: PRNGKeyArray) -> tuple[PPOState, dict]:
            order_key, key = jax.random.split(key)
            rows = history.alive.shape[1]
            (carry, _), metrics = shuffled_pass(
                one_minibatch, (carry, key), history, order_key, rows, config.minibatches
            )
            return carry, metrics

        keys = jax.random.split(key, config.model_epochs)
        learning, metrics = jax.lax.scan(one_epoch, learning, keys)
        # What the last pass saw: [set, seat of the set] as [seat].
        return learning, jax.tree.map(lambda x: jnp.mean(x[-1], axis=0).reshape(-1), metrics)


class HistoryModel(eqx.Module):
    """What is learned beside the policy. In a state every array has a leading [set] axis."""

    encoder: GRUNetwork
    decoder: Any


def _with_encoder(state: PPOState) -> PPOState:
    """A state whose actors come with their encoders: both are a player's."""
    return state._replace(actor=(state.actor, state.model.encoder))


def flatten_with(
    view: Float[Array, "*batch inputs"], identity: Float[Array, "*#batch id"]
) -> Float[Array, "*batch more"]:
    """Flattened ego views with identities behind them, as `flatten` gives them."""
    ids = jnp.broadcast_to(identity, (*view.shape[:-1], identity.shape[-1]))
    return jnp.concatenate([view, ids], axis=-1)
