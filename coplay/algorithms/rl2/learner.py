"""RL² (Duan et al., 2016; Wang et al., 2016): a recurrent policy that learns to learn.

A *meeting* is some episodes with the same partners. Network, memory and loss are those of recurrent
PPO: the policy is given its last action, its last reward and whether an episode begins, and it
remembers from one episode to the next. What makes it RL² is the return: rewards of later episodes
of the meeting count, so finding out whom it plays with pays, also if it costs something at first.
The sum is `rl.advantages.meeting_gae`.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from coplay.algorithms.ppo.recurrent import RecurrentPPO
from coplay.algorithms.rl2.config import RL2Config
from coplay.core.trajectory import Trajectory
from coplay.rl.advantages import meeting_gae


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
