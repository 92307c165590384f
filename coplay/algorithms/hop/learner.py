"""HOP: beliefs over the goals of others, models of others given their goals, and planning.

The player (`player.py`) keeps a belief about every co-player, samples goals from it, searches the
game once per sample with co-players that act by its opponent models, and acts by the mean of the
values. The learner (`HOP`) improves three things from what was played: an actor towards the policy
of the search, a critic towards the returns, and the opponent models towards what co-players did,
given the goals they turned out to have.
"""

import dataclasses
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Integer, PRNGKeyArray

from coplay.algorithms.hop.config import HOPConfig
from coplay.algorithms.hop.data import (
    Pairs,
    ReplayRows,
    RolloutInfo,
    append,
    by_model,
    contexts_seen,
    discounted_returns,
    draw_rows,
    empty_replay,
    equal_shares,
    goals_in_hindsight,
    picked,
    prototype_shares,
    rewards_by_persona,
)
from coplay.algorithms.hop.networks import (
    Networks,
    actor_loss,
    critic_loss,
    goal_sizes,
    new_networks,
    opponent_loss,
    warm_started,
)
from coplay.algorithms.hop.player import HOPPlayer, check_game_for_hop, goals_of
from coplay.core.game import Game
from coplay.core.group import Group
from coplay.core.numerics import masked_mean
from coplay.core.trajectory import Trajectory
from coplay.models.goal_simulator import sample_goals
from coplay.models.opponent_model import accuracy, predict_from
from coplay.models.personas import NO_PERSONA, PersonaSeed
from coplay.nn import categorical
from coplay.nn.networks import Network, as_read, read, with_inputs
from coplay.nn.sparse_views import SparseView
from coplay.rl.advantages import explained_variance
from coplay.rl.optimisers import make_optimiser
from coplay.rl.parameter_sets import SetLearner, set_keys


class HOPState(NamedTuple):
    """What learning changes. optimiser: one for each network, like them. persona_seed: [seat] of
    the seats that learn. replay: the newest rows last; filled: [] how many of them are real."""

    networks: Networks
    optimiser: Networks
    persona_seed: PersonaSeed
    replay: ReplayRows
    filled: Int[Array, ""]


