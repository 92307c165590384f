"""HOP: beliefs over the goals of others, models of others given their goals, and planning.

The player (`player.py`) keeps a belief about every co-player, draws goals from it,
searches the game once per draw with co-players that act by its opponent models, and acts by the
averaged values. The learner (`HOP`) improves three things from what was played: an actor towards
what the search chose, a critic towards the returns, and the opponent models towards what co-players
really did, given the goals they turned out to have.
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
from jaxtyping import Array, Float, Int, PRNGKeyArray, Shaped

from coplay.algorithms.hop.config import HOPConfig
from coplay.algorithms.hop.data import (
    Pairs,
    ReplayRows,
    RolloutInfo,
    draw_rows,
    equal_shares,
    picked,
)
from coplay.algorithms.hop.networks import Networks, new_networks, warm_started
from coplay.algorithms.hop.player import HOPPlayer, goals_of, refuse_partial_views
from coplay.core.errors import UserError
from coplay.core.game import Game, Observation
from coplay.core.goals import hindsight
from coplay.core.group import Group
from coplay.core.learner import Learner
from coplay.core.numerics import masked_mean
from coplay.core.trajectory import Trajectory, seat_keys
from coplay.models.goal_simulator import belief_context
from coplay.models.opponent_model import accuracy, cross_entropy, predict
from coplay.models.personas import NO_PERSONA, PersonaSeed
from coplay.nn import categorical
from coplay.nn.networks import Network, ViewShape, flatten
from coplay.rl.advantages import explained_variance, gae


class HOPState(NamedTuple):
    """What learning changes. optimiser: one for each network, like them. salt: [seat] of the
    characters of the seats that learn. replay: the newest rows last; filled: [] how many of them
    are real."""

    networks: Networks
    optimiser: Networks
    persona_seed: PersonaSeed
    replay: ReplayRows
    filled: Int[Array, ""]


class HOP(Learner):
    """See the module docstring. With `parameters=shared` all active seats are one set. strangers:
    the others are not of this run, and nobody takes on a character."""

    config: HOPConfig = eqx.field(static=True)
    shape: ViewShape
    game_seats: int = eqx.field(static=True)
    seats: tuple[int, ...] = eqx.field(static=True)
    active: tuple[int, ...] = eqx.field(static=True)
    strangers: bool = eqx.field(static=True, default=False)

    play_fields = HOPConfig.play_fields

    @property
    def declared_inputs(self) -> tuple[str, ...]:
        if self.config.planner == "on":
            return ("state", "memory")
        return ("view",) if self.config.direct_om else ("view", "memory")

    @property
    def declared_data(self) -> tuple[str, ...]:
        return (".persona_rewards", ".action", *(() if self.config.direct_om else (".goal",)))

    def check(self, game: Game) -> None:
        refuse_partial_views(game)
        if self.game_seats < 2:
            raise UserError("HOP thinks about co-players: the game needs at least two seats")
        if not self.config.direct_om and game.goals is None:
            raise UserError(
                f"HOP needs the goals of '{game.name}', which declares none: give the game a "
                "property `goals`, or model co-players without goals by --direct-om"
            )

    # --- parameters and players ----------------------------------------------------------------

    def init(
        self,
        key: PRNGKeyArray,
        streams: Int[Array, " seat"],
        parts: Mapping[str, Any] = MappingProxyType({}),
    ) -> HOPState:
        keys = seat_keys(key, streams)[np.array(self.seats)] if self._separate else key[None]
        others, context = self.game_seats - 1, self._context_size
        networks = jax.vmap(
            lambda key: new_networks(self.config, self.shape, others, context, key)
        )(keys)
        if "warm_start" in parts:
            learner, state = parts["warm_start"]
            path, separate = self.config.warm_start, self._separate
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
        """How many numbers actor and critic are told beside the ego view (`belief_context`)."""
        goal = 0 if self.config.direct_om else self.shape.goal_features + self.config.expects_random
        return self.shape.personas + (self.game_seats - 1) * goal

    def _empty_replay(self) -> ReplayRows:
        """A replay of zeros, in the shapes of `training_data`."""
        rows, seats, own = self.config.replay, self.game_seats, len(self.seats)
        shape = self.shape
        goal = 0 if self.config.direct_om else shape.goal_features
        return ReplayRows(
            observation=Observation(
                planes=jnp.zeros((rows, seats, *shape.planes), bool),
                features=jnp.zeros((rows, seats, shape.features)),
                legal=jnp.ones((rows, seats, shape.actions), bool),
            ),
            alive=jnp.zeros((rows, seats), bool),
            action=jnp.zeros((rows, seats), jnp.int8),
            goal=jnp.zeros((rows, seats, goal)),
            labelled=jnp.zeros((rows, seats), bool),
            persona=jnp.full((rows, seats), NO_PERSONA, jnp.int8),
            context=jnp.zeros((rows, own, self._context_size)),
            policy=jnp.zeros((rows, own, shape.actions)),
            target=jnp.zeros((rows, own)),
        )

    @property
    def _separate(self) -> bool:
        return self.config.parameters == "separate"

    @property
    def _optimiser(self) -> optax.GradientTransformation:
        return optax.chain(
            optax.clip_by_global_norm(self.config.gradient_clip),
            optax.adam(self.config.learning_rate, eps=1e-5),
        )

    @property
    def _rows(self) -> np.ndarray:
        """Which parameter sets the active seats use, in their order."""
        if not self._separate:
            return np.zeros(len(self.active), int)
        return np.array([self.seats.index(seat) for seat in self.active])

    @property
    def _columns(self) -> np.ndarray:
        """Which of the seats with parameters the active ones are, in their order."""
        return np.array([self.seats.index(seat) for seat in self.active])

    def group(self, state: HOPState) -> Group:
        networks = jax.tree.map(lambda x: x[self._rows], state.networks)
        persona_seed = jax.tree.map(lambda x: x[self._columns], state.persona_seed)
        player = self._player(networks, persona_seed, learning=not self.strangers)
        return Group(player, self.active, False)

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
            config=self.config,
            shape=self.shape,
            game_seats=self.game_seats,
            greedy=greedy,
            learning=learning,
        )

    def player(self, state: HOPState, seat: int, greedy: bool = False) -> HOPPlayer:
        row = self.seats.index(seat) if self._separate else 0
        networks = jax.tree.map(lambda x: x[row], state.networks)
        greedy = greedy or self.config.evaluation == "greedy"
        return self._player(networks, PersonaSeed(jnp.uint32(0), jnp.uint32(0)), greedy)

    def alone(self, state: HOPState, seat: int, at: int) -> tuple["HOP", HOPState]:
        """With an empty replay: what was played among others says little about new co-players."""
        row = self.seats.index(seat) if self._separate else 0
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
        the trajectory; targets and characters are filled in by `update`."""
        steps, copies, seats = trajectory.alive.shape
        executed = jax.vmap(jax.vmap(game.last_actions))(trajectory.after)
        own = np.array(self.active)
        reward, goals = trajectory.reward[:, :, own], game.goals
        persona_rewards = reward[..., None]
        if goals is not None:
            realised = jax.vmap(jax.vmap(goals.realised))(trajectory.state, trajectory.after)
            personas = jnp.append(jnp.arange(self.shape.personas), NO_PERSONA)
            persona_rewards = jax.vmap(
                lambda persona: goals.persona_reward(
                    jnp.broadcast_to(persona, reward.shape), reward, realised[:, :, own]
                ),
                out_axes=-1,
            )(personas)
        if self.config.direct_om:
            goal = jnp.zeros((steps, copies, seats, 0))
            labelled = jnp.ones((steps, copies, seats), bool)
        else:
            assert goals is not None
            label = hindsight(realised, trajectory.over, goals.unrealised)
            features = jax.vmap(jax.vmap(goals.features))(trajectory.state)
            chosen = label[..., None] == jnp.arange(features.shape[-2])
            goal = jnp.sum(jnp.where(chosen[..., None], features, 0.0), axis=-2)
            labelled = label >= 0
        everyone = ReplayRows(
            observation=trajectory.observation,
            alive=trajectory.alive,
            action=executed.astype(jnp.int8),
            goal=goal,
            labelled=labelled,
            persona=jnp.full((steps, copies, seats), NO_PERSONA, jnp.int8),
            context=self._believed(game, trajectory),
            policy=jnp.exp(trajectory.log_policy[:, :, own]),
            target=jnp.zeros((steps, copies, len(own))),
        )
        rows = jax.tree.map(lambda x: x.reshape(steps * copies, *x.shape[2:]), everyone)
        assert trajectory.episode is not None
        last = trajectory.episode[-1:] + trajectory.over[-1:]
        oracle = jnp.exp(jnp.max(trajectory.log_policy, axis=-1)).reshape(steps * copies, seats)
        info = RolloutInfo(jnp.concatenate([trajectory.episode, last]), persona_rewards, oracle)
        return rows, super().training_data(game, trajectory), info

    def _believed(self, game: Game, trajectory: Trajectory) -> Float[Array, "time copy own input"]:
        """What actor and critic of the active seats were told, as if none had a drive."""
        goals = None if self.config.direct_om else goals_of(game, self.config)
        none = jnp.full(trajectory.over.shape[1], NO_PERSONA)

        def one(state: Any, seat: Array, belief: Array) -> Float[Array, "copy input"]:
            ego = jax.vmap(game.ego_state, (0, None))(state, seat)
            return belief_context(game, ego, goals, belief, none, self.shape.personas)

        belief = trajectory.recorded[self.active]
        if belief is None:
            steps, copies = trajectory.over.shape
            belief = jnp.zeros((steps, len(self.active), copies, 0, 0))
        seats = jnp.array(self.active)
        over_seats = jax.vmap(one, (None, 0, 0), 1)
        return jax.vmap(over_seats, (0, None, 0))(trajectory.state, seats, belief)

    def _targets(
        self,
        critic: Network,
        own: Trajectory,
        reward: Float[Array, "time copy own"],
        context: Float[Array, "time copy own input"],
        last_context: Float[Array, "copy own input"],
    ) -> tuple[Array, Array]:
        """Discounted returns and values, [time, copy, own]; `critic` [own, ...]. The horizon is an
        end like any other: what would come after it is never received."""

        def values(critic: Network, observation: Observation, context: Array) -> Array:
            return critic(flatten(observation, context))[..., 0]

        value = jax.vmap(values, (0, 2, 2), 2)(critic, own.observation, context)
        last = jax.vmap(values, (0, 1, 1), 1)(critic, own.last, last_context)
        ended = own.terminated | own.truncated
        zero = jnp.zeros_like(value)
        gains = gae(
            reward,
            value,
            zero,
            last,
            ended,
            jnp.zeros_like(ended),
            self.config.discount,
            self.config.trace,
        )
        return gains + value, value

    # --- learning ------------------------------------------------------------------------------

    def update(
        self,
        key: PRNGKeyArray,
        state: HOPState,
        trajectory: tuple[ReplayRows, Trajectory, RolloutInfo],
        progress: Float[Array, ""],
    ) -> tuple[HOPState, dict[str, Float[Array, "seat *action"]]]:
        config, rows = self.config, self._rows
        new, own, info = trajectory
        per_seat = jax.tree.map(lambda x: x[rows], state.networks)
        columns = self._columns
        persona_seed = jax.tree.map(lambda x: x[columns], state.persona_seed)
        who = self._characters(persona_seed, info.episode)  # [time + 1, copy, own]
        seats = np.array(self.active)
        persona = new.persona.reshape(*own.over.shape, -1)
        persona = persona.at[:, :, seats].set(who[:-1].astype(jnp.int8))
        new = new._replace(persona=persona.reshape(new.persona.shape))
        # The worth of the steps to who each seat was; -1 is the last: without a drive.
        kinds = jnp.append(jnp.arange(self.shape.personas), NO_PERSONA)
        mine = who[:-1, ..., None] == kinds
        reward = jnp.sum(jnp.where(mine, info.persona_rewards, 0.0), axis=-1)
        persona = (who[:-1, ..., None] == jnp.arange(self.shape.personas)).astype(jnp.float32)
        context = new.context.reshape(*own.alive.shape, self._context_size)
        context = context.at[..., : self.shape.personas].set(persona)
        # Where the last episode goes on, it goes on among the same co-players.
        target, value = self._targets(per_seat.critic, own, reward, context, context[-1])
        new = new._replace(
            context=context.reshape(new.context.shape), target=target.reshape(-1, len(self.active))
        )
        metrics = self._prediction_metrics(per_seat.opponents, new, info.oracle)
        metrics |= {
            "value": masked_mean(value, own.alive, (0, 1)),
            "explained_variance": explained_variance(
                *(x.reshape(-1, len(self.active)) for x in (value, target, own.alive))
            ),
            "entropy": masked_mean(categorical.entropy(own.log_policy), own.alive, (0, 1)),
        }
        # The replay has a column for every seat with parameters; only active ones are filled.
        wide = (new.policy.shape[0], len(self.seats))

        def widened(x: Shaped[Array, "row active *rest"]) -> Shaped[Array, "row own *rest"]:
            return jnp.zeros((*wide, *x.shape[2:]), x.dtype).at[:, columns].set(x)

        new = new._replace(
            context=widened(new.context), policy=widened(new.policy), target=widened(new.target)
        )
        replay = jax.tree.map(
            lambda old, x: jnp.concatenate([old, x.astype(old.dtype)])[-old.shape[0] :],
            state.replay,
            new,
        )
        filled = jnp.minimum(state.filled + new.alive.shape[0], config.replay)

        sets = np.unique(rows)
        networks, optimiser = jax.tree.map(lambda x: x[sets], (state.networks, state.optimiser))

        scale = 1.0 - progress if config.schedule == "linear" else jnp.ones_like(progress)

        uniform = jax.random.uniform(key, (config.updates * config.batch,))
        index = draw_rows(equal_shares(replay, filled, self.shape.personas), uniform)
        index = jnp.moveaxis(index.reshape(-1, config.updates, config.batch), 1, 0)

        def one_step(carry: tuple, index: Array) -> tuple[tuple, dict[str, Array]]:
            batch = picked(replay, index, np.array(self.seats))
            return self._step(carry[0], carry[1], batch, columns, scale)

        (networks, optimiser), terms = jax.lax.scan(one_step, (networks, optimiser), index)
        learned = {name: jnp.mean(values, axis=0) for name, values in terms.items()}
        each = np.searchsorted(sets, rows)
        metrics |= {name: values[each] for name, values in learned.items()}
        networks, optimiser = jax.tree.map(
            lambda old, x: old.at[sets].set(x),
            (state.networks, state.optimiser),
            (networks, optimiser),
        )
        return HOPState(networks, optimiser, state.persona_seed, replay, filled), metrics

    def _step(
        self,
        networks: Networks,
        optimiser: Networks,
        batch: ReplayRows,
        columns: np.ndarray,
        scale: Float[Array, ""],
    ) -> tuple[tuple[Networks, Networks], dict[str, Float[Array, " set"]]]:
        """One gradient step of all sets on one batch of rows [seat, sample], `scale` times as long
        as usual."""
        seats = np.array(self.active)
        context = self._own(batch.context[columns])
        view = flatten(self._own(jax.tree.map(lambda x: x[seats], batch.observation)), context)
        legal = self._own(batch.observation.legal[seats])
        # Acting by chance teaches nothing.
        aimed = batch.alive & (batch.persona != self.shape.personas)
        alive = self._own(aimed[seats])
        policy, target = self._own(batch.policy[columns]), self._own(batch.target[columns])

        def actor_loss(
            actor: Network, view: Array, legal: Array, alive: Array, policy: Array
        ) -> Array:
            log_policy = categorical.log_policy(actor(view), legal)
            return 0.5 * masked_mean(-jnp.sum(policy * log_policy, axis=-1), alive, None)

        def critic_loss(critic: Network, view: Array, alive: Array, target: Array) -> Array:
            error = jnp.square(critic(view)[..., 0] - target)
            return 0.5 * masked_mean(error, alive, None)

        def model_loss(model: Network, pairs: Pairs) -> Array:
            log_probs = predict(model, pairs.observation, pairs.goal)
            return cross_entropy(log_probs, pairs.action, pairs.mask)

        actor, actor_gradient = jax.vmap(jax.value_and_grad(actor_loss))(
            networks.actor, view, legal, alive, policy
        )
        critic, critic_gradient = jax.vmap(jax.value_and_grad(critic_loss))(
            networks.critic, view, alive, target
        )
        model, model_gradient = jax.vmap(jax.vmap(jax.value_and_grad(model_loss)))(
            networks.opponents, self._pairs(batch)
        )
        terms = {
            "policy_loss": actor,
            "value_loss": critic,
            "opponent_loss": jnp.mean(model, axis=-1),
        }
        learned = jax.vmap(partial(self._apply, scale))
        if self.config.learn_policy:
            actors = learned(networks.actor, actor_gradient, optimiser.actor)
            critics = learned(networks.critic, critic_gradient, optimiser.critic)
        else:
            actors, critics = zip(networks[:2], optimiser[:2], strict=True)
        if self.config.learn_opponents:
            models = jax.vmap(learned)(networks.opponents, model_gradient, optimiser.opponents)
        else:
            models = networks.opponents, optimiser.opponents
        changed, states = zip(actors, critics, models, strict=True)
        return (Networks(*changed), Networks(*states)), terms

    def _apply(
        self, scale: Float[Array, ""], network: Network, gradient: Network, state: Any
    ) -> tuple[Network, Any]:
        step, state = self._optimiser.update(gradient, state)
        return optax.apply_updates(network, optax.tree.scale(scale, step)), state

    def _own(self, x: Any) -> Any:
        """[own, sample, ...] as [set, sample, ...]: a set per active seat, or one for all."""
        return x if self._separate else jax.tree.map(lambda x: x.reshape(1, -1, *x.shape[2:]), x)

    def _pairs(self, batch: ReplayRows) -> Pairs:
        """What the opponent models learn from, [set, model, sample, ...], of steps [seat, row]."""
        seats = self.game_seats

        def turned(x: Shaped[Array, "seat row *rest"]) -> Shaped[Array, "set model sample *rest"]:
            x = x[self._others]  # [own, other, row, ...]
            if not self._separate:
                x = jnp.swapaxes(x, 0, 1).reshape(1, seats - 1, -1, *x.shape[3:])
            if self.config.opponents == "shared":
                x = x.reshape(x.shape[0], 1, -1, *x.shape[3:])
            return x

        mask = batch.alive & batch.labelled
        if self.config.expects_random:  # there is a model for those that act by chance
            mask = mask & (batch.persona != self.shape.personas)
        pairs = Pairs(batch.observation, batch.goal, batch.action, mask)
        pairs = jax.tree.map(turned, pairs)
        return pairs._replace(action=pairs.action.astype(jnp.int32))

    @property
    def _others(self) -> np.ndarray:
        """[own, other] the co-players of the active seats, the next seat first."""
        return (np.array(self.active)[:, None] + np.arange(1, self.game_seats)) % self.game_seats

    def _characters(
        self, persona_seed: PersonaSeed, episode: Int[Array, "time copy"]
    ) -> Int[Array, "time copy own"]:
        """Who the active seats were."""
        if self.strangers:
            return jnp.full((*episode.shape, len(self.active)), NO_PERSONA)
        return jax.vmap(
            lambda persona_seed: self.config.who(
                persona_seed, episode, self.shape.personas, self.game_seats
            ),
            out_axes=-1,
        )(persona_seed)

    def _prediction_metrics(
        self, opponents: Network, new: ReplayRows, oracle: Float[Array, "row player"]
    ) -> dict[str, Float[Array, "seat *action"]]:
        """How well the opponent models of each active seat [own, model, ...] foresee what was just
        played, before they learn from it, given the goals known in hindsight; `opponent_best`: what
        nobody can exceed, who knows the policies that were acted by."""
        each = self if self._separate else dataclasses.replace(self, config=self.config.apart)
        pairs = each._pairs(jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), new))
        log_probs = jax.vmap(jax.vmap(predict))(opponents, pairs.observation, pairs.goal)
        found = jax.vmap(accuracy)(log_probs, pairs.action, pairs.mask)
        most = jnp.moveaxis(oracle[:, self._others], 0, -1)  # [own, other, row]
        best = masked_mean(most.reshape(pairs.mask.shape), pairs.mask, (1, 2))
        return {
            "opponent_top1": found.top1,
            "opponent_best": best,
            "opponent_share": found.top1 / jnp.maximum(best, 1e-6),
            "opponent_top3": found.top3,
            "opponent_count": found.counts,
            "opponent_ratio": found.ratio,
            "opponent_precision": found.precision,
            "opponent_recall": found.recall,
            "opponent_f1": found.f1,
        }
