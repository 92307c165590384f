"""Social influence (Jaques et al., ICML 2019): a reward for changing what others do.

A model of others predicts what each of them does in the next step, from the own view and from what
everybody does in this one. Had the seat acted otherwise, what would they do? The influence of its
action on another seat j is how far the prediction moves from what it is on the average of the own
policy:

    c_t = sum over j of KL( p(a^j_{t+1} | a_t, …) || sum over a of pi(a) p(a^j_{t+1} | a, …) )

The policy learns by PPO from reward + weight * c. Averaged over the own policy, the influence on a
seat is the mutual information of the two actions. The model learns by maximum likelihood from the
same rollout; the policy that plays has no need of it.

This is the paper's form without a controller in the centre, in which each agent has a model of the
others of its own. The paper's model and policy remember; these see the own view.
"""

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.algorithms.influence.config import InfluenceConfig
from coplay.algorithms.ppo.learner import PPO, PPOBatch, PPOState
from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.core.numerics import masked_mean
from coplay.core.trajectory import Trajectory, of_seats
from coplay.nn import categorical
from coplay.nn.layers import Linear
from coplay.nn.networks import flatten
from coplay.rl.minibatches import by_copy, shuffled_pass
from coplay.rl.optimisers import learning_rate, make_transform, take_step


class Next(NamedTuple):
    """What the others do, the next seat first.

    action: in this step. later: in the next one. counts: the seat and the other are in the game in
    this step, and the other is in the next step, which is of the same episode and rollout.
    """

    action: Int[Array, "*batch seat other"]
    later: Int[Array, "*batch seat other"]
    counts: Bool[Array, "*batch seat other"]


class InfluenceData(NamedTuple):
    """The trajectory of the learner's seats, and the others, [time, copy, seat, other]."""

    own: Trajectory
    others: Next


class ModelSamples(NamedTuple):
    """What the model of one parameter set learns from, [copy, time, seat of the set, ...].

    view: with the identity behind it. action: the seat's own. policy: by which it was chosen.
    """

    view: Float[Array, "*batch inputs"]
    action: Int[Array, "*batch"]
    policy: Float[Array, "*batch action"]
    others: Next


class NextActions(eqx.Module):
    """From a view, the own action and the others' actions to logits of what the others do next."""

    hidden: Linear
    head: Linear
    others: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)

    def __init__(self, inputs: int, width: int, others: int, actions: int, key: PRNGKeyArray):
        keys = jax.random.split(key)
        self.hidden = Linear(inputs + (others + 1) * actions, width, keys[0])
        self.head = Linear(width, others * actions, keys[1], 0.01)
        self.others, self.actions = others, actions

    def __call__(
        self,
        view: Float[Array, "*batch inputs"],
        own: Float[Array, "*batch action"],
        others: Int[Array, "*batch other"],
    ) -> Float[Array, "*batch other action"]:
        """own: one-hot."""
        known = jax.nn.one_hot(others, self.actions).reshape(*others.shape[:-1], -1)
        x = jnp.tanh(self.hidden(jnp.concatenate([view, own, known], axis=-1)))
        return self.head(x).reshape(*others.shape, self.actions)


def influence(model: NextActions, seen: ModelSamples) -> Float[Array, "*batch"]:
    """c of every step, summed over the others whose next action is known of."""
    kinds = jnp.eye(model.actions)

    def had_done(own: Float[Array, " action"]) -> Float[Array, "*batch other action"]:
        given = jnp.broadcast_to(own, (*seen.action.shape, model.actions))
        return jax.nn.softmax(model(seen.view, given, seen.others.action))

    answers = jax.vmap(had_done)(kinds)  # [own action, ..., other, action]
    weights = jnp.moveaxis(seen.policy, -1, 0)[..., None, None]
    usual = jnp.log(jnp.sum(weights * answers, axis=0) + 1e-12)
    chosen = jnp.moveaxis(jax.nn.one_hot(seen.action, model.actions), -1, 0)[..., None, None]
    done = jnp.sum(chosen * answers, axis=0)
    divergence = jnp.sum(done * (jnp.log(done + 1e-12) - usual), axis=-1)
    return jnp.sum(jnp.where(seen.others.counts, divergence, 0.0), axis=-1)


