"""What a hypernetwork does in MAPPO: it makes contexts, and contexts change the actor's weights.

    θ = θ_base + Σ_k c_k B_k

The context c comes from what agents saw, did and got: encoder → attention over agents → memory →
z = tanh(W h), c_t = ρ c_{t-1} + z_t within an episode. All B start at zero, so at the start the
policy is MAPPO's. To MAPPO's loss it adds

    α · mean ‖θ_t - θ_{t-1}‖²     (smooth_weight; over samples that are not an episode's first)
    mean ‖Δθ - Δθ_slow‖²          (anchor_weight, off by default)
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from coplay.algorithms.mappo.config import HyperMAPPOConfig
from coplay.algorithms.mappo.data import Context, MAPPOBatch, MAPPOState, Parameters
from coplay.algorithms.mappo.player import HypernetworkWeights, PlayConfig, context_inputs
from coplay.core.errors import UserError
from coplay.core.numerics import masked_mean
from coplay.core.trajectory import Trajectory
from coplay.nn.generated_weights import Generated, Heads, squared_length
from coplay.nn.hypernetwork import ContextNetwork, accumulated, team_mean
from coplay.nn.networks import ViewShape
from coplay.nn.recurrent_cells import memory_size
from coplay.rl.minibatches import by_copy
from coplay.rl.optimisers import OptimiserConfig

READS_NUMBERS = (".encoder.entry.", ".encoder.layers[0].weight")
"""Arrays of the context network whose last axis is its inputs, of which the number is the last."""

EPSILON = 1e-8  # B starts at zero and has small gradients at first, which more would hold back


class Hypernetwork(NamedTuple):
    """How the hypernetwork of a learner is made and used; its arrays are in the learner's state."""

    config: HyperMAPPOConfig
    shape: ViewShape
    game_seats: int

    # --- what it is ----------------------------------------------------------------------------

    @property
    def declared_inputs(self) -> tuple[str, ...]:
        """What must change what players do, beside what MAPPO declares."""
        hyper = self.config.hypernetwork
        if hyper.context == "slow":  # which looks at nothing during an episode
            return ("memory",)
        others = ("others",) if hyper.context == "team" else ()
        identity = ("identity",) if hyper.ids and hyper.increments == "agent" else ()
        return ("memory", "last_action", "last_reward", *others, *identity)

    @property
    def alike(self) -> bool:
        """Whether all agents have the same increments."""
        return self.config.hypernetwork.increments == "team"

    @property
    def anchored(self) -> bool:
        """Whether there is a slow copy."""
        return self.config.hypernetwork.acting == "target" or bool(self.config.anchor_weight)

    @property
    def actor_features(self) -> int:
        """How many inputs of the actor are the context's."""
        hyper = self.config.hypernetwork
        return hyper.latent if hyper.use == "input" else 0

    @property
    def memory_width(self) -> int:
        """Numbers in the context network's memory."""
        hyper = self.config.hypernetwork
        if hyper.memory == "window":
            return hyper.window * hyper.width
        if hyper.memory == "policies":
            return hyper.window * (hyper.width + self.shape.actions)
        return memory_size(hyper.memory, hyper.units)

    @property
    def optimiser(self) -> OptimiserConfig:
        """Of the hypernetwork, which is a part of its own."""
        rate = self.config.hypernetwork.learning_rate
        return dataclasses.replace(self.config.optimiser, learning_rate=rate, epsilon=EPSILON)

    def play_config(self, plain: PlayConfig) -> PlayConfig:
        """What acting depends on, from what MAPPO's acting depends on."""
        hyper = self.config.hypernetwork
        return plain._replace(
            sizes=(*plain.sizes[:2], self.memory_width, hyper.latent),
            ids=hyper.ids,
            team=hyper.context != "local",
            increments_team=hyper.increments == "team",
            frozen=hyper.context == "slow",
            accumulation=hyper.accumulation,
            as_input=hyper.use == "input",
        )

    def new_weights(
        self, key: PRNGKeyArray, actor: Any, critic: Any, parts: Mapping[str, Any]
    ) -> HypernetworkWeights:
        """Its arrays before learning, for these networks. parts: see `Learner.init`."""
        config, hyper, shape = self.config, self.config.hypernetwork, self.shape
        # The last action, the last reward, whether an episode begins, the number.
        known = shape.actions + 2 + hyper.ids * self.game_seats
        network = ContextNetwork(
            shape.with_more(known),
            key=key,
            width=hyper.width,
            channels=config.network.convolutions if shape.planes[0] else (),
            set_width=config.network.set_width,
            activation=config.network.activation,
            attention="none" if hyper.context == "local" else hyper.attention,
            heads=hyper.attention_heads,
            memory_kind=hyper.memory,
            units=hyper.units,
            window=hyper.window,
            temperature=hyper.temperature,
            latent=hyper.latent,
        )
        weights = HypernetworkWeights(
            network,
            Heads(hyper.latent, actor, hyper.layers) if hyper.use == "weights" else None,
            Heads(hyper.latent, critic, "head") if hyper.generate_critic else None,
        )
        if "warm_start" not in parts:
            return weights
        state = parts["warm_start"][1]
        return warm_started(weights, state, config.warm_start, self.game_seats)

    def acting(self, state: MAPPOState) -> Parameters:
        """The parameters that act."""
        if self.config.hypernetwork.acting == "current":
            return state.parameters
        return state.parameters._replace(hyper=state.target)

    # --- contexts ------------------------------------------------------------------------------

    def inputs(
        self,
        own: Float[Array, "copy time seat inputs"],
        trajectory: Trajectory,
        identity: Float[Array, "seat seats"],
    ) -> Float[Array, "copy time seat known"]:
        """What the context network is given."""
        assert trajectory.past is not None
        hyper = self.config.hypernetwork
        first, action, reward = (by_copy(x) for x in trajectory.past)
        sees_id = identity if hyper.ids else None
        slow = hyper.context == "slow"
        return context_inputs(own, first, action, reward, sees_id, self.shape.actions, slow)

    def contexts(self, weights: HypernetworkWeights, batch: MAPPOBatch) -> Context:
        """The contexts of all samples."""
        hyper, memory = self.config.hypernetwork, batch.memory
        slow = hyper.context == "slow"
        z, _ = weights.network.unroll(
            batch.context,
            memory.context[:, 0],
            batch.first & (not slow),
            batch.alive,
            batch.log_policy,
        )
        if hyper.increments == "team":
            z = jnp.broadcast_to(team_mean(z, batch.alive), z.shape)
        now, before = accumulated(
            z, memory.latent[:, 0], batch.first, batch.alive, hyper.accumulation, slow
        )
        return Context(now, before)

    def of_others(self, context: Context, shift: Int[Array, ""]) -> Context:
        """In the place of each agent's context, that of the agent `shift` seats further on."""
        return context._replace(now=jnp.roll(context.now, -shift, axis=2))

    # --- what contexts change ------------------------------------------------------------------

    def actor_inputs(
        self, view: Float[Array, "row time seat inputs"], context: Context
    ) -> Float[Array, "row time seat all"]:
        """What the actor is given, with the context if that is an input."""
        if self.config.hypernetwork.use == "weights":
            return view
        return jnp.concatenate([view, context.now], axis=-1)

    def generated(self, weights: HypernetworkWeights, context: Context) -> Generated | None:
        """What contexts change in the actor."""
        return None if weights.heads is None else Generated(weights.heads, context.now)

    def critic_generated(
        self, weights: HypernetworkWeights, latent: Float[Array, "*sample latent"]
    ) -> Generated | None:
        """What contexts change in the critic. The critic's loss trains what it generates, not the
        context, which is the actor's."""
        if weights.critic_heads is None:
            return None
        return Generated(weights.critic_heads, jax.lax.stop_gradient(latent))

    def penalty(
        self, parameters: Parameters, state: MAPPOState, batch: MAPPOBatch, context: Context
    ) -> tuple[Float[Array, ""] | float, dict[str, Float[Array, " seat"]]]:
        """What is added to the loss, and its terms."""
        heads = parameters.hyper.heads
        if heads is None:
            return 0.0, {}
        step = squared_length(heads.products(heads), context.now - context.before)
        within = batch.alive & ~batch.first
        loss = self.config.smooth_weight * masked_mean(step, within, None)
        terms = {"smooth_loss": masked_mean(step, within, (0, 1))}
        if jax.tree.leaves(state.target):
            slow = self.contexts(state.target, batch)
            away = _distance(heads, context.now, state.target.heads, slow.now)
            loss = loss + self.config.anchor_weight * masked_mean(away, batch.alive, None)
            terms["anchor_loss"] = masked_mean(away, batch.alive, (0, 1))
        return loss, terms

    def synchronised(self, state: MAPPOState) -> MAPPOState:
        """The state with its slow copy brought up to date, if it has one and the time has come."""
        if not jax.tree.leaves(state.target):
            return state
        hyper = self.config.hypernetwork
        every = hyper.acting_every if hyper.acting == "target" else self.config.anchor_every
        due = state.steps % every == 0
        target = jax.tree.map(
            lambda slow, now: jnp.where(due, now, slow), state.target, state.parameters.hyper
        )
        return state._replace(target=target)

    def increments(
        self, parameters: Parameters, batch: MAPPOBatch, context: Context
    ) -> dict[str, Float[Array, " seat"]]:
        """How large generated increments are, and how much they change within episodes; empty if
        there are none."""
        heads = parameters.hyper.heads
        if heads is None:
            return {}
        products = heads.products(heads)
        base = optax.tree.norm(parameters.actor)
        norm = jnp.sqrt(squared_length(products, context.now))
        step = jnp.sqrt(squared_length(products, context.now - context.before)) / base
        within = batch.alive & ~batch.first
        return {
            "increment_norm": masked_mean(norm, batch.alive, (0, 1)),
            "increment_step": masked_mean(step, within, (0, 1)),
        }


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


