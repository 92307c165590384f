"""A player of one's own: it never hunts hares. It sits beside others, and a learner beside it."""

import tempfile

import jax.numpy as jnp

import coplay

HUNT_HARE = 6


class Patient(coplay.Player):
    """Uniform over the legal actions, but for hunting hares."""

    def act(self, game, key, view, memory):
        logits = jnp.where(jnp.arange(game.actions) == HUNT_HARE, -1e9, 0.0)
        return jnp.broadcast_to(logits, view.observation.legal.shape), memory


if __name__ == "__main__":
    match = coplay.play("stag-hunt", [Patient(), "ns", "ns", "nh"], episodes=2000)
    print("among others:", match["seats"][0])
    with tempfile.TemporaryDirectory() as folder:
        small = {"steps": 512, "copies": 8, "rollout": 8, "minibatches": 2}
        seating = ["ppo", Patient(), "ns", "ns"]
        run = coplay.train("ppo", out=f"{folder}/run", seating=seating, pictures=False, **small)
        print("a learner beside it:", run["seats"][0])
