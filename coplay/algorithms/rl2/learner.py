"""RL² (Duan et al., 2016; Wang et al., 2016): a recurrent policy that learns to learn.

A *meeting* is some episodes with the same partners. Network, memory and loss are those of recurrent
PPO: the policy is given its last action, its last reward and whether an episode begins, and it
remembers from one episode to the next. What makes it RL² is the return: rewards of later episodes
of the meeting count, so finding out whom it plays with pays, also if it costs something at first.

    A_t = d_t + discount * gae_lambda * A_{t+}    d_t = r_t + discount * V_{t+} - V_t

Here t+ is the seat's next step in the game, which may be the first of the next episode. Only the
end of a meeting ends the sum.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from coplay.algorithms.ppo.recurrent import RecurrentPPO
from coplay.algorithms.rl2.config import RL2Config
from coplay.core.trajectory import Trajectory


class RL2(RecurrentPPO):
    """See the module docstring. Without partners a meeting lasts as long as the run."""

    config: RL2Config = eqx.field(static=True)

    def advantages(
        self,
        trajectory: Trajectory,
        value: Float[Array, "time copy seat"],
        final: Float[Array, "time copy seat"],
        last: Float[Array, "copy seat"],
    ) -> Float[Array, "time copy seat"]:
        over = trajectory.over[-1][:, None]
        stays = over | (trajectory.alive[-1] & ~trajectory.terminated[-1])
        ends = trajectory.meeting_over
        return meeting_gae(
            trajectory.reward,
            value,
            last,
            stays,
            trajectory.alive,
            jnp.zeros_like(trajectory.alive) if ends is None else ends,
            self.config.discount,
            self.config.gae_lambda,
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
    """Advantages over the episodes of a meeting; see the module docstring.

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
