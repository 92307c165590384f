"""A scripted player of one's own: it never hunts hares."""

import jax.numpy as jnp

import coplay
from coplay.core.player import Player
from coplay.nn.categorical import NEVER

HUNT_HARE = 6


class Patient(Player):
    """Uniform over the legal actions, but for hunting hares."""

    def act(self, game, key, view, memory):
        actions = jnp.arange(game.actions)
        logits = jnp.where(actions == HUNT_HARE, NEVER, 0.0)
        return jnp.broadcast_to(logits, view.observation.legal.shape), memory


print(coplay.play("stag-hunt", [Patient(), "ns", "ns", "nh"], episodes=2000)["seats"][0])
