"""What HOP+ imagines: where its imagined games begin, and whom it meets there."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.algorithms.hop_plus.config import HopPlusConfig
from coplay.algorithms.hop_plus.models import HopPlusData, HopPlusState
from coplay.algorithms.hop_plus.player import HopPlusMemory
from coplay.core.game import Game, Observation, require_horizon
from coplay.core.trajectory import seat_keys
from coplay.models.code_simulator import with_codes
from coplay.models.correction import sample_groups
from coplay.models.goal_codes import GoalModel
from coplay.models.imagination import ImaginedRollout, Imaginer, Start
from coplay.models.world_model_game import ImaginedGame, imagined_state
from coplay.nn.networks import Network, flatten


class Imagination(NamedTuple):
    """How a learner imagines. active: its seats in the game. rows: [own] the parameter sets of
    their actors."""

    config: HopPlusConfig
    active: tuple[int, ...]
    rows: np.ndarray

    def counts(self, copies: int) -> tuple[int, int]:
        """Imagined game copies beside so many real ones: with the real co-players, and among
        strangers. Both together are whole minibatches."""
        config = self.config.imagination
        parts = (config.share, config.strangers)
        total = copies * sum(parts) / (1 - sum(parts))
        minibatches = self.config.minibatches
        total = max(round(total / minibatches), 1) * minibatches
        strangers = round(total * config.strangers / sum(parts))
        return total - strangers, strangers

    def rollout(self, key: PRNGKeyArray, state: HopPlusState, new: HopPlusData) -> ImaginedRollout:
        """Imagined steps of every active seat, [time, copy, own, ...], those among strangers last.

        With the real co-players, games begin at real steps of seats in the game, with the memory
        that the player had there. Among strangers they begin where episodes began, with an empty
        memory, unless memory is kept and this is not the first game with them.
        """
        familiar, strange = self.counts(new.alive.shape[1])
        strangers = jnp.arange(familiar + strange) >= familiar
        game: Game = new.game
        if self.config.imagination.over == "model":
            assert state.world is not None
            game = ImaginedGame(state.world, require_horizon(new.game))

        def one_seat(
            key: PRNGKeyArray, seat: Int[Array, ""], actor: Network, identity: Array
        ) -> ImaginedRollout:
            pick_key, company_key, play_key = jax.random.split(key, 3)
            imaginer = Imaginer(
                game=game,
                goals=state.goals,
                actor=lambda view: actor(flatten(view, identity)),
                add_codes=self._add_codes,
                inferred=self.config.goals.use == "inferred",
                familiar=familiar,
                lasting=self.config.keep_memory or self.config.inter,
                keep=self.config.belief.keep if self.config.inter else None,
            )
            starts = self._starts(pick_key, company_key, state.goals, new, seat, strangers)
            return imaginer.rollout(starts, play_key)

        actors = jax.tree.map(
            lambda x: x[np.broadcast_to(self.rows, len(self.active))], state.policy.actor
        )
        identity = state.policy.identity[0, np.array(self.active)]
        keys = seat_keys(key, new.streams)[np.array(self.active)]
        found: ImaginedRollout = jax.vmap(one_seat)(keys, jnp.array(self.active), actors, identity)
        last = jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), found.last)
        rest = found._replace(last=None)  # type: ignore[arg-type]
        found = jax.tree.map(lambda x: jnp.moveaxis(x, 0, 2), rest)._replace(last=last)
        counts = state.updates >= self.config.imagination.after
        counts &= ~strangers | jnp.any(new.begins)
        return found._replace(alive=found.alive & counts[:, None])

    def _add_codes(
        self,
        view: Observation,
        told: Float[Array, "copy other number"],
        there: Bool[Array, "copy other"],
    ) -> Observation:
        """Views as the policy sees them."""
        if self.config.goals.use == "none":
            return view
        return view._replace(features=with_codes(view.features, told, there))

    def _starts(
        self,
        pick_key: PRNGKeyArray,
        company_key: PRNGKeyArray,
        goals: GoalModel,
        new: HopPlusData,
        seat: Int[Array, ""],
        strangers: Bool[Array, " copy"],
    ) -> Start:
        """Where games of a seat begin, [time + 1, copy, ...]. strangers: which copies are among
        strangers."""
        steps, copies, seats = new.alive.shape
        shape = (steps + 1, strangers.shape[0])
        flat, known = jax.tree.map(
            lambda x: x.reshape(steps * copies, *x.shape[2:]), (new.state, new.known)
        )
        alive = jnp.take(new.alive, seat, axis=2).reshape(-1)
        uniform = jax.random.uniform(pick_key, (shape[0] * shape[1],)).reshape(shape)
        chosen = jnp.where(
            strangers, one_of(new.begins.reshape(-1), uniform), one_of(alive, uniform)
        )
        at: Any = jax.tree.map(lambda x: x[chosen.reshape(-1)], flat)
        at = jax.vmap(new.game.ego_state, in_axes=(0, None))(at, seat)
        if self.config.imagination.over == "model":
            at = jax.vmap(imagined_state, in_axes=(None, 0))(new.game, at)
        at = jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), at)
        others = (seat + jnp.arange(1, seats)) % seats
        here: HopPlusMemory = jax.tree.map(lambda x: x[chosen][:, :, others], known)
        memory = jnp.where(strangers[:, None, None], 0.0, here.goals)
        company_key, tilt_key = jax.random.split(company_key)
        tilt, acted = None, here.acted
        if acted is not None:
            tilt, met = sample_groups(tilt_key, shape, seats - 1, new.game.actions)
            acted = jax.tree.map(
                lambda x, y: jnp.where(strangers.reshape(-1, *[1] * (x.ndim - 2)), x, y), met, acted
            )
        return Start(
            state=at,
            memory=memory,
            stranger=goals.inference.sample_groups(company_key, shape, seats - 1),
            episodes=jnp.zeros_like(memory) if self.config.inter else None,
            acted=acted,
            tilt=tilt,
        )


def one_of(mask: Bool[Array, " row"], uniform: Float[Array, "*number"]) -> Int[Array, "*number"]:
    """Rows in the mask, each sampled by a number in [0, 1); the last row if there are none."""
    ranks = jnp.cumsum(mask)
    rank = 1 + jnp.floor(uniform * jnp.maximum(ranks[-1], 1)).astype(ranks.dtype)
    return jnp.minimum(jnp.searchsorted(ranks, rank), mask.shape[0] - 1)
