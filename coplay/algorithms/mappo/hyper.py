"""HyperMAPPO: MAPPO whose actor's weights are θ = θ_base + Σ_k c_k B_k.

The context c is made by a hypernetwork from what agents saw, did and got: encoder → attention over
agents → memory → z = tanh(W h), c_t = ρ c_{t-1} + z_t within an episode. All B start at zero, so at
the start the policy is MAPPO's. The loss is MAPPO's plus

    α · mean ‖θ_t - θ_{t-1}‖²     (smooth_weight; over samples that are not an episode's first)
    β · mean KL(old || new)       (align_weight, in MAPPO too)
    mean ‖Δθ - Δθ_slow‖²          (anchor_weight, off by default)

and the hypernetwork is an optimiser group of its own, clipped by itself. With `parameters` other
than hyper everything below steps aside and the program is MAPPO's.
"""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from coplay.algorithms.mappo.data import Context, MAPPOBatch, MAPPOState, Parameters
from coplay.algorithms.mappo.hyper_config import HyperMAPPOConfig
from coplay.algorithms.mappo.learner import MAPPO
from coplay.algorithms.mappo.player import Hyper, PlayConfig, context_inputs
from coplay.algorithms.ppo.learner import by_copy
from coplay.core.errors import UserError
from coplay.core.numerics import masked_mean
from coplay.core.trajectory import Trajectory
from coplay.nn.generated_weights import Generated, Heads, squared_length
from coplay.nn.hypernetwork import ContextNetwork, accumulated, team_mean
from coplay.nn.networks import ViewShape
from coplay.nn.recurrent_cells import memory_size


