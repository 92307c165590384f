"""PLASTIC-Policy (Barrett et al., 2017): plan for partners by those that are known.

A *library* holds pairs: the model of a known partner, and the best response to it. Training with a
pack gives each entry one partner and an equal share of the game copies. There the entry's policy
learns by PPO against its partner, and its model learns by maximum likelihood what that partner
does. The partners in a copy never change.

The player begins with equal belief in all entries and acts by the best response to the one it
believes in most. After each step the belief in an entry falls by what its model held improbable
(`polynomial_weights`). It is kept from one episode of a meeting to the next.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.algorithms.plastic.config import PlasticConfig
from coplay.algorithms.plastic.player import PlasticPlayer
from coplay.algorithms.ppo.learner import PPO, PPOBatch, PPOState
from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.core.group import Group
from coplay.core.numerics import masked_mean
from coplay.core.player import Player
from coplay.core.trajectory import Trajectory, of_seats
from coplay.nn import categorical
from coplay.nn.networks import Network, flatten, make_network
from coplay.rl.minibatches import by_copy, shuffled_pass
from coplay.rl.optimisers import learning_rate, make_transform, take_step


class PlasticData(NamedTuple):
    """What is learned from: the trajectory of the learner's seats, and what the others did there,
    [time, copy, seat, other], the next seat first. there: both were in the game."""

    own: Trajectory
    action: Int[Array, "time copy seat other"]
    there: Bool[Array, "time copy seat other"]


class Watched(NamedTuple):
    """What the models learn from, [entry, copy, time, seat, ...]. view: the own ego views."""

    view: Float[Array, "entry copy time seat inputs"]
    action: Int[Array, "entry copy time seat other"]
    there: Bool[Array, "entry copy time seat other"]


class Plastic(PPO):
    """See the module docstring. The parameter sets of PPO are the entries of the library."""

    config: PlasticConfig = eqx.field(static=True)

    needs_partners = True

    @property
    def declared_data(self) -> tuple[str, ...]:
        return (".reward", ".action")

    def check(self, game: Game) -> None:
        if game.seats < 2:
            raise UserError("PLASTIC answers partners: the game needs at least two seats")
        if type(game).last_actions is Game.last_actions:
            raise UserError(
                f"PLASTIC watches what others do, and {game.name} does not tell: it needs a game "
                "with `last_actions`"
            )

    def partners_by_copy(self, count: int) -> tuple[int, ...]:
        if count < self.config.library:
            raise UserError(
                f"the pack has {count} partners: give --library {count}, or a pack with more"
            )
        places = np.linspace(0, count - 1, self.config.library)
        return tuple(int(place) for place in places)

    def alone(self, state: Any, seat: int, at: int) -> tuple["Plastic", Any]:
        raise UserError("a plastic player cannot go on learning among strangers: leave out --learn")

    # --- parameters and players ----------------------------------------------------------------

    def init(self, key: PRNGKeyArray, streams: Int[Array, " seat"], parts: Any = None) -> PPOState:
        keys = jax.random.split(key, self.config.library)
        return jax.vmap(self._init_set, (0, None))(keys, streams)

    def _init_set(self, key: PRNGKeyArray, streams: Int[Array, " seat"]) -> PPOState:
        state = super()._init_set(key, streams)
        outputs = (self.game_seats - 1) * self.shape.actions
        own = jax.random.fold_in(key, 2)
        model = make_network(self.config.network, self.shape, outputs, own, 0.01)
        start = make_transform(self.config.model_optimiser).init
        return state._replace(model=model, model_optimiser=start(model))

    def group(self, state: PPOState) -> Group:
        return Group(self._player(state, False, learning=True), self.active, True)

    def player(self, state: PPOState, seat: int, greedy: bool = False) -> Player:
        return self._player(state, greedy)

    def _player(self, state: PPOState, greedy: bool, learning: bool = False) -> PlasticPlayer:
        entries, eta = self.config.library, self.config.eta
        return PlasticPlayer(state.actor, state.model, entries, eta, greedy, learning)

    @property
    def set_rows(self) -> np.ndarray:
        return np.arange(self.config.library)

    # --- learning ------------------------------------------------------------------------------

    def training_data(self, game: Game, trajectory: Trajectory) -> PlasticData:
        seats = trajectory.alive.shape[-1]
        own = np.array(self.active)
        turns = (own[:, None] + np.arange(1, seats)) % seats
        there = trajectory.alive[:, :, turns] & trajectory.alive[:, :, own, None]
        return PlasticData(of_seats(trajectory, self.active), trajectory.action[:, :, turns], there)

    def prepare(self, state: PPOState, trajectory: Any) -> tuple[PPOState, PPOBatch]:
        """The entries, and the samples of the copies of each, [entry, ...]."""
        own: Trajectory = trajectory.own._replace(memory=None, past=None, meeting_over=None)
        steps = self._by_entry(own._replace(last=None), 1)  # type: ignore[arg-type]
        by_entry = steps._replace(last=self._by_entry(own.last, 0))
        seats = np.array(self.active)
        return state, jax.vmap(self._batch)(state, by_entry, state.identity[:, seats])

    def _by_entry(self, tree: Any, axis: int) -> Any:
        """Arrays with the game copies at an axis as [entry, …, copy of the entry, …]."""

        def split(x: Array) -> Array:
            entries = self.config.library
            each = x.shape[axis] // entries
            shape = (*x.shape[:axis], entries, each, *x.shape[axis + 1 :])
            return jnp.moveaxis(x.reshape(shape), axis, 0)

        return jax.tree.map(split, tree)

    def update(
        self, key: PRNGKeyArray, state: PPOState, trajectory: Any, progress: Float[Array, ""]
    ) -> tuple[PPOState, dict[str, Float[Array, " seat"]]]:
        model_key, key = jax.random.split(key)
        learning, batch = self.prepare(state, trajectory)
        learning, fits = self._fit(model_key, learning, trajectory, progress)
        state, metrics = self.improve(key, state, learning, batch, progress)
        # Metrics of each entry and seat as means over the entries: [seat].
        means = {
            name: jnp.mean(value.reshape(self.config.library, -1), axis=0)
            for name, value in metrics.items()
        }
        return state, means | fits

    def stages(
        self, key: PRNGKeyArray, state: PPOState, trajectory: Any, progress: Float[Array, ""]
    ) -> dict[str, Any]:
        return {}

    def first_ratio(self, state: PPOState, trajectory: Any) -> Float[Array, " seat"]:
        found = super().first_ratio(state, trajectory)
        return jnp.max(found.reshape(self.config.library, -1), axis=0)

    def _fit(
        self, key: PRNGKeyArray, learning: PPOState, data: PlasticData, progress: Float[Array, ""]
    ) -> tuple[PPOState, dict[str, Float[Array, " seat"]]]:
        """The models after one pass over what the partners did, and metrics."""
        config = self.config
        rate = learning_rate(config.model_optimiser, progress)
        seen = flatten(jax.tree.map(by_copy, data.own.observation))
        watched = Watched(*self._by_entry((seen, by_copy(data.action), by_copy(data.there)), 0))

        def step(state: PPOState, part: Watched) -> tuple[PPOState, dict]:
            gradient, metrics = jax.grad(model_loss, has_aux=True)(state.model, part)
            model, optimiser = take_step(
                config.model_optimiser, state.model, gradient, state.model_optimiser, rate
            )
            return state._replace(model=model, model_optimiser=optimiser), metrics

        rows = watched.view.shape[1]
        learning, metrics = shuffled_pass(
            jax.vmap(step), learning, watched, key, rows, config.minibatches
        )
        return learning, jax.tree.map(lambda x: jnp.mean(x, axis=(0, 1)), metrics)


def model_loss(
    model: Network, watched: Watched
) -> tuple[Float[Array, ""], dict[str, Float[Array, " seat"]]]:
    """-log p of what one entry's partner did, [copy, time, seat, other]; and metrics by seat."""
    logits = model(watched.view).reshape(*watched.action.shape, -1)
    error = -categorical.take(jax.nn.log_softmax(logits), watched.action)
    right = (jnp.argmax(logits, axis=-1) == watched.action).astype(jnp.float32)
    found = {"others_action_loss": error, "others_top1": right}
    metrics = {name: masked_mean(x, watched.there, (0, 1, 3)) for name, x in found.items()}
    return jnp.sum(metrics["others_action_loss"]), metrics
