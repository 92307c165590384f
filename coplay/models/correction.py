"""Corrects a model of a player, action by action, by what the player does.

No prototype explains a player quite. A model may expect that whoever stands on a stag hunts it now
and then, and the player never does. So actions are counted beside what was predicted, wherever they
are legal, and actions are expected in proportion to the model's prediction times a rate. The rate
is what a Dirichlet prior around the prediction gives: with n steps in which the action was legal,
predicted with probability p on average and taken m times, (m / p + k) / (n + k).

Players change. So there are two such counts, one of few steps and one of many, and the rate is the
mean of both, by how well either predicted what the player did: what fits a player is known exactly,
and what no longer fits it is left within a few steps.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.models.personas import AVOIDED, PREFERRED
from coplay.nn import categorical

PRIOR = 2.0
"""For how many steps counts that the model is right (k)."""
MEMORIES = (20.0, 500.0)
"""At most so many steps count in each of the counts, those that are long ago less and less."""
CHANGE = 1 / 1000
"""How probable it is in each step that another count becomes the better one."""
LEAD = -4.0
"""The logit of the probability that it is the short count, before anything was seen."""
NEVER = -30.0
"""The logit of an action that the model holds impossible."""
LIMIT = 8.0
"""No logit is corrected by more than this."""


class Correction(NamedTuple):
    """taken: [..., memory, action] how often each action was taken. predicted: how often it would
    have been by the model as it is. steps: in how many steps it was legal. lead: [...] the logit of
    the probability that the first count is the better one."""

    taken: Float[Array, "*batch memory action"]
    predicted: Float[Array, "*batch memory action"]
    steps: Float[Array, "*batch memory action"]
    lead: Float[Array, "*batch"]


def no_correction(shape: tuple[int, ...]) -> Correction:
    """Before anything was seen; shape: [..., action]."""
    counts = jnp.zeros((*shape[:-1], len(MEMORIES), shape[-1]))
    return Correction(counts, counts, counts, jnp.full(shape[:-1], LEAD))


def with_action(
    known: Correction,
    action: Int[Array, "*batch"],
    log_predicted: Float[Array, "*batch action"],
    legal: Bool[Array, "*batch action"],
    counts: Bool[Array, "*batch"],
) -> Correction:
    """With an action of the player. log_predicted: of all actions, by the corrected model. counts:
    whether the step counts."""
    # The logits of the model as it is; what it holds impossible does happen.
    plain = jnp.where(legal, jnp.maximum(log_predicted - correction(known), NEVER), 0.0)
    rates = log_rates(known)
    first, second = (
        categorical.take(categorical.log_policy(plain + rates[..., number, :], legal), action)
        for number in range(len(MEMORIES))
    )
    better = jax.nn.sigmoid(known.lead + jnp.clip(first - second, -LIMIT, LIMIT))
    lead = jax.scipy.special.logit((1 - 2 * CHANGE) * better + CHANGE)
    open_ = (legal & counts[..., None])[..., None, :]
    chosen = action[..., None, None] == jnp.arange(legal.shape[-1])
    # What the model as it is would have given to the action, had the others been corrected.
    predicted = jnp.where(open_, jnp.exp(plain)[..., None, :], 0.0)
    steps = known.steps + open_
    most = jnp.array(MEMORIES)[:, None]
    fade = most / jnp.maximum(steps, most)
    return Correction(
        fade * (known.taken + (chosen & open_)),
        fade * (known.predicted + predicted),
        fade * steps,
        jnp.where(counts, lead, known.lead),
    )


def log_rates(known: Correction) -> Float[Array, "*batch memory action"]:
    """What each of the counts adds to the logits of the actions."""
    times = known.steps / jnp.maximum(known.predicted, 1e-6)
    return jnp.log((known.taken * times + PRIOR) / (known.steps + PRIOR))


def correction(known: Correction) -> Float[Array, "*batch action"]:
    """What is added to the logits of the actions."""
    weight = jax.nn.log_sigmoid(jnp.stack([known.lead, -known.lead], axis=-1))
    found = jax.nn.logsumexp(log_rates(known) + weight[..., None], axis=-2)
    return jnp.clip(found, -LIMIT, LIMIT)


def sample_groups(
    key: PRNGKeyArray, shape: tuple[int, int], players: int, actions: int
) -> tuple[Float[Array, "time copy player action"], Correction]:
    """What unknown players add to the logits of the model, to imagine games with, and what is known
    of it. A quarter of the groups add nothing; else each player prefers a quarter of the actions
    and avoids a quarter, or half of them, in half of these groups all players the same, and in half
    of them players never do what they avoid. Half of the groups have never been met; of the others
    many or few steps are known."""
    group_key, kind_key = jax.random.split(key)
    number = math.prod(shape)
    tilted, alike, never, many, met, length = jax.random.uniform(group_key, (6 * number,)).reshape(
        6, *shape, 1, 1
    )
    kind = jax.random.uniform(kind_key, (number * players * actions,))
    kind = kind.reshape(*shape, players, actions)
    kind = jnp.where(alike < 0.5, kind[:, :, :1], kind)
    avoided = kind < jnp.where(many < 0.5, 0.5, 0.25)
    depth = jnp.where(never < 0.5, LIMIT, AVOIDED)
    tilt = jnp.where(avoided, -depth, jnp.where(kind > 0.75, PREFERRED, 0.0))
    tilt = jnp.where(tilted < 0.75, tilt, 0.0)
    # As often between 1 and 2 steps as between 100 and 200.
    known = jnp.where(met < 0.5, MEMORIES[-1] ** length, 0.0) * jnp.ones_like(tilt)
    steps = jnp.minimum(known[..., None, :], jnp.array(MEMORIES)[:, None])
    taken = steps / actions * jnp.exp(tilt)[..., None, :]
    return tilt, Correction(taken, steps / actions, steps, jnp.full(tilt.shape[:-1], LEAD))
