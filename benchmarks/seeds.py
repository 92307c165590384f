"""Several seeds in one program: one after the other (`jax.lax.map`) beside `jax.vmap`."""

import jax
import jax.numpy as jnp

from coplay.algorithms.ppo.config import PPOConfig
from coplay.algorithms.ppo.learner import PPO
from coplay.bench.measure import Work, measure
from coplay.bench.throughput import ROLLOUT, training
from coplay.games.registry import make_game
from coplay.nn.networks import view_shape
from coplay.training.block import one_iteration
from coplay.training.phases import Phase

game = make_game("stag-hunt")
mapped = training(game, seeds=4)[1]
seats = tuple(range(game.seats))
learner = PPO(
    config=PPOConfig(epochs=4, minibatches=4),
    shape=view_shape(game),
    game_seats=game.seats,
    seats=seats,
    active=seats,
)
phase = Phase(0, ("ppo",) * game.seats, (learner,), ())


def vmapped(game, states, keys):
    def one(state, key):
        progress, streams = jnp.float32(0), jnp.arange(game.seats)
        return one_iteration(phase, game, state, key, progress, ROLLOUT, streams)

    return jax.vmap(one)(states, keys)


works = [mapped, Work("the same by vmap", mapped.unit, mapped.amount, vmapped, mapped.arguments)]
for speed in measure(works, repeats=3):
    print(f"{speed.work.name}: {speed.per_second:,.0f} {speed.work.unit}/s")
