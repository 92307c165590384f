"""The player of MAPPO and HyperMAPPO, and what its networks are given.

The same functions make the inputs while acting and while learning: what an agent learns from is
what it acted on.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.core.game import Game
from coplay.core.player import SEATS, Insight, Memory, Player, View
from coplay.nn import categorical
from coplay.nn.generated_weights import Generated, Heads, squared_length
from coplay.nn.global_state import global_state_of_one
from coplay.nn.hypernetwork import ContextNetwork, next_context, team_mean
from coplay.nn.layer_norm import LayerNormNetwork
from coplay.nn.networks import ViewShape, flatten
from coplay.nn.policy_window import PolicyWindow


class MAPPOMemory(NamedTuple):
    """What a player remembers; arrays of width 0 where it has no such memory.

    actor, critic, context: of the networks. latent: the context of the last step, c.
    """

    actor: Float[Array, "*batch actor"]
    critic: Float[Array, "*batch critic"]
    context: Float[Array, "*batch context"]
    latent: Float[Array, "*batch latent"]


class HypernetworkWeights(eqx.Module):
    """The context network, and what contexts change in the actor (and in the critic, if that is
    generated too)."""

    network: ContextNetwork
    heads: Heads | None
    critic_heads: Heads | None = None


class PlayConfig(NamedTuple):
    """What acting depends on beside the parameters.

    critic_input: what the critic sees. sizes: widths of the memories. ids: whether the hypernetwork
    is given the seat's number. team: agents hear each other. increments_team: one context for all.
    frozen: contexts stay as they are during an episode. accumulation: of contexts. as_input: the
    context is an input of the actor. recurrent: whether actor and critic have a memory.
    perturbation: share of actions by chance. told: the actor is given its last action and reward.
    """

    critic_input: str
    sizes: tuple[int, int, int, int]
    ids: bool = False
    team: bool = False
    increments_team: bool = False
    frozen: bool = False
    accumulation: float = 0.0
    as_input: bool = False
    recurrent: bool = False
    perturbation: float = 0.0
    told: bool = False


def critic_inputs(
    mode: str,
    view: Float[Array, "*batch inputs"],
    global_state: Float[Array, "*batch numbers"] | None,
    identity: Float[Array, "*#batch seats"],
) -> Float[Array, "*batch all"]:
    """What a critic is given. view: the seat's own, flattened, without identity. global_state: None
    where the own view is all there is. identity: one-hot.

    An agent that sees nothing at all, as the dead of SMAX and SMAC do, is shown nothing else
    either: only its number.
    """
    if mode == "own":
        return view
    shown = view if global_state is None else global_state
    if global_state is not None and mode == "agent-specific":
        shown = jnp.concatenate([view, global_state], axis=-1)
    sees = jnp.any(view != 0, axis=-1, keepdims=True)
    ids = jnp.broadcast_to(identity, (*view.shape[:-1], identity.shape[-1]))
    return jnp.concatenate([jnp.where(sees, shown, 0.0), ids], axis=-1)


def critic_shape(mode: str, shape: ViewShape, seats: int) -> ViewShape:
    """The shape of what `critic_inputs` gives."""
    if mode == "own":
        return shape.with_more(0)
    if mode == "global" and shape.global_state:
        return ViewShape((0, 0, 0), shape.global_state + seats, shape.actions)
    return shape.with_more(shape.global_state + seats)


def context_inputs(
    view: Float[Array, "*batch inputs"],
    first: Bool[Array, "*batch"],
    action: Int[Array, "*batch"],
    reward: Float[Array, "*batch"],
    identity: Float[Array, "*#batch seats"] | None,
    actions: int,
    keep: bool,
) -> Float[Array, "*batch all"]:
    """What a context network is given of one agent: its view, its last action one-hot, its last
    reward, whether an episode begins, and its number if there is an identity.

    keep: what was done and got last may have been in the episode before.
    """
    if not keep:
        action, reward = jnp.where(first, -1, action), jnp.where(first, 0.0, reward)
    parts = [
        view,
        (action[..., None] == jnp.arange(actions)).astype(jnp.float32),
        reward[..., None],
        first[..., None].astype(jnp.float32),
    ]
    if identity is not None:
        parts.append(jnp.broadcast_to(identity, (*view.shape[:-1], identity.shape[-1])))
    return jnp.concatenate(parts, axis=-1)


def actor_inputs(
    view: Float[Array, "*batch inputs"],
    first: Bool[Array, "*batch"],
    action: Int[Array, "*batch"],
    reward: Float[Array, "*batch"],
    identity: Float[Array, "*#batch seats"] | None,
    actions: int,
    told: bool,
) -> Float[Array, "*batch all"]:
    """What an actor is given beside a context: its view; if it is `told`, what a context network is
    given; its number if there is an identity."""
    if told:
        return context_inputs(view, first, action, reward, identity, actions, False)
    if identity is None:
        return view
    ids = jnp.broadcast_to(identity, (*view.shape[:-1], identity.shape[-1]))
    return jnp.concatenate([view, ids], axis=-1)


class MAPPOPlayer(Player):
    """Acts by an actor whose weights may depend on a context.

    critic: its memory has to be kept up while the player learns; else None.
    hyper: None for MAPPO.
    identities: [seat of the group, seat] one-hot, one row for each seat that acts by these very
        arrays. sees_id: whether the actor sees its own.
    team: [1] who belongs together: agents hear only those with the same number.
    """

    actor: LayerNormNetwork
    critic: LayerNormNetwork | None
    hyper: HypernetworkWeights | None
    identities: Float[Array, "*group row seats"]
    team: Int[Array, "*group 1"]
    config: PlayConfig = eqx.field(static=True)
    sees_id: bool = eqx.field(static=True)
    greedy: bool = eqx.field(static=True, default=False)

    def start(self, copies: int) -> Memory:
        return MAPPOMemory(*(jnp.zeros((copies, size)) for size in self.config.sizes))

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory]:
        first, own = view.time == 0, flatten(view.observation)
        identity = _own_row(self.identities)
        actor, critic = (jnp.where(first[:, None], 0.0, x) for x in (memory.actor, memory.critic))
        generated, context, latent = self._generated(view, own, first, identity, memory)
        x = self._actor_inputs(view, own, first, identity, latent)
        logits, actor = self.actor.step(x, actor, generated)
        if self.critic is not None and self.config.recurrent:
            global_state = None
            if self.config.critic_input != "own" and not game.view_is_global:
                global_state = global_state_of_one(game, view.state, view.observation)
            shown = critic_inputs(self.config.critic_input, own, global_state, identity)
            # Only the memory counts here, which no generated layer comes before.
            critic = self.critic.step(shown, critic)[1]
        legal = view.observation.legal
        if self.config.perturbation:
            log_policy = categorical.log_policy(logits, legal)
            logits = categorical.mixed(log_policy, legal, self.config.perturbation)
        if self.hyper is not None and isinstance(self.hyper.network.cell, PolicyWindow):
            context = self.hyper.network.cell.told(context, categorical.log_policy(logits, legal))
        new = MAPPOMemory(actor, critic, context, latent)
        memory = jax.tree.map(lambda x, old: jnp.where(view.alive[:, None], x, old), new, memory)
        if self.greedy:
            logits = categorical.greedy(logits, legal)
        return logits, memory

    def explain(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory, Insight | None]:
        """Of a hypernetwork: the context, how long it is, how far it moved since the last step of
        the episode, and how long the increment of the weights is."""
        logits, after = self.act(game, key, view, memory)
        if self.hyper is None:
            return logits, after, None
        moved = jnp.where((view.time == 0)[:, None], 0.0, after.latent - memory.latent)
        figures = {
            "length of the context": jnp.linalg.norm(after.latent, axis=-1),
            "drift of the context": jnp.linalg.norm(moved, axis=-1),
        }
        heads = self.hyper.heads
        if heads is not None:
            length = jnp.sqrt(squared_length(heads.products(heads), after.latent))
            figures["‖Δθ‖ of the actor"] = length
        return logits, after, Insight(figures=figures, context=after.latent)

    def record(self, memory: Memory) -> MAPPOMemory | None:
        """All that it remembers, if it learns: learning begins in the midst of rollouts."""
        return None if self.critic is None else memory

    def _actor_inputs(
        self,
        view: View,
        own: Float[Array, "copy inputs"],
        first: Bool[Array, " copy"],
        identity: Float[Array, " seats"],
        latent: Float[Array, "copy latent"],
    ) -> Float[Array, "copy all"]:
        x = actor_inputs(
            own,
            first,
            view.last_action,
            view.last_reward,
            identity if self.sees_id else None,
            view.observation.legal.shape[-1],
            self.config.told,
        )
        return jnp.concatenate([x, latent], axis=-1) if self.config.as_input else x

    def _generated(
        self,
        view: View,
        own: Float[Array, "copy inputs"],
        first: Bool[Array, " copy"],
        identity: Float[Array, " seats"],
        memory: MAPPOMemory,
    ) -> tuple[Generated | None, Float[Array, "copy context"], Float[Array, "copy latent"]]:
        """What the context changes in the actor, the context network's memory, and the context."""
        if self.hyper is None:
            return None, memory.context, memory.latent
        config, network = self.config, self.hyper.network
        x = context_inputs(
            own,
            first,
            view.last_action,
            view.last_reward,
            identity if config.ids else None,
            view.observation.legal.shape[-1],
            config.frozen,
        )
        known = network.encoded(x)
        if network.attention is not None:
            all_, heard = self._heard(known, view.alive)
            known = network.attention(known[:, None], all_, heard[:, None])[:, 0]
        before = memory.context
        if not config.frozen:
            before = jnp.where(first[:, None], 0.0, before)
        context = network.cell.next(known, before)
        z = network.latent(network.cell.shown(context))
        if config.increments_team:
            z = team_mean(*self._heard(z, view.alive))[:, 0]
        latent = next_context(
            z, memory.latent, first, view.alive, config.accumulation, config.frozen
        )
        heads = self.hyper.heads
        return None if heads is None else Generated(heads, latent), context, latent

    def _heard(
        self, mine: Float[Array, "copy width"], alive: Bool[Array, " copy"]
    ) -> tuple[Float[Array, "copy agent width"], Bool[Array, "copy agent"]]:
        """The same of all agents that act at once, and whose this agent hears: those of its team
        that are in the game."""
        all_, present, team = jax.lax.all_gather((mine, alive, self.team[0]), SEATS)
        return jnp.moveaxis(all_, 0, 1), present.T & (team == self.team[0])


def _own_row(table: Float[Array, "row seats"]) -> Float[Array, " seats"]:
    """The row of the seat that acts, where several seats act by the same arrays."""
    return table[0] if len(table) == 1 else table[jax.lax.axis_index(SEATS)]
