"""Generalised advantage estimation with seats that leave and episodes that are cut."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from coplay.core.numerics import masked_mean
from coplay.core.trajectory import Trajectory


def gae(
    reward: Float[Array, "time *batch"],
    value: Float[Array, "time *batch"],
    final_value: Float[Array, "time *batch"],
    last_value: Float[Array, "*batch"],
    terminated: Bool[Array, "time *batch"],
    truncated: Bool[Array, "time *batch"],
    discount: float,
    gae_lambda: float,
) -> Float[Array, "time *batch"]:
    """Advantages A_t = d_t + discount * gae_lambda * A_{t+1}, with
    d_t = r_t + discount * V_{t+1} - V_t.

    A seat that left (terminated) has no future: V_{t+1} = 0 and the sum stops. One whose episode
    was cut (truncated) has a future that was not played: V_{t+1} is the value of what it saw last
    (`final_value`), and the sum stops. `last_value` is what the seats see after the last step.
    Rows of seats that are not alive carry numbers without meaning: leave them out by their mask;
    no row of an alive seat depends on them.
    """
    following = jnp.concatenate([value[1:], last_value[None]])
    following = jnp.where(truncated, final_value, following)
    following = jnp.where(terminated, 0.0, following)
    delta = reward + discount * following - value
    carry_on = jnp.where(terminated | truncated, 0.0, discount * gae_lambda)

    def backward(
        later: Float[Array, "*batch"], row: tuple[Array, Array]
    ) -> tuple[Float[Array, "*batch"], Float[Array, "*batch"]]:
        delta, carry_on = row
        advantage = delta + carry_on * later
        return advantage, advantage

    _, advantages = jax.lax.scan(
        backward, jnp.zeros_like(last_value), (delta, carry_on), reverse=True
    )
    return advantages


def ending_at_horizon(trajectory: Trajectory) -> Trajectory:
    """The same with the horizon as an end like any other. For players that plan until then: what
    would come after it is never received."""
    return trajectory._replace(
        terminated=trajectory.terminated | trajectory.truncated,
        truncated=jnp.zeros_like(trajectory.truncated),
    )


def trajectory_gae(
    trajectory: Trajectory,
    value: Float[Array, "time copy seat"],
    final_value: Float[Array, "time copy seat"],
    last_value: Float[Array, "copy seat"],
    discount: float,
    gae_lambda: float,
) -> Float[Array, "time copy seat"]:
    """`gae` of what was played."""
    return gae(
        trajectory.reward,
        value,
        final_value,
        last_value,
        trajectory.terminated,
        trajectory.truncated,
        discount,
        gae_lambda,
    )


def meeting_gae(
    reward: Float[Array, "time *batch"],
    value: Float[Array, "time *batch"],
    last_value: Float[Array, "*batch"],
    stays: Bool[Array, "*batch"],
    alive: Bool[Array, "time *batch"],
    ends: Bool[Array, "time *batch"],
    discount: float,
    gae_lambda: float,
) -> Float[Array, "time *batch"]:
    """Advantages over the episodes of a meeting, as RL² counts them.

    A_t = d_t + discount * gae_lambda * A_{t+}    d_t = r_t + discount * V_{t+} - V_t

    Here t+ is the seat's next step in the game, which may be the first of the next episode. Only
    the end of the meeting ends the sum.

    last_value: of what the seats see after the last step. stays: where they are in the game then;
        where not, the value of their last step stands for what follows.
    alive: steps of seats that are out of the game are passed over, and their rows are 0.
    ends: the meeting ended in this step, also if a seat was out by then: nothing follows.
    """

    def backward(
        later: tuple[Array, Array, Array], row: tuple[Array, ...]
    ) -> tuple[tuple[Array, Array, Array], Float[Array, "*batch"]]:
        known, following, advantage = later
        reward, value, alive, ends = row
        known, following = known | ends, jnp.where(ends, 0.0, following)
        advantage = jnp.where(ends, 0.0, advantage)
        delta = reward + discount * jnp.where(known, following, value) - value
        mine = delta + discount * gae_lambda * advantage
        carry = (known | alive, jnp.where(alive, value, following))
        return (*carry, jnp.where(alive, mine, advantage)), jnp.where(alive, mine, 0.0)

    start = (stays, last_value, jnp.zeros_like(last_value))
    return jax.lax.scan(backward, start, (reward, value, alive, ends), reverse=True)[1]


def normalise(
    values: Float[Array, "*shape"], mask: Bool[Array, "*shape"], epsilon: float = 1e-8
) -> Float[Array, "*shape"]:
    """Mean 0 and standard deviation 1 over the entries in the mask; 0 outside of it."""
    centred = values - masked_mean(values, mask, None)
    variance = masked_mean(jnp.square(centred), mask, None)
    return jnp.where(mask, centred / (jnp.sqrt(variance) + epsilon), 0.0)


def explained_variance(
    predicted: Float[Array, "sample *rest"],
    target: Float[Array, "sample *rest"],
    mask: Bool[Array, "sample *rest"],
) -> Float[Array, "*rest"]:
    """1 - Var(target - predicted) / Var(target) over the first axis, in the mask."""

    def variance(values: Array) -> Array:
        return masked_mean(jnp.square(values - masked_mean(values, mask, 0)), mask, 0)

    return 1.0 - variance(target - predicted) / jnp.maximum(variance(target), 1e-8)
