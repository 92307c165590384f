"""A learner of one's own: advantage actor-critic, with a network of its own for each seat.

coplay train a2c --load examples/own_learner.py --steps 200000
coplay audit wiring --load examples/own_learner.py --player a2c
"""

import math
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

import coplay


@dataclass(frozen=True)
class A2CConfig:
    """Advantage actor-critic."""

    hidden: int = 64  # width of the hidden layer
    learning_rate: float = 3e-3  # step size of Adam
    discount: float = 0.99  # of future rewards
    value_weight: float = 0.5  # weight of the value loss
    entropy_weight: float = 0.01  # weight of the entropy bonus


class A2CPlayer(coplay.Player):
    hidden: eqx.nn.Linear
    head: eqx.nn.Linear  # logits of the actions, and the value

    def act(self, game, key, view, memory):
        return self.outputs(view.observation)[0], memory

    def outputs(self, seen):  # log-probabilities and value of ego views with any leading axes
        x = jnp.concatenate([seen.planes.reshape(*seen.legal.shape[:-1], -1), seen.features], -1)
        x = jnp.tanh(jnp.vectorize(self.hidden, signature="(i)->(o)")(x))
        x = jnp.vectorize(self.head, signature="(i)->(o)")(x)
        return jax.nn.log_softmax(jnp.where(seen.legal, x[..., :-1], -1e9)), x[..., -1]


class A2C(coplay.Learner):  # its state: (networks, optimisers), every array [seat, ...]
    config: A2CConfig = eqx.field(static=True)
    shape: coplay.ViewShape
    game_seats: int = eqx.field(static=True)
    seats: tuple[int, ...] = eqx.field(static=True)
    active: tuple[int, ...] = eqx.field(static=True)

    def init(self, key, streams):  # what differs between seats comes from their streams
        def one_seat(key):
            sizes = math.prod(self.shape.planes) + self.shape.features, self.config.hidden
            low, high = jax.random.split(key)
            head = eqx.nn.Linear(self.config.hidden, self.shape.actions + 1, key=high)
            net = A2CPlayer(eqx.nn.Linear(*sizes, key=low), head)
            return net, optax.scale_by_adam().init(net)

        return jax.vmap(one_seat)(coplay.seat_keys(key, streams)[jnp.array(self.seats)])

    def group(self, state):
        return coplay.Group(self.of_active(state)[0], self.active, shared=False)

    def of_active(self, state):
        rows = jnp.array([self.seats.index(seat) for seat in self.active])
        return jax.tree.map(lambda x: x[rows], state)

    def player(self, state, seat, greedy=False):
        net = jax.tree.map(lambda x: x[self.seats.index(seat)], state[0])
        return A2CPlayer(net.hidden, jax.tree.map(lambda x: x * (1e4 if greedy else 1), net.head))

    def update(self, key, state, trajectory, progress):
        rows = jnp.array([self.seats.index(seat) for seat in self.active])
        axes = coplay.Trajectory(*[2] * 12)._replace(over=None, last=1)  # where the seats are
        learned, metrics = jax.vmap(self.learn, (0, axes))(self.of_active(state), trajectory)
        return jax.tree.map(lambda x, new: x.at[rows].set(new), state, learned), metrics

    def learn(self, state, played):  # one seat, [time, copy, ...]
        def mean(x):  # over the steps in the game
            return jnp.sum(x, where=played.alive) / jnp.maximum(jnp.sum(played.alive), 1)

        def loss(net):
            log_policy, value = net.outputs(played.observation)
            taken = jnp.take_along_axis(log_policy, played.action[..., None], -1)[..., 0]
            policy = mean(-taken * jax.lax.stop_gradient(gain - value))
            error = mean((gain - value) ** 2)
            entropy = mean(-jnp.sum(jnp.exp(log_policy) * log_policy, -1))
            total = self.config.value_weight * error - self.config.entropy_weight * entropy
            return policy + total, {"value_loss": error, "entropy": entropy}

        net, optimiser = state
        ahead = jnp.where(played.terminated, 0.0, net.outputs(played.final)[1])
        gain = played.reward + self.config.discount * ahead
        slope, metrics = jax.grad(loss, has_aux=True)(net)
        step, optimiser = optax.scale_by_adam().update(slope, optimiser)
        net = jax.tree.map(lambda x, d: x - self.config.learning_rate * d, net, step)
        return (net, optimiser), metrics


coplay.register_learner("a2c", A2CConfig, A2C)