class HOP(SetLearner):
    """See the module docstring. With `parameters=shared` all active seats are one set. strangers:
    the others are not of this run, and nobody has a persona."""

    config: HOPConfig = eqx.field(static=True)
    strangers: bool = eqx.field(static=True, default=False)

    play_fields = HOPConfig.play_fields
    training_only = ("optimiser", "replay", "filled")

    @property
    def settings(self) -> HOPConfig:
        """The configuration, with what hangs on the game decided."""
        return self.config.resolved(self.shape)

    @property
    def declared_inputs(self) -> tuple[str, ...]:
        if self.config.planner == "search":
            return ("state", "memory")
        return ("view", "memory") if self.settings.has_goals else ("view",)

    @property
    def declared_data(self) -> tuple[str, ...]:
        more = {"declared": (".goal",), "prototypes": (".shares",), "none": ()}
        return (".persona_rewards", ".action", *more[self.settings.goals.source])

    def check(self, game: Game) -> None:
        check_game_for_hop(game, self.settings)

    # --- parameters and players ----------------------------------------------------------------

    def init(
        self,
        key: PRNGKeyArray,
        streams: Int[Array, " seat"],
        parts: Mapping[str, Any] = MappingProxyType({}),
    ) -> HOPState:
        keys = set_keys(self, key, streams)
        others, context = self.game_seats - 1, self._context_size
        networks = jax.vmap(
            lambda key: new_networks(self.settings, self.shape, others, context, key)
        )(keys)
        if "warm_start" in parts:
            learner, state = parts["warm_start"]
            path, separate = self.config.warm_start, self.separate
            networks = warm_started(path, learner, state, networks, self.seats, separate, context)
        optimiser = Networks(
            jax.vmap(self._optimiser.init)(networks.actor),
            jax.vmap(self._optimiser.init)(networks.critic),
            jax.vmap(jax.vmap(self._optimiser.init))(networks.opponents),
        )
        table = jax.random.bits(jax.random.fold_in(key, 1), dtype=jnp.uint32)
        number = streams[np.array(self.seats)].astype(jnp.uint32)
        persona_seed = PersonaSeed(jnp.full_like(number, table), number)
        return HOPState(networks, optimiser, persona_seed, self._empty_replay(), jnp.int32(0))

    @property
    def _context_size(self) -> int:
        """How many numbers actor and critic see beside the ego view (`belief_context`)."""
        settings, shape = self.settings, self.shape
        goal = goal_sizes(settings, shape).features + settings.random_goal
        rates = shape.actions if settings.action_rates else 0
        return shape.personas + (self.game_seats - 1) * (goal + rates)

    def _empty_replay(self) -> ReplayRows:
        declared = self.settings.goals.source == "declared"
        return empty_replay(
            self.config.replay.capacity,
            self.settings.network,
            self.shape,
            self.game_seats,
            len(self.seats),
            self.shape.goal_features if declared else 0,
            self._context_size,
            self._labelled,
        )

    @property
    def _labelled(self) -> int:
        """How many co-players have a prototype."""
        return self.game_seats - 1 if self.settings.goals.source == "prototypes" else 0

    @property
    def _optimiser(self) -> optax.GradientTransformation:
        return make_optimiser(self.config.optimiser)

    @property
    def _each(self) -> "HOP":
        """As if every seat had a set of its own."""
        return dataclasses.replace(self, config=self.config.separated)

    @property
    def _rows(self) -> np.ndarray:
        """[own] the parameter sets of the active seats."""
        return np.broadcast_to(self.set_rows, len(self.active))

    @property
    def _columns(self) -> np.ndarray:
        """[own] which of the seats with parameters the active ones are."""
        return np.array([self.seats.index(seat) for seat in self.active])

    def group(self, state: HOPState) -> Group:
        persona_seed = jax.tree.map(lambda x: x[self._columns], state.persona_seed)
        networks, learning = self._own_networks(state), not self.strangers
        player = self._player(networks, persona_seed, learning=learning)
        return Group(player, self.active, not self.separate)

    def _player(
        self,
        networks: Networks,
        persona_seed: PersonaSeed,
        greedy: bool = False,
        learning: bool = False,
    ) -> HOPPlayer:
        return HOPPlayer(
            actor=networks.actor,
            critic=networks.critic,
            opponents=networks.opponents,
            persona_seed=persona_seed,
            config=self.settings,
            shape=self.shape,
            game_seats=self.game_seats,
            greedy=greedy,
            learning=learning,
        )

    def player(self, state: HOPState, seat: int, greedy: bool = False) -> HOPPlayer:
        row = self.seats.index(seat) if self.separate else 0
        networks = jax.tree.map(lambda x: x[row], state.networks)
        greedy = greedy or self.config.evaluation == "greedy"
        return self._player(networks, PersonaSeed(jnp.uint32(0), jnp.uint32(0)), greedy)

    def alone(self, state: HOPState, seat: int, at: int) -> tuple["HOP", HOPState]:
        """With an empty replay: what was played among others says little about new co-players."""
        row = self.seats.index(seat) if self.separate else 0
        learner = dataclasses.replace(self, seats=(at,), active=(at,), strangers=True)
        networks, optimiser = jax.tree.map(
            lambda x: x[row : row + 1], (state.networks, state.optimiser)
        )
        persona_seed = jax.tree.map(lambda x: x[:1], state.persona_seed)
        return learner, HOPState(
            networks, optimiser, persona_seed, learner._empty_replay(), jnp.int32(0)
        )

    # --- from what was played to rows ----------------------------------------------------------

    def training_data(
        self, game: Game, trajectory: Trajectory
    ) -> tuple[ReplayRows, Trajectory, RolloutInfo]:
        """All seats' ego views and executed actions with goals in hindsight, and the own part of
        the trajectory. `update` fills in targets and personas."""
        steps, copies, seats = trajectory.alive.shape
        executed = jax.vmap(jax.vmap(game.last_actions))(trajectory.after)
        own, realised = np.array(self.active), None
        persona_rewards = trajectory.reward[:, :, own][..., None]
        if game.goals is not None:
            realised = jax.vmap(jax.vmap(game.goals.realised))(trajectory.state, trajectory.after)
            persona_rewards = rewards_by_persona(
                game.goals, self.shape.personas, trajectory.reward[:, :, own], realised[:, :, own]
            )
        goal = jnp.zeros((steps, copies, seats, 0))
        labelled = jnp.ones((steps, copies, seats), bool)
        if self.settings.goals.source == "declared":
            assert game.goals is not None and realised is not None
            goal, labelled = goals_in_hindsight(game.goals, trajectory, realised)
        goals = goals_of(game, self.settings) if self.settings.has_goals else None
        context = contexts_seen(game, goals, trajectory, self.active, self.shape.personas)
        everyone = ReplayRows(
            observation=as_read(self.settings.network, self.shape, trajectory.observation),
            alive=trajectory.alive,
            action=executed.astype(jnp.int8),
            goal=goal,
            labelled=labelled,
            persona=jnp.full((steps, copies, seats), NO_PERSONA, jnp.int8),
            context=context,
            policy=jnp.exp(trajectory.log_policy[:, :, own]),
            target=jnp.zeros((steps, copies, len(own))),
            prototype=jnp.zeros((steps, copies, len(own), self._labelled), jnp.int8),
        )
        rows = jax.tree.map(lambda x: x.reshape(steps * copies, *x.shape[2:]), everyone)
        assert trajectory.episode is not None
        oracle = jnp.exp(jnp.max(trajectory.log_policy, axis=-1)).reshape(steps * copies, seats)
        number = self.settings.goals.prototypes
        shares = prototype_shares(trajectory, self.active, self._labelled, number)
        info = RolloutInfo(trajectory.episode, persona_rewards, oracle, shares)
        return rows, super().training_data(game, trajectory), info

    # --- learning ------------------------------------------------------------------------------

    def update(
        self,
        key: PRNGKeyArray,
        state: HOPState,
        trajectory: tuple[ReplayRows, Trajectory, RolloutInfo],
        progress: Float[Array, ""],
    ) -> tuple[HOPState, dict[str, Float[Array, "seat *action"]]]:
        new, own, info = trajectory
        networks = self._own_networks(state)
        personas = self._personas(state.persona_seed, info.episode)
        new, value = self._with_returns(networks.critic, new, own, info, personas)
        if self._labelled:
            uniform = jax.random.uniform(jax.random.fold_in(key, 1), info.shares.shape[:-1])
            uniform = uniform[:, jnp.argsort(self._by_stream(state))]
            new = new._replace(prototype=sample_goals(uniform, info.shares).astype(jnp.int8))
        metrics = self._prediction_metrics(networks.opponents, new, info.oracle)
        returns = new.target.reshape(value.shape)
        metrics |= {
            "value": masked_mean(value, own.alive, (0, 1)),
            "explained_variance": explained_variance(
                *(x.reshape(-1, len(self.active)) for x in (value, returns, own.alive))
            ),
            "entropy": masked_mean(categorical.entropy(own.log_policy), own.alive, (0, 1)),
        }
        filled = state.filled + new.alive.shape[0]
        state = state._replace(
            replay=append(state.replay, new, self._columns),
            filled=jnp.minimum(filled, self.config.replay.capacity),
        )
        state, terms = self._learn(key, state, progress)
        return state, metrics | terms

    def stages(
        self, key: PRNGKeyArray, state: HOPState, trajectory: Any, progress: Float[Array, ""]
    ) -> dict[str, Any]:
        """Of what was just played, by the networks of each seat; prototypes count as the first."""
        new, own, info = trajectory
        per_seat = jax.tree.map(lambda x: x[self._rows], state.networks)
        personas = self._personas(state.persona_seed, info.episode)
        critic = self._own_networks(state).critic
        new, value = self._with_returns(critic, new, own, info, personas)
        rows = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), new)
        each, active = self._each, jnp.array(self.active)
        mine = jax.tree.map(lambda x: jnp.moveaxis(x, 2, 0), (own.observation, own.alive))
        return {
            "batch": (*mine, rows.context, rows.policy),
            "advantages": (rows.target, jnp.moveaxis(value, 2, 0)),
            "loss": each._gradients(per_seat, rows, jnp.arange(len(active)), active),
        }

    def _with_returns(
        self,
        critic: Network,
        new: ReplayRows,
        own: Trajectory,
        info: RolloutInfo,
        personas: Int[Array, "time copy own"],
    ) -> tuple[ReplayRows, Float[Array, "time copy own"]]:
        """The rows with the personas of the active seats, also in their context, and with returns
        by the rewards of these personas; and the values. critic: see `_own_networks`."""
        number = self.shape.personas
        everyone = new.persona.reshape(*own.over.shape, -1)
        everyone = everyone.at[:, :, np.array(self.active)].set(personas.astype(jnp.int8))
        mine = personas[..., None] == jnp.append(jnp.arange(number), NO_PERSONA)
        reward = jnp.sum(jnp.where(mine, info.persona_rewards, 0.0), axis=-1)
        flags = (personas[..., None] == jnp.arange(number)).astype(jnp.float32)
        context = new.context.reshape(*own.alive.shape, self._context_size)
        context = context.at[..., :number].set(flags)
        shared = not self.separate
        target, value = discounted_returns(critic, own, reward, context, self.config, shared)
        new = new._replace(
            persona=everyone.reshape(new.persona.shape),
            context=context.reshape(new.context.shape),
            target=target.reshape(-1, len(self.active)),
        )
        return new, value

    def _learn(
        self, key: PRNGKeyArray, state: HOPState, progress: Float[Array, ""]
    ) -> tuple[HOPState, dict[str, Float[Array, " seat"]]]:
        """Gradient steps on samples of the replay, and the mean of the losses by seat."""
        replay, rows = self.config.replay, self._rows
        # A gradient that seats share is summed over them (see `in_order_of_streams`).
        order = np.arange(len(self.active)) if self.separate else self._by_stream(state)
        columns, seats = jnp.array(self._columns)[order], jnp.array(self.active)[order]
        own_sets = np.unique(rows)
        networks, optimiser = jax.tree.map(lambda x: x[own_sets], (state.networks, state.optimiser))
        linear = self.config.optimiser.schedule == "linear"
        scale = 1.0 - progress if linear else jnp.ones_like(progress)
        uniform = jax.random.uniform(key, (replay.updates * replay.batch,))
        index = draw_rows(equal_shares(state.replay, state.filled, self.shape.personas), uniform)
        index = jnp.moveaxis(index.reshape(-1, replay.updates, replay.batch), 1, 0)

        def one_step(carry: tuple, index: Array) -> tuple[tuple, dict[str, Array]]:
            batch = picked(state.replay, index, np.array(self.seats))
            return self._step(carry[0], carry[1], batch, columns, seats, scale)

        (networks, optimiser), terms = jax.lax.scan(one_step, (networks, optimiser), index)
        learned = {name: jnp.mean(values, axis=0) for name, values in terms.items()}
        each = np.searchsorted(own_sets, rows)
        networks, optimiser = jax.tree.map(
            lambda old, x: old.at[own_sets].set(x),
            (state.networks, state.optimiser),
            (networks, optimiser),
        )
        state = state._replace(networks=networks, optimiser=optimiser)
        return state, {name: values[each] for name, values in learned.items()}

    def _gradients(
        self,
        networks: Networks,
        batch: ReplayRows,
        columns: Int[Array, " own"],
        seats: Int[Array, " own"],
    ) -> tuple[dict[str, Float[Array, " set"]], Networks]:
        """Losses and gradients of all sets on a batch of rows [seat, sample]. columns, seats: the
        own columns of the batch and the seats of the game from which the sets learn."""
        context = self._own(batch.context[columns])
        seen = read(networks.actor, batch.observation)
        view = with_inputs(self._own(jax.tree.map(lambda x: x[seats], seen)), context)
        legal = self._own(batch.observation.legal[seats])
        # Random actions teach nothing.
        aimed = batch.alive & (batch.persona != self.shape.personas)
        alive = self._own(aimed[seats])
        policy, target = self._own(batch.policy[columns]), self._own(batch.target[columns])

        actor, actor_gradient = jax.vmap(jax.value_and_grad(actor_loss))(
            networks.actor, view, legal, alive, policy
        )
        critic, critic_gradient = jax.vmap(jax.value_and_grad(critic_loss))(
            networks.critic, view, alive, target
        )
        model, model_gradient = jax.vmap(jax.vmap(jax.value_and_grad(opponent_loss)))(
            networks.opponents, self._pairs(batch, seen, batch.prototype[columns], seats)
        )
        terms = {"policy_loss": actor, "value_loss": critic, "opponent_loss": jnp.mean(model, -1)}
        return terms, Networks(actor_gradient, critic_gradient, model_gradient)

    def _step(
        self,
        networks: Networks,
        optimiser: Networks,
        batch: ReplayRows,
        columns: Int[Array, " own"],
        seats: Int[Array, " own"],
        scale: Float[Array, ""],
    ) -> tuple[tuple[Networks, Networks], dict[str, Float[Array, " set"]]]:
        """One gradient step of all sets on one batch, `scale` times as long as usual."""
        terms, gradients = self._gradients(networks, batch, columns, seats)
        learned = jax.vmap(partial(self._apply, scale))
        if self.config.learn_policy:
            actors = learned(networks.actor, gradients.actor, optimiser.actor)
            critics = learned(networks.critic, gradients.critic, optimiser.critic)
        else:
            actors, critics = zip(networks[:2], optimiser[:2], strict=True)
        if self.config.learn_opponents:
            models = jax.vmap(learned)(networks.opponents, gradients.opponents, optimiser.opponents)
        else:
            models = networks.opponents, optimiser.opponents
        changed, states = zip(actors, critics, models, strict=True)
        return (Networks(*changed), Networks(*states)), terms

    def _apply(
        self, scale: Float[Array, ""], network: Network, gradient: Network, state: Any
    ) -> tuple[Network, Any]:
        step, state = self._optimiser.update(gradient, state, network)
        return optax.apply_updates(network, optax.tree.scale(scale, step)), state

    def _own_networks(self, state: HOPState) -> Networks:
        """The networks of the active seats: [own, ...], or those that they share."""
        return jax.tree.map(lambda x: x[self._rows if self.separate else 0], state.networks)

    def _own(self, x: Any) -> Any:
        """[own, sample, ...] as [set, sample, ...]: a set per active seat, or one for all."""
        if self.separate:
            return x
        own = len(self.active)
        return jax.tree.map(lambda x: x.reshape(1, own * x.shape[1], *x.shape[2:]), x)

    def _pairs(
        self,
        batch: ReplayRows,
        view: Float[Array, "seat row input"] | SparseView,
        prototype: Integer[Array, "own row other"],
        seats: Int[Array, " own"],
    ) -> Pairs:
        """What the opponent models of these seats learn from, [set, model, sample, ...], of steps
        [seat, row]. view: as the models read it. prototype: of their co-players."""
        turned = partial(by_model, separate=self.separate, one=self.config.opponents == "shared")
        mask = batch.alive & batch.labelled
        if self.settings.random_goal:  # who acts at random needs no learned model
            mask = mask & (batch.persona != self.shape.personas)
        pairs = Pairs(view, batch.observation.legal, batch.goal, batch.action, mask)
        pairs = jax.tree.map(lambda x: turned(x[self._others(seats)]), pairs)
        if self._labelled:
            followed = jax.nn.one_hot(prototype, self.settings.goals.prototypes)
            pairs = pairs._replace(goal=turned(jnp.swapaxes(followed, 1, 2)))
        return pairs._replace(action=pairs.action.astype(jnp.int32))

    def _others(self, seats: Int[Array, " own"]) -> Int[Array, "own other"]:
        """The co-players of these seats, the next seat first."""
        return (seats[:, None] + np.arange(1, self.game_seats)) % self.game_seats

    def _by_stream(self, state: HOPState) -> Int[Array, " own"]:
        """The places of the active seats in the order of their streams."""
        return jnp.argsort(state.persona_seed.seat[self._columns])

    def _personas(
        self, seeds: PersonaSeed, episode: Int[Array, "time copy"]
    ) -> Int[Array, "time copy own"]:
        """The personas of the active seats; seeds: of all seats with parameters."""
        if self.strangers:
            return jnp.full((*episode.shape, len(self.active)), NO_PERSONA)
        assign, shape = self.config.personas.assign, self.shape
        return jax.vmap(
            lambda seed: assign(seed, episode, shape.personas, self.game_seats), out_axes=-1
        )(jax.tree.map(lambda x: x[self._columns], seeds))

    def _prediction_metrics(
        self, opponents: Network, new: ReplayRows, oracle: Float[Array, "row player"]
    ) -> dict[str, Float[Array, "seat *action"]]:
        """How well opponent models (`_own_networks`) predict for each active seat what was just
        played, before they learn from it, given the goals known in hindsight."""
        active = jnp.array(self.active)
        new = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), new)
        pairs = self._each._pairs(new, read(opponents, new.observation), new.prototype, active)
        each = jax.vmap(jax.vmap(predict_from), (0 if self.separate else None, 0, 0, 0))
        log_probs = each(opponents, pairs.view, pairs.goal, pairs.legal)
        found = jax.vmap(accuracy)(log_probs, pairs.action, pairs.mask)
        most = jnp.moveaxis(oracle[:, self._others(active)], 0, -1)  # [own, other, row]
        best = masked_mean(most.reshape(pairs.mask.shape), pairs.mask, (1, 2))
        return found.metrics() | {
            "opponent_oracle_top1": best,
            "opponent_share_of_oracle": found.top1 / jnp.maximum(best, 1e-6),
        }