def warm_started(
    weights: HypernetworkWeights, state: Any, entry: str, seats: int
) -> HypernetworkWeights:
    """The arrays of another run's hypernetwork in the place of those of the same names and shapes;
    an error if there are none. Where the two games differ in their number of agents alone, what
    reads an agent's number is taken over for the numbers that both have.

    state: of that run's learner; entry: how it was named. seats: of the game here.
    """
    if not isinstance(state, MAPPOState) or not isinstance(
        state.parameters.hyper, HypernetworkWeights
    ):
        raise UserError(f"warm_start '{entry}' is no run of hyper-mappo with parameters=hyper")
    given = {
        jax.tree_util.keystr(path): array[0]
        for path, array in jax.tree_util.tree_leaves_with_path(state.parameters.hyper)
    }
    mine, structure = jax.tree_util.tree_flatten_with_path(weights)
    more = seats - state.identity.shape[-1]
    arrays, taken = [], 0
    for path, array in mine:
        name = jax.tree_util.keystr(path)
        other = given.get(name)
        if other is not None and any(part in name for part in READS_NUMBERS):
            other = _renumbered(array, other, more)
        fits = other is not None and other.shape == array.shape
        taken += fits
        arrays.append(other if fits else array)
    if not taken:
        raise UserError(f"warm_start '{entry}': none of its arrays has the shape that is needed")
    return jax.tree_util.tree_unflatten(structure, arrays)


def _renumbered(mine: Any, other: Any, more: int) -> Any:
    """`other` with as many inputs as `mine`, [..., inputs] both, if it is the number of agents that
    makes the difference, which is `more`."""
    if mine.shape[:-1] != other.shape[:-1] or mine.shape[-1] - other.shape[-1] != more:
        return other
    common = min(mine.shape[-1], other.shape[-1])
    return jnp.concatenate([other[..., :common], mine[..., common:]], axis=-1)
