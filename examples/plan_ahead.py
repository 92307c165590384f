"""A state can be copied and stepped with one's own key: look one step ahead in many ways."""

import jax
import jax.numpy as jnp

import coplay

game = coplay.make_game("stag-hunt")
state = game.reset(jax.random.key(0))
joint_actions = jax.random.randint(jax.random.key(1), (1000, game.seats), 0, game.actions)
_, outcome = jax.vmap(game.step, in_axes=(None, None, 0))(jax.random.key(2), state, joint_actions)
best = int(jnp.argmax(outcome.reward[:, 0]))
print("best of 1000 joint actions for seat 0:", joint_actions[best], outcome.reward[best])
