"""Recurrent PPO: independent PPO whose actor and critic remember, so that they can tell from what
happened whom they play with.

Advantages, loss and optimisation are those of `PPO`. A rollout begins with the memories that the
last one left at the table; the update computes all later ones anew with the parameters it changes,
over whole rollouts of whole game copies. So gradients go back to the beginning of a rollout and no
further, or as far as `memory.sequence_length` says.
"""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.algorithms.ppo.config import RecurrentPPOConfig
from coplay.algorithms.ppo.learner import PPO, Net, PPOBatch, PPOState
from coplay.core.game import Game, Observation
from coplay.core.player import Insight, Memory, Player, View
from coplay.core.trajectory import Trajectory, rows_where
from coplay.nn import categorical
from coplay.nn.networks import ViewShape, flatten
from coplay.nn.recurrent import GRUNetwork
from coplay.nn.recurrent_cells import memory_size
from coplay.rl.minibatches import by_copy


class GRUMemory(NamedTuple):
    """Memories of actor and critic; the critic's is empty, (), in a player that learns no more."""

    actor: Float[Array, "copy size"]
    critic: Any


class GRUPlayer(Player):
    """Acts by a recurrent actor. In a group every array has a leading [seat] axis.

    critic: its memory has to be kept up while the player learns or tells the value; else None.
    A player that left the game remembers nothing new until the next episode.
    """

    actor: GRUNetwork
    critic: GRUNetwork | None
    identity: Float[Array, "*seat id"]
    size: int = eqx.field(static=True)
    keep: bool = eqx.field(static=True)
    greedy: bool = eqx.field(static=True, default=False)

    def start(self, copies: int) -> Memory:
        empty = jnp.zeros((copies, self.size))
        return GRUMemory(empty, () if self.critic is None else empty)

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory]:
        x, memory = self._situation(view, memory)
        logits, actor = self.actor.step(x, memory.actor)
        critic = () if self.critic is None else self.critic.step(x, memory.critic)[1]
        memory = jax.tree.map(
            lambda new, old: jnp.where(view.alive[:, None], new, old),
            GRUMemory(actor, critic),
            memory,
        )
        if self.greedy:
            logits = categorical.greedy(logits, view.observation.legal)
        return logits, memory

    def _situation(self, view: View, memory: Memory) -> tuple[Float[Array, "copy input"], Memory]:
        """What the networks read, and the memory as they find it."""
        first = view.time == 0
        x = inputs(
            view.observation, self.identity, first, view.last_action, view.last_reward, self.keep
        )
        if not self.keep:
            memory = jax.tree.map(lambda old: jnp.where(first[:, None], 0.0, old), memory)
        return x, memory

    def explain(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory, Insight | None]:
        logits, after = self.act(game, key, view, memory)
        if self.critic is None:
            return logits, after, None
        x, before = self._situation(view, memory)
        return logits, after, Insight(value=self.critic.step(x, before.critic)[0][..., 0])


def inputs(
    observation: Observation,
    identity: Float[Array, "*#batch id"],
    first: Bool[Array, "*batch"],
    action: Int[Array, "*batch"],
    reward: Float[Array, "*batch"],
    keep: bool,
) -> Float[Array, "*batch inputs"]:
    """What the networks are given: ego view, identity, the seat's last action one-hot, its last
    reward, and whether an episode begins. Unless memory is kept, nothing is known of the episode
    before."""
    if not keep:
        action, reward = jnp.where(first, -1, action), jnp.where(first, 0.0, reward)
    actions = jnp.arange(observation.legal.shape[-1])
    parts = [
        flatten(observation, identity),
        (action[..., None] == actions).astype(jnp.float32),
        reward[..., None],
        first[..., None].astype(jnp.float32),
    ]
    return jnp.concatenate(parts, axis=-1)


def emptied(
    first: Bool[Array, "*batch"], action: Int[Array, "*batch"], keep: bool
) -> Bool[Array, "*batch"]:
    """Where a memory is empty before a step: when an episode begins, or, if it is kept, when a
    meeting does and nothing was done before. first, action: of `Past`."""
    return action < 0 if keep else first


class Carried(NamedTuple):
    """`PPOBatch.past`: memories before the first step [copy, 1, seat, size], and where they are
    emptied [copy, time, seat]."""

    memory: GRUMemory
    cleared: Bool[Array, "copy time seat"]


