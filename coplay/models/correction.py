"""Corrects a model of a player, action by action, by what the player does.

No prototype explains a player quite. A model may expect that whoever stands on a stag hunts it now
and then, and the player never does. So actions are counted beside what was predicted, wherever they
are legal, and actions are expected in proportion to the model's prediction times a rate. The rate
is what a Dirichlet prior around the prediction gives: with n steps in which the action was legal,
predicted with probability p on average and taken m times, (m / p + k) / (n + k). At most `MOST`
steps count, those that are long ago less and less.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.models.personas import AVOIDED, PREFERRED

PRIOR = 4.0
"""For how many steps counts that the model is right (k)."""
MOST = 60.0
LIMIT = 4.0
"""No logit is corrected by more than this."""


class Correction(NamedTuple):
    """taken: [..., action] how often each action was taken. predicted: how often it would have been
    by the model as it is. steps: in how many steps it was legal."""

    taken: Float[Array, "*batch action"]
    predicted: Float[Array, "*batch action"]
    steps: Float[Array, "*batch action"]


def no_correction(shape: tuple[int, ...]) -> Correction:
    """Before anything was seen; shape: [..., action]."""
    return Correction(jnp.zeros(shape), jnp.zeros(shape), jnp.zeros(shape))


def with_action(
    known: Correction,
    action: Int[Array, "*batch"],
    log_predicted: Float[Array, "*batch action"],
    legal: Bool[Array, "*batch action"],
    counts: Bool[Array, "*batch"],
) -> Correction:
    """With an action of the player. log_predicted: of all actions, by the corrected model. counts:
    whether the step counts."""
    open_ = legal & counts[..., None]
    taken = (action[..., None] == jnp.arange(legal.shape[-1])) & open_
    # What the model as it is would have given to the action, had the others been corrected.
    predicted = jnp.where(open_, jnp.exp(log_predicted - correction(known)), 0.0)
    new = Correction(known.taken + taken, known.predicted + predicted, known.steps + open_)
    fade = MOST / jnp.maximum(new.steps, MOST)
    return Correction(*(fade * x for x in new))


def correction(known: Correction) -> Float[Array, "*batch action"]:
    """What is added to the logits of the actions."""
    times = known.steps / jnp.maximum(known.predicted, 1e-6)
    rate = (known.taken * times + PRIOR) / (known.steps + PRIOR)
    return jnp.clip(jnp.log(rate), -LIMIT, LIMIT)


def sample_groups(
    key: PRNGKeyArray, shape: tuple[int, int], players: int, actions: int
) -> tuple[Float[Array, "time copy player action"], Correction]:
    """What unknown players add to the logits of the model, to imagine games with, and what is known
    of it. Half of the groups add nothing; else each player prefers a quarter of the actions and
    avoids a quarter, in half of these groups all players the same. Half of the groups have never
    been met; of the others up to `MOST` steps are known."""
    group_key, kind_key = jax.random.split(key)
    number = math.prod(shape)
    group = jax.random.uniform(group_key, (3 * number,)).reshape(3, *shape, 1, 1)
    kind = jax.random.randint(kind_key, (number * players * actions,), 0, 4)
    kind = kind.reshape(*shape, players, actions)
    kind = jnp.where(group[0] < 0.25, kind[:, :, :1], kind)
    tilt = jnp.where(kind == 0, -AVOIDED, jnp.where(kind == 1, PREFERRED, 0.0))
    tilt = jnp.where(group[0] < 0.5, tilt, 0.0)
    steps = jnp.where(group[1] < 0.5, MOST * group[2], 0.0) * jnp.ones_like(tilt)
    return tilt, Correction(steps / actions * jnp.exp(tilt), steps / actions, steps)
