"""Partners of one's own: a scripted one by name, and a player in the middle of an adaptation.

coplay adapt ns --against quiet,ns,random --no-normalise --load examples/own_partner.py
"""

import tempfile

import jax.numpy as jnp

import coplay

STAY, HUNT_HARE = 4, 6


def quiet(game, state):
    """Stays where it is; a scripted policy gives the probabilities of the actions."""
    return jnp.eye(game.actions)[STAY]


class Patient(coplay.Player):
    """Uniform over the legal actions, but for hunting hares."""

    def act(self, game, key, view, memory):
        logits = jnp.where(jnp.arange(game.actions) == HUNT_HARE, -1e9, 0.0)
        return jnp.broadcast_to(logits, view.observation.legal.shape), memory


coplay.register_player("quiet", quiet)
coplay.register_player("patient", Patient)

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        result = coplay.adapt(
            "ns",
            ["patient", quiet, "random"],
            steps=240,
            last=120,
            seeds=2,
            normalise=False,
            out=f"{folder}/adapt",
            quiet=True,
        )
        print(f"ns against {result['against']}: {result['score']:.2f} per episode")