class HyperMAPPO(MAPPO):
    """See the module docstring."""

    config: HyperMAPPOConfig = eqx.field(static=True)

    @property
    def declared_inputs(self) -> tuple[str, ...]:
        plain, config = super().declared_inputs, self.config
        if not self._on:
            return plain
        more = ["memory"]
        if config.context != "slow":  # which looks at nothing during an episode
            more += ["last_action", "last_reward"]
            more += ["others"] if config.context == "team" else []
            more += ["identity"] if config.ids and config.increments == "agent" else []
        return tuple(dict.fromkeys((*plain, *more)))

    # --- parameters and players ----------------------------------------------------------------

    @property
    def _on(self) -> bool:
        return self.config.parameters == "hyper"

    def _init_set(
        self, key: PRNGKeyArray, streams: Int[Array, " seat"], parts: Mapping[str, Any]
    ) -> MAPPOState:
        state = super()._init_set(key, streams, parts)
        if not self._on:
            return state
        config, shape = self.config, self.shape
        # The view, the last action, the last reward, whether an episode begins, the number.
        known = shape.features + shape.actions + 2 + config.ids * self.game_seats
        network = ContextNetwork(
            ViewShape(shape.planes, known, shape.actions),
            key=jax.random.fold_in(key, 2),
            width=config.context_width,
            channels=config.channels if config.network == "cnn" and shape.planes[0] else (),
            activation=config.activation,
            attention=config.context != "local",
            memory_kind=config.context_memory,
            units=config.context_units,
            latent=config.latent,
        )
        actor, critic, _ = state.parameters
        hyper = Hyper(
            network,
            Heads(config.latent, actor, config.layers) if config.use == "weights" else None,
            Heads(config.latent, critic, "head") if config.generate_critic else None,
        )
        if "warm_start" in parts:
            hyper = warm_started(hyper, parts["warm_start"][1], config.warm_start)
        parameters = state.parameters._replace(hyper=hyper)
        return state._replace(
            parameters=parameters,
            optimisers=self._start_optimisers(parameters),
            target=hyper if config.anchor_weight else (),
        )

    def _transform(self, part: str) -> optax.GradientTransformation:
        if part != "hyper":
            return super()._transform(part)
        # B starts at zero and has small gradients at first, which a larger eps would hold back.
        return optax.chain(
            optax.clip_by_global_norm(self.config.gradient_clip), optax.scale_by_adam(eps=1e-8)
        )

    def _rate(self, part: str) -> float:
        return self.config.hyper_rate if part == "hyper" else super()._rate(part)

    @property
    def _more_inputs(self) -> int:
        latent = self.config.latent if self._on and self.config.use == "input" else 0
        return super()._more_inputs + latent

    @property
    def _alike(self) -> bool:
        return super()._alike or (self._on and self.config.increments == "team")

    @property
    def _recurrent(self) -> bool:
        return self._on or super()._recurrent

    @property
    def play_config(self) -> PlayConfig:
        plain, config = super().play_config, self.config
        if not self._on:
            return plain
        size = memory_size(config.context_memory, config.context_units)
        return plain._replace(
            sizes=(*plain.sizes[:2], size, config.latent),
            ids=config.ids,
            team=config.context != "local",
            increments_team=config.increments == "team",
            frozen=config.context == "slow",
            accumulation=config.accumulation,
            as_input=config.use == "input",
        )

    # --- what the hypernetwork adds ------------------------------------------------------------

    def _known(
        self,
        own: Float[Array, "copy time seat inputs"],
        trajectory: Trajectory,
        identity: Float[Array, "seat seats"],
    ) -> Float[Array, "copy time seat known"]:
        if not self._on:
            return super()._known(own, trajectory, identity)
        assert trajectory.past is not None
        first, action, reward = (by_copy(x) for x in trajectory.past)
        sees_id = identity if self.config.ids else None
        slow = self.config.context == "slow"
        return context_inputs(own, first, action, reward, sees_id, self.shape.actions, slow)

    def _context(self, hyper: Any, batch: MAPPOBatch) -> Context | None:
        if not self._on:
            return None
        config, memory = self.config, batch.memory
        slow = config.context == "slow"
        z, _ = hyper.network.unroll(
            batch.context, memory.context[:, 0], batch.first & (not slow), batch.alive
        )
        if config.increments == "team":
            z = jnp.broadcast_to(team_mean(z, batch.alive), z.shape)
        now, before = accumulated(
            z, memory.latent[:, 0], batch.first, batch.alive, config.accumulation, slow
        )
        return Context(now, before)

    def _generated(self, hyper: Any, context: Context | None) -> Generated | None:
        if context is None or hyper.heads is None:
            return None
        return Generated(hyper.heads, context.now)

    def _critic_generated(
        self, hyper: Any, contexts: Float[Array, "*sample latent"] | None
    ) -> Generated | None:
        if not self._on or contexts is None or hyper.critic_heads is None:
            return None
        # The critic's loss trains what it generates, not the context, which is the actor's.
        return Generated(hyper.critic_heads, jax.lax.stop_gradient(contexts))

    def _with_context(
        self, view: Float[Array, "row time seat inputs"], context: Context | None
    ) -> Float[Array, "row time seat all"]:
        if context is None or self.config.use == "weights":
            return view
        return jnp.concatenate([view, context.now], axis=-1)

    def _as_others(
        self, batch: MAPPOBatch, context: Context | None, shift: Int[Array, ""]
    ) -> tuple[MAPPOBatch, Context | None]:
        if context is not None:
            context = context._replace(now=jnp.roll(context.now, -shift, axis=2))
        return super()._as_others(batch, context, shift)

    def _penalty(
        self, parameters: Parameters, state: MAPPOState, batch: MAPPOBatch, context: Context | None
    ) -> tuple[Float[Array, ""] | float, dict[str, Float[Array, " seat"]]]:
        if context is None or parameters.hyper.heads is None:
            return 0.0, {}
        config, heads = self.config, parameters.hyper.heads
        products = heads.products(heads)
        step = squared_length(products, context.now - context.before)
        within = batch.alive & ~batch.first
        loss = config.smooth_weight * masked_mean(step, within, None)
        terms = {"smooth_loss": masked_mean(step, within, (0, 1))}
        if jax.tree.leaves(state.target):
            slow: Context | None = self._context(state.target, batch)
            assert slow is not None
            away = self._distance(heads, context.now, state.target.heads, slow.now)
            loss = loss + config.anchor_weight * masked_mean(away, batch.alive, None)
            terms["anchor_loss"] = masked_mean(away, batch.alive, (0, 1))
        return loss, terms

    @staticmethod
    def _distance(
        heads: Heads,
        context: Float[Array, "*sample latent"],
        other: Heads,
        others: Float[Array, "*sample latent"],
    ) -> Float[Array, "*sample"]:
        """‖Bᵀc - B'ᵀc'‖² = cᵀBBᵀc - 2 cᵀBB'ᵀc' + c'ᵀB'B'ᵀc'."""
        cross = jnp.sum((context @ heads.products(other)) * others, axis=-1)
        own = squared_length(heads.products(heads), context)
        theirs = squared_length(other.products(other), others)
        return jnp.maximum(own - 2 * cross + theirs, 0.0)

    def _synchronised(self, state: MAPPOState) -> MAPPOState:
        if not jax.tree.leaves(state.target):
            return state
        due = state.steps % self.config.anchor_every == 0
        target = jax.tree.map(
            lambda slow, now: jnp.where(due, now, slow), state.target, state.parameters.hyper
        )
        return state._replace(target=target)

    def _increments(
        self, parameters: Parameters, batch: MAPPOBatch, context: Context | None
    ) -> dict[str, Float[Array, " seat"]]:
        if context is None or parameters.hyper.heads is None:
            return super()._increments(parameters, batch, context)
        heads = parameters.hyper.heads
        products = heads.products(heads)
        base = optax.tree.norm(parameters.actor)
        norm = jnp.sqrt(squared_length(products, context.now))
        step = jnp.sqrt(squared_length(products, context.now - context.before)) / base
        within = batch.alive & ~batch.first
        return {
            "increment_norm": masked_mean(norm, batch.alive, (0, 1)),
            "increment_step": masked_mean(step, within, (0, 1)),
        }


def warm_started(hyper: Hyper, state: Any, entry: str) -> Hyper:
    """The hypernetwork with the arrays of another run's in the place of those of the same names and
    shapes; an error if there are none. state: of that run's learner; entry: how it was named."""
    if not isinstance(state, MAPPOState) or not isinstance(state.parameters.hyper, Hyper):
        raise UserError(f"warm_start '{entry}' is no run of hyper-mappo with parameters=hyper")
    given = {
        jax.tree_util.keystr(path): array[0]
        for path, array in jax.tree_util.tree_leaves_with_path(state.parameters.hyper)
    }
    mine, structure = jax.tree_util.tree_flatten_with_path(hyper)
    arrays, taken = [], 0
    for path, array in mine:
        other = given.get(jax.tree_util.keystr(path))
        fits = other is not None and other.shape == array.shape
        taken += fits
        arrays.append(other if fits else array)
    if not taken:
        raise UserError(f"warm_start '{entry}': none of its arrays has the shape that is needed")
    return jax.tree_util.tree_unflatten(structure, arrays)
