"""Advantage Alignment (Duque, Aghajohari et al., ICLR 2025): opponent shaping by advantages alone.

A seat that does something good for another one raises what the other expects of it. If the other
learns, too, that pays only if the other's gain hangs on what this seat did before. The gradient of
such a learner (LOLA and LOQA are views of the same) is that of PPO with another advantage:

    A*_t = A_t + weight * (sum over k < t of discount^(t-k) d_k) * (sum over others j of A^j_t)

So what is good for the others becomes likelier where the own past went well, and less likely where
it did not: cooperation with reciprocity. Present advantages A are those of GAE; past ones are of
one step each, d_k = r_k + discount V_{k+1} - V_k, because those of GAE hold rewards from t on,
which the present action changes. Both are normalised first: the weight must not hang on the unit of
rewards, and a critic that has not learned yet expects too little, so that every past would seem
good and cooperation would be learned without a condition. The paper's further factor `discount` is
part of the weight.

Others need not be learners. What is good for them is judged by the own critic, given their views
and rewards: in self-play with shared parameters it is their own critic, too. Training alone sees
these. The past of an advantage begins with its episode, or with the rollout.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from coplay.algorithms.advantage_alignment.config import AdvantageAlignmentConfig
from coplay.algorithms.ppo.learner import PPO, PPOBatch, PPOState
from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.core.trajectory import Trajectory, of_seats
from coplay.rl.advantages import normalise, trajectory_gae
from coplay.rl.minibatches import by_copy


class AlignedData(NamedTuple):
    """The trajectory of the learner's seats, and that of all seats of the game."""

    own: Trajectory
    everyone: Trajectory


def aligned(
    advantage: Float[Array, "time copy seat"],
    one_step: Float[Array, "time copy seat"],
    alive: Bool[Array, "time copy seat"],
    first: Bool[Array, "time copy seat"],
    weight: float,
    discount: float,
) -> Float[Array, "time copy seat"]:
    """A* of all seats; see the module docstring. one_step: d, the advantages of single steps.
    first: the step is the first of an episode. Who is not in the game has no advantage, and
    nobody's counts for it."""
    advantage, one_step = (jnp.where(alive, x, 0.0) for x in (advantage, one_step))
    others = jnp.sum(advantage, axis=-1, keepdims=True) - advantage

    def forward(
        past: Float[Array, "copy seat"], row: tuple[Array, Array]
    ) -> tuple[Float[Array, "copy seat"], Float[Array, "copy seat"]]:
        happened, first = row
        past = jnp.where(first, 0.0, past)
        return discount * (past + happened), past

    _, past = jax.lax.scan(forward, jnp.zeros_like(advantage[0]), (one_step, first))
    return jnp.where(alive, advantage + weight * past * others, 0.0)


class AdvantageAlignment(PPO):
    """See the module docstring."""

    config: AdvantageAlignmentConfig = eqx.field(static=True)

    @property
    def declared_data(self) -> tuple[str, ...]:
        return (".own.reward", ".everyone.reward")

    def check(self, game: Game) -> None:
        if game.seats < 2:
            raise UserError("advantage-alignment shapes others: the game needs two seats")

    def training_data(self, game: Game, trajectory: Trajectory) -> AlignedData:
        everyone = of_seats(trajectory, tuple(range(trajectory.alive.shape[-1])))
        return AlignedData(of_seats(trajectory, self.active), everyone)

    def prepare(self, state: PPOState, trajectory: Any) -> tuple[PPOState, PPOBatch]:
        learning, batch = super().prepare(state, trajectory.own)
        found = jax.vmap(self._aligned, (0, None))(learning, trajectory.everyone)
        index = np.array(self.active)
        if self.separate:  # each set has learned in its own seat
            mine = found[np.arange(len(index)), :, :, index][..., None]
        else:
            mine = found[..., index]
        advantage = jax.vmap(lambda x, alive: normalise(by_copy(x), alive))(mine, batch.alive)
        return learning, batch._replace(advantage=advantage)

    def _aligned(self, state: PPOState, everyone: Trajectory) -> Float[Array, "time copy seat"]:
        """A* of all seats as one parameter set sees it."""
        config, alive = self.config, everyone.alive
        assert everyone.past is not None
        _, _, value, final, last = self.values(state, everyone, state.identity)
        values = (everyone, by_copy(value), final, last, config.discount)
        one_step = trajectory_gae(*values, 0.0)
        advantage = trajectory_gae(*values, config.gae_lambda)
        return aligned(
            normalise(advantage, alive),
            normalise(one_step, alive),
            alive,
            everyone.past.first,
            config.alignment_weight,
            config.discount,
        )
