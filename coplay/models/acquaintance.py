"""What is known of co-players from earlier episodes, where goals are prototypes.

A co-player has a habit: how often it is of each prototype, from episode to episode. What was
believed of it at the end of an episode is counted, and older episodes fade. The counts, and what
prototypes are like before anything was seen, give what is expected of it when the next episode
begins (the mean of a Dirichlet distribution).
"""

import jax
from jaxtyping import Array, Float

from coplay.models.belief import habit_prior, with_believed
from coplay.models.goal_inference import GoalInference, Prototypes

CONCENTRATION = 1.0
"""For how many episodes counts what is assumed before anything was seen."""

Episodes = Float[Array, "*batch prototype"]
"""In how many earlier episodes a player was of each prototype, as far as was believed."""


def next_episode(
    inference: GoalInference,
    memory: Float[Array, "*batch prototype"],
    episodes: Episodes,
    keep: float,
) -> tuple[Float[Array, "*batch prototype"], Episodes]:
    """The memory with which the next episode begins, and the episodes with the one that is over.
    memory: at its end. keep: older episodes fade by this."""
    assert isinstance(inference, Prototypes)
    episodes = with_believed(keep, episodes, inference.weights(memory))
    prior = jax.nn.softmax(inference.prior)
    expected = habit_prior("dirichlet", CONCENTRATION * prior, episodes)
    return inference.expecting(expected), episodes