class RecurrentPPO(PPO):
    """See the module docstring."""

    config: RecurrentPPOConfig = eqx.field(static=True)

    play_fields = ("memory.keep",)

    @property
    def declared_inputs(self) -> tuple[str, ...]:
        return (*super().declared_inputs, "last_action", "last_reward", "memory")

    def new_network(
        self, shape: ViewShape, outputs: int, key: PRNGKeyArray, head_scale: float
    ) -> GRUNetwork:
        network = self.config.network
        return GRUNetwork(
            # The last action, the last reward, and whether an episode begins.
            shape.with_more(shape.actions + 2),
            outputs,
            self.config.memory.units,
            key=key,
            hidden=network.hidden,
            channels=network.convolutions,
            centred=network.kind == "centred",
            set_width=network.set_width,
            activation=network.activation,
            head_scale=head_scale,
            kind=self.config.memory.kind,
        )

    def new_player(
        self, actor: Net, identity: Float[Array, "*seat id"], greedy: bool, critic: Net = None
    ) -> GRUPlayer:
        memory = self.config.memory
        size = memory_size(memory.kind, memory.units)
        return GRUPlayer(actor, critic, identity, size, memory.keep, greedy)

    def valued(self, player: Player, state: PPOState, seat: int) -> Player:
        assert isinstance(player, GRUPlayer)
        row = self.seats.index(seat) if self.separate else 0
        return dataclasses.replace(player, critic=jax.tree.map(lambda x: x[row], state.critic))

    def values(
        self, state: PPOState, trajectory: Trajectory, identity: Float[Array, "seat id"]
    ) -> tuple[
        Float[Array, "copy time seat inputs"],
        Carried,
        Float[Array, "copy time seat"],
        Float[Array, "time copy seat"],
        Float[Array, "copy seat"],
    ]:
        critic, keep = state.critic, self.config.memory.keep
        past = trajectory.past
        assert past is not None
        observation = jax.tree.map(by_copy, trajectory.observation)
        first, action, reward = (by_copy(x) for x in past)
        view = inputs(observation, identity, first, action, reward, keep)
        cleared = emptied(first, action, keep)
        alive = by_copy(trajectory.alive)
        value, memories = critic.unroll(view, trajectory.memory.critic, cleared, alive)
        memories = by_copy(memories)

        def following(row: tuple) -> Float[Array, "copy seat"]:
            """The value after a step."""
            observation, action, reward, memory, first = row
            x = inputs(observation, identity, first, action, reward, keep)
            return critic.step(x, memory)[0][..., 0]

        done = (trajectory.action, trajectory.reward)
        rows = (trajectory.final, *done, memories, jnp.zeros_like(trajectory.alive))
        final = rows_where(following, jnp.any(trajectory.truncated, axis=-1), rows)
        # Who is out of the game did nothing in the last step: its last action is an earlier one.
        acted, *known = (x[-1] for x in (trajectory.alive, *done, past.action, past.reward))
        done = (jnp.where(acted, known[0], known[2]), jnp.where(acted, known[1], known[3]))
        begins = jnp.broadcast_to(trajectory.over[-1][:, None], acted.shape)
        last = following((trajectory.last, *done, memories[-1], begins))
        start = jax.tree.map(lambda x: x[:, None], trajectory.memory)
        return view, Carried(start, cleared), value[..., 0], final, last

    def outputs(
        self, networks: tuple[GRUNetwork, GRUNetwork], batch: PPOBatch
    ) -> tuple[Float[Array, "*sample action"], Float[Array, "*sample 1"]]:
        past: Carried = batch.past
        length = self.config.memory.sequence_length
        logits, values = (
            unrolled(network, batch.view, memory[:, 0], past.cleared, batch.alive, length)
            for network, memory in zip(networks, past.memory, strict=True)
        )
        return logits, values


def unrolled(
    network: GRUNetwork,
    view: Float[Array, "copy time seat inputs"],
    memory: Float[Array, "copy seat size"],
    cleared: Bool[Array, "copy time seat"],
    alive: Bool[Array, "copy time seat"],
    length: int,
) -> Float[Array, "copy time seat outputs"]:
    """Outputs of all steps. Gradients go back through at most `length` steps; 0: through all."""
    steps, outputs = alive.shape[1], []
    for begin in range(0, steps, length or steps):
        part = slice(begin, begin + (length or steps))
        given = (view[:, part], memory, cleared[:, part], alive[:, part])
        output, memories = network.unroll(*given)
        memory = jax.lax.stop_gradient(memories[:, -1])
        outputs.append(output)
    return outputs[0] if len(outputs) == 1 else jnp.concatenate(outputs, axis=1)
