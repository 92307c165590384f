"""Beliefs about the goals of others: within an episode by Bayes, between episodes by habit.

Within an episode a belief is a probability for each candidate goal. Between episodes a player's
habit is remembered as one weight per habit, of which `habit_prior` makes probabilities. Every
function acts on arrays with any leading axes.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from coplay.core.config import Config, PositiveFloat, Share, only_if
from coplay.core.errors import UserError
from coplay.core.goals import restricted

Form = Literal["dirichlet", "exponential"]


@dataclass(frozen=True)
class BeliefConfig(Config):
    """Beliefs about co-players."""

    inter: bool = True
    """Carry beliefs about habits from episode to episode."""
    intra: bool = True
    """Update beliefs about goals within an episode by Bayes."""
    prior: Form = "dirichlet"
    """Beliefs about habits: counts plus a concentration, or the paper's exponential form."""
    keep: Annotated[Share, only_if(".inter")] = 0.9
    """Share of earlier evidence that remains after each episode (the paper: exponential with 0.995
    in Stag Hunt and 0.98 in Snowdrift)."""
    concentration: Annotated[PositiveFloat, only_if(".prior", "dirichlet")] = 0.5
    """With prior=dirichlet: the count of each habit before anything is observed."""
    goal_change: Annotated[Share, only_if(".intra")] = 0.01
    """Share of the prior mixed into a belief at each step, because goals may change; 0: never."""
    random_goal: bool = True
    """Expect co-players that follow no goal and act at random, beside the goals of the game (the
    paper does not)."""
    action_rates: Annotated[bool, only_if(".random_goal")] = True
    """Learn which actions a co-player without a goal takes more often than others. False: all
    legal actions are equally probable."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prior == "exponential" and self.keep == 1:
            raise UserError("keep must be below 1 with prior=exponential")


def first_weights(form: Form, keep: float, habits: int) -> Float[Array, " habit"]:
    """The weights before anything was seen.

    exponential: discounted counters that start where even counts would have settled.
    dirichlet: no counts; the concentration stands for what is assumed beforehand.
    """
    start = 1.0 / (habits * (1.0 - keep)) if form == "exponential" else 0.0
    return jnp.full(habits, start, jnp.float32)


def habit_prior(
    form: Form,
    concentration: float | Float[Array, "*#batch habit"],
    weights: Float[Array, "*batch habit"],
) -> Float[Array, "*batch habit"]:
    """Probabilities of the habits: the weights, with the concentration added to each (dirichlet),
    as shares of their sum. concentration: one for all, or one for each."""
    counts = weights + concentration if form == "dirichlet" else weights
    return counts / jnp.sum(counts, axis=-1, keepdims=True)


def with_episode(
    keep: float,
    weights: Float[Array, "*batch habit"],
    habit: Int[Array, "*batch"],
    random_goal: Float[Array, "*batch"] | float = 0.0,
) -> Float[Array, "*batch habit"]:
    """The weights after an episode: older ones fade by `keep`, the shown habit gains 1.

    An episode without a habit (-1) changes nothing. In the exponential form the sum of the weights
    stays 1 / (1 - keep), so the prior becomes keep * prior + (1 - keep) * [habit].
    random_goal: the probability that the player acted at random. This share of the gain goes to
    the last habit, and an episode without a habit counts by this share.
    """
    kinds = jnp.arange(weights.shape[-1])
    chance = jnp.asarray(random_goal)[..., None]
    shown = (1.0 - chance) * (kinds == habit[..., None]) + chance * (kinds == kinds[-1])
    seen = jnp.where(habit[..., None] >= 0, 1.0, chance)
    return (1.0 - (1.0 - keep) * seen) * weights + shown


def with_believed(
    keep: float, weights: Float[Array, "*batch habit"], belief: Float[Array, "*batch habit"]
) -> Float[Array, "*batch habit"]:
    """As `with_episode`, where nothing shows the habit for certain: each gains its probability."""
    return keep * weights + belief


def after_action(
    belief: Float[Array, "*batch goal"],
    log_likelihood: Float[Array, "*batch goal"],
    change: float,
    prior: Float[Array, "*batch goal"],
) -> Float[Array, "*batch goal"]:
    """Bayes: b(g) * P(action | g) / Z, then a share `change` of the prior, because a goal may be
    given up for another; 0: goals last until they are realised."""
    # The largest likelihood becomes 1: products of small numbers stay within float32.
    likelihood = jnp.exp(log_likelihood - jnp.max(log_likelihood, axis=-1, keepdims=True))
    weights = belief * likelihood
    total = jnp.sum(weights, axis=-1, keepdims=True)
    updated = jnp.where(total > 1e-30, weights / jnp.where(total > 1e-30, total, 1.0), prior)
    return (1.0 - change) * updated + change * prior


def after_step(
    belief: Float[Array, "*batch goal"],
    prior: Float[Array, "*batch goal"],
    realised: Bool[Array, "*batch"],
    open_: Bool[Array, "*batch goal"],
    lasting: bool = False,
) -> Float[Array, "*batch goal"]:
    """The belief in the state that a step led to: a realised goal is followed by a new one, of
    which only the prior is known; candidates that are gone are ruled out.

    lasting: the last candidate is no goal but a trait, and the belief in it outlasts goals.
    """
    kept = restricted(belief, open_)
    if lasting:
        trait, goals = belief[..., -1:], prior[..., :-1]
        share = (1.0 - trait) / jnp.maximum(jnp.sum(goals, axis=-1, keepdims=True), 1e-30)
        prior = jnp.concatenate([goals * share, trait], axis=-1)
    return jnp.where(realised[..., None], prior, kept)
