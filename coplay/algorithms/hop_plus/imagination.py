"""What HOP+ imagines: where its imagined games begin, and whom it meets there."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.algorithms.hop_plus.config import HopPlusConfig
from coplay.algorithms.hop_plus.models import HopPlusState, UpdateData
from coplay.core.game import Game, Observation, require_horizon
from coplay.models.code_simulator import with_codes
from coplay.models.goal_codes import GoalModel
from coplay.models.goal_inference import Prototypes
from coplay.models.imagination import ImaginedRollout, Start, imagine
from coplay.models.world_model_game import ImaginedGame, imagined_state
from coplay.nn.networks import Network, flatten


class Imagination(NamedTuple):
    """How a learner imagines. active: its seats in the game. rows: [own] the parameter sets of
    their actors."""

    config: HopPlusConfig
    active: tuple[int, ...]
    rows: np.ndarray

    def counts(self, copies: int) -> tuple[int, int]:
        """Imagined game copies beside so many real ones: with the co-players that were there, and
        among strangers. Whole minibatches of both together."""
        config = self.config
        parts = (config.imagination, config.strangers)
        total = copies * sum(parts) / (1 - sum(parts))
        total = max(round(total / config.minibatches), 1) * config.minibatches
        strangers = round(total * config.strangers / sum(parts))
        return total - strangers, strangers

    def rollout(self, key: PRNGKeyArray, state: HopPlusState, new: UpdateData) -> ImaginedRollout:
        """Imagined steps of every active seat, [time, copy, own, ...], those among strangers last.

        With the co-players that were there, games begin at real steps of seats in the game, with
        what was remembered there. Among strangers they begin where episodes began, and nothing is
        remembered of anybody, unless memory is kept and this is not the first game with them.
        """
        config = self.config
        steps, copies, seats = new.alive.shape
        familiar, strange = self.counts(copies)
        count = familiar + strange
        strangers = jnp.arange(count) >= familiar
        game: Game = new.game
        over_model = config.imagine_over == "model"
        if over_model:
            assert state.world is not None
            game = ImaginedGame(state.world, require_horizon(new.game))
        flat, remembered = jax.tree.map(
            lambda x: x.reshape(steps * copies, *x.shape[2:]), (new.state, new.known.goals)
        )
        sees_codes, inferred = config.goal != "none", config.goal == "inferred"
        actors = jax.tree.map(
            lambda x: x[np.broadcast_to(self.rows, len(self.active))], state.policy.actor
        )
        identity = state.policy.identity[0, np.array(self.active)]

        def add_codes(view: Observation, z: Array, there: Array) -> Observation:
            return (
                view._replace(features=with_codes(view.features, z, there)) if sees_codes else view
            )

        def one_seat(
            key: PRNGKeyArray, seat: Int[Array, ""], actor: Network, identity: Array
        ) -> ImaginedRollout:
            pick_key, company_key, play_key = jax.random.split(key, 3)
            shape = (steps + 1, count)
            alive = jnp.take(new.alive, seat, axis=2).reshape(-1)
            uniform = jax.random.uniform(pick_key, ((steps + 1) * count,)).reshape(shape)
            chosen = jnp.where(
                strangers, one_of(new.begins.reshape(-1), uniform), one_of(alive, uniform)
            )
            others = (seat + jnp.arange(1, seats)) % seats
            at = jax.tree.map(lambda x: x[chosen.reshape(-1)], flat)
            at = jax.vmap(new.game.ego_state, in_axes=(0, None))(at, seat)
            if over_model:
                at = jax.vmap(imagined_state, in_axes=(None, 0))(new.game, at)
            at = jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), at)
            memory = remembered[chosen][:, :, others]
            starts = Start(
                state=at,
                memory=jnp.where(strangers[:, None, None], 0.0, memory),
                stranger=self.company(company_key, state.goals, shape, seats - 1),
            )
            return imagine(
                game,
                state.goals,
                lambda view: actor(flatten(view, identity)),
                add_codes,
                inferred,
                starts,
                play_key,
                familiar,
                config.keep_memory,
            )

        keys = jax.random.split(key, len(self.active))
        found: ImaginedRollout = jax.vmap(one_seat)(keys, jnp.array(self.active), actors, identity)
        last = jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), found.last)
        rest = found._replace(last=None)  # type: ignore[arg-type]
        found = jax.tree.map(lambda x: jnp.moveaxis(x, 0, 2), rest)._replace(last=last)
        counts = state.rounds >= config.imagine_after
        counts &= ~strangers | jnp.any(new.begins)
        return found._replace(alive=found.alive & counts[:, None])

    def company(
        self, key: PRNGKeyArray, goals: GoalModel, shape: tuple[int, int], others: int
    ) -> Float[Array, "time copy other code"]:
        """What the strangers of imagined games are after: a prototype each, as probable as it was
        in what the goals were learned from. In half of the games all are alike: by chance such
        companies would be rare."""
        if not isinstance(goals.inference, Prototypes):
            return jnp.zeros((*shape, others, goals.config.goal_dim))
        alike_key, luck_key = jax.random.split(key)
        number = math.prod(shape)
        alike = jax.random.bernoulli(alike_key, 0.5, (number,)).reshape(*shape, 1)
        uniform = jax.random.uniform(luck_key, (number * others,)).reshape(*shape, others)
        uniform = jnp.where(alike, uniform[..., :1], uniform)
        return goals.inference.sample(uniform, jnp.zeros(goals.config.prototypes))


def one_of(mask: Bool[Array, " row"], uniform: Float[Array, "*number"]) -> Int[Array, "*number"]:
    """Rows in the mask, each drawn by a number in [0, 1); the last row if there are none."""
    ranks = jnp.cumsum(mask)
    rank = 1 + jnp.floor(uniform * jnp.maximum(ranks[-1], 1)).astype(ranks.dtype)
    return jnp.minimum(jnp.searchsorted(ranks, rank), mask.shape[0] - 1)