class Influence(PPO):
    """See the module docstring."""

    config: InfluenceConfig = eqx.field(static=True)

    training_only: ClassVar[tuple[str, ...]] = (*PPO.training_only, "model")

    @property
    def declared_data(self) -> tuple[str, ...]:
        return (".own.reward", ".others.later", ".others.action")

    def check(self, game: Game) -> None:
        if game.seats < 2:
            raise UserError("influence needs somebody to influence: the game needs two seats")

    def _init_set(self, key: PRNGKeyArray, streams: Int[Array, " seat"]) -> PPOState:
        state = super()._init_set(key, streams)
        size = int(np.prod(self.shape.planes)) + self.shape.features + self._ids
        model = NextActions(
            size,
            self.config.model_hidden,
            self.game_seats - 1,
            self.shape.actions,
            jax.random.fold_in(key, 2),
        )
        start = make_transform(self.config.model_optimiser).init
        return state._replace(model=model, model_optimiser=start(model))

    # --- learning ------------------------------------------------------------------------------

    def training_data(self, game: Game, trajectory: Trajectory) -> InfluenceData:
        seats = trajectory.alive.shape[-1]
        mine = np.array(self.active)
        turns = (mine[:, None] + np.arange(1, seats)) % seats
        action, alive = trajectory.action[:, :, turns], trajectory.alive
        # The last step of a rollout has no next one.
        later = jnp.concatenate([action[1:], action[-1:]])
        stays = jnp.concatenate([alive[1:], jnp.zeros_like(alive[:1])])[:, :, turns]
        same = ~trajectory.over[..., None, None]
        counts = alive[:, :, mine, None] & alive[:, :, turns] & stays & same
        return InfluenceData(of_seats(trajectory, self.active), Next(action, later, counts))

    def prepare(self, state: PPOState, trajectory: Any) -> tuple[PPOState, PPOBatch]:
        rewarded, _ = self._rewarded(self.active_sets(state), trajectory)
        return super().prepare(state, rewarded)

    def update(
        self, key: PRNGKeyArray, state: PPOState, trajectory: Any, progress: Float[Array, ""]
    ) -> tuple[PPOState, dict[str, Float[Array, " seat"]]]:
        model_key, key = jax.random.split(key)
        rewarded, metrics = self._rewarded(self.active_sets(state), trajectory)
        learning, batch = super().prepare(state, rewarded)
        learning, fits = self._fit(
            model_key, learning, self._samples(learning, trajectory), progress
        )
        state, learned = self.improve(key, state, learning, batch, progress)
        return state, learned | metrics | fits

    def _rewarded(
        self, learning: PPOState, data: InfluenceData
    ) -> tuple[Trajectory, dict[str, Float[Array, " seat"]]]:
        """The trajectory with the influence added to rewards, and its mean."""
        samples = self._samples(learning, data)
        found = jax.vmap(influence)(learning.model, samples)  # [set, copy, time, seat of the set]
        added = jnp.moveaxis(found, 0, -2).reshape(*found.shape[1:3], -1)
        reward = data.own.reward + self.config.influence_weight * by_copy(added)
        mean = masked_mean(by_copy(added), data.own.alive, (0, 1))
        return data.own._replace(reward=reward), {"influence": mean}

    def _samples(self, learning: PPOState, data: InfluenceData) -> ModelSamples:
        """What the models of the active sets learn from, [set, copy, time, seat of the set, …]."""
        own = data.own
        seen = jax.tree.map(by_copy, own.observation)
        identity = learning.identity[0, np.array(self.active)]
        parts = ModelSamples(
            view=flatten(seen, identity),
            action=by_copy(own.action),
            policy=jnp.exp(by_copy(own.log_policy)),
            others=jax.tree.map(by_copy, data.others),
        )
        if not self.separate:
            return jax.tree.map(lambda x: x[None], parts)
        return jax.tree.map(lambda x: jnp.moveaxis(x, 2, 0)[:, :, :, None], parts)

    def _fit(
        self, key: PRNGKeyArray, learning: PPOState, samples: ModelSamples, progress: Any
    ) -> tuple[PPOState, dict[str, Float[Array, " seat"]]]:
        """The models of the active sets after learning, and metrics."""
        config = self.config
        rate = learning_rate(config.model_optimiser, progress)

        def loss(model: NextActions, part: ModelSamples) -> tuple[Array, dict[str, Array]]:
            own = jax.nn.one_hot(part.action, model.actions)
            logits = model(part.view, own, part.others.action)
            error = -categorical.take(jax.nn.log_softmax(logits), part.others.later)
            right = (jnp.argmax(logits, axis=-1) == part.others.later).astype(jnp.float32)
            axes = (0, 1, 3)
            terms = {
                "others_action_loss": masked_mean(error, part.others.counts, axes),
                "others_top1": masked_mean(right, part.others.counts, axes),
            }
            return jnp.sum(terms["others_action_loss"]), terms

        def step(state: PPOState, part: ModelSamples) -> tuple[PPOState, dict[str, Array]]:
            gradient, terms = jax.grad(loss, has_aux=True)(state.model, part)
            model, optimiser = take_step(
                config.model_optimiser, state.model, gradient, state.model_optimiser, rate
            )
            return state._replace(model=model, model_optimiser=optimiser), terms

        def one_epoch(carry: PPOState, key: PRNGKeyArray) -> tuple[PPOState, dict[str, Array]]:
            rows = samples.action.shape[1]
            return shuffled_pass(jax.vmap(step), carry, samples, key, rows, config.minibatches)

        keys = jax.random.split(key, config.model_epochs)
        learning, terms = jax.lax.scan(one_epoch, learning, keys)
        return learning, jax.tree.map(lambda x: jnp.mean(x[-1], axis=0).reshape(-1), terms)
