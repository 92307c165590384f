"""HOP: beliefs over the goals of others, models of others given their goals, and planning.

The player (`coplay.players.hop_player`) keeps a belief about every co-player, draws goals from it,
searches the game once per draw with co-players that act by its opponent models, and acts by the
averaged values. The learner (`HOP`) improves three things from what was played: an actor towards
what the search chose, a critic towards the returns, and the opponent models towards what co-players
really did, given the goals they turned out to have.
"""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray, Shaped

from coplay.errors import UserError
from coplay.games.game import Game, Observation
from coplay.games.goals import hindsight
from coplay.minds import categorical
from coplay.minds.networks import Network, ViewShape, flatten
from coplay.minds.opponent_model import accuracy, cross_entropy, predict
from coplay.players.hop_config import HOPConfig
from coplay.players.hop_player import HOPPlayer, refuse_partial_views
from coplay.players.learner import Learner
from coplay.players.player import Group
from coplay.training.advantages import explained_variance, gae, masked_mean
from coplay.training.rollout import Trajectory, seat_keys


class Watched(NamedTuple):
    """What is learned from, by rows [row] = [time * copy]; `seat` are all seats of the game, `own`
    the active ones.

    observation: [row, seat] ego views. alive: in the game. action: as executed.
    goal: [row, seat, feature] of the goal the seat turned out to have; labelled: it is known.
    policy: [row, own, action] what the search chose from. target: [row, own] discounted return.
    """

    observation: Observation
    alive: Bool[Array, "row seat"]
    action: Integer[Array, "row seat"]
    goal: Float[Array, "row seat feature"]
    labelled: Bool[Array, "row seat"]
    policy: Float[Array, "row own action"]
    target: Float[Array, "row own"]


class Networks(NamedTuple):
    """Actor and critic [set, ...], opponent models [set, model, ...]."""

    actor: Network
    critic: Network
    opponents: Network


class HOPState(NamedTuple):
    """What learning changes. optimiser: one for each network, like them.
    replay: the newest rows last; filled: [] how many of them are real."""

    networks: Networks
    optimiser: Networks
    replay: Watched
    filled: Int[Array, ""]


class HOP(Learner):
    """See the module docstring. With `parameters=shared` all active seats are one set."""

    config: HOPConfig = eqx.field(static=True)
    shape: ViewShape
    game_seats: int = eqx.field(static=True)
    seats: tuple[int, ...] = eqx.field(static=True)
    active: tuple[int, ...] = eqx.field(static=True)

    play_fields = HOPConfig.play_fields

    @property
    def declared_inputs(self) -> tuple[str, ...]:
        return ("state", "memory") if self.config.planner == "on" else ("view",)

    @property
    def declared_data(self) -> tuple[str, ...]:
        return (".reward", ".action", *(() if self.config.direct_om else (".goal",)))

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

    def init(self, key: PRNGKeyArray, streams: Int[Array, " seat"]) -> HOPState:
        keys = seat_keys(key, streams)[np.array(self.seats)] if self._separate else key[None]
        networks = jax.vmap(self._init_set)(keys)
        if self.config.warm_start:
            networks = self._warm_start(networks)
        optimiser = Networks(
            jax.vmap(self._optimiser.init)(networks.actor),
            jax.vmap(self._optimiser.init)(networks.critic),
            jax.vmap(jax.vmap(self._optimiser.init))(networks.opponents),
        )
        return HOPState(networks, optimiser, self._empty_replay(), jnp.int32(0))

    def _init_set(self, key: PRNGKeyArray) -> Networks:
        actor_key, critic_key, opponent_key = jax.random.split(key, 3)
        config, shape = self.config, self.shape
        goal = 0 if config.direct_om else shape.goal_features
        with_goal = ViewShape(shape.planes, shape.features + goal, shape.actions)

        def network(shape: ViewShape, outputs: int, key: PRNGKeyArray, scale: float) -> Network:
            return Network(
                shape,
                outputs,
                key=key,
                hidden=config.hidden,
                channels=config.channels if config.network == "cnn" else (),
                activation=config.activation,
                head_scale=scale,
            )

        models = self.game_seats - 1 if config.opponents == "separate" else 1
        opponents = jax.vmap(lambda key: network(with_goal, shape.actions, key, 0.01))(
            jax.random.split(opponent_key, models)
        )
        actor = network(shape, shape.actions, actor_key, 0.01)
        return Networks(actor, network(shape, 1, critic_key, 1.0), opponents)

    def _warm_start(self, networks: Networks) -> Networks:
        """The networks with actor and critic from a PPO run, each seat's from the same seat."""
        # Runs hold learners: the import waits until it is needed.
        from coplay.players.ppo import PPO, PPOState
        from coplay.training.run import load_learner

        learner, state = load_learner(self.config.warm_start)
        if not isinstance(learner, PPO) or not isinstance(state, PPOState):
            raise UserError(f"warm_start '{self.config.warm_start}' is no run of ppo")
        if learner.config.parameters == "separate":
            missing = [seat for seat in self.seats if seat not in learner.seats]
            if missing:
                raise UserError(f"warm_start: nobody learned in the seats {missing} of that run")
            rows = np.array([learner.seats.index(seat) for seat in self.seats])
            rows = rows if self._separate else rows[:1]
        else:
            rows = np.zeros(len(self.seats) if self._separate else 1, int)
        actor, critic = jax.tree.map(lambda x: x[rows], (state.actor, state.critic))
        loaded, wanted = (actor, critic), (networks.actor, networks.critic)
        if _form(loaded) != _form(wanted):
            raise UserError(
                f"warm_start '{self.config.warm_start}': its networks have other shapes; train "
                "both with the same network, hidden, channels and activation, and without shared+id"
            )
        return networks._replace(actor=actor, critic=critic)

    def _empty_replay(self) -> Watched:
        """A replay of zeros, in the shapes of `watch`."""
        rows, seats, own = self.config.replay, self.game_seats, len(self.seats)
        shape = self.shape
        goal = 0 if self.config.direct_om else shape.goal_features
        return Watched(
            observation=Observation(
                planes=jnp.zeros((rows, seats, *shape.planes), bool),
                features=jnp.zeros((rows, seats, shape.features)),
                legal=jnp.ones((rows, seats, shape.actions), bool),
            ),
            alive=jnp.zeros((rows, seats), bool),
            action=jnp.zeros((rows, seats), jnp.int8),
            goal=jnp.zeros((rows, seats, goal)),
            labelled=jnp.zeros((rows, seats), bool),
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

    def group(self, state: HOPState) -> Group:
        if not self._separate:
            return Group(
                self._player(jax.tree.map(lambda x: x[0], state.networks)), self.active, True
            )
        rows = self._rows
        return Group(
            self._player(jax.tree.map(lambda x: x[rows], state.networks)), self.active, False
        )

    def _player(self, networks: Networks, greedy: bool = False) -> HOPPlayer:
        return HOPPlayer(*networks, self.config, self.shape, self.game_seats, greedy)

    def player(self, state: HOPState, seat: int, greedy: bool = False) -> HOPPlayer:
        row = self.seats.index(seat) if self._separate else 0
        networks = jax.tree.map(lambda x: x[row], state.networks)
        return self._player(networks, greedy or self.config.evaluation == "greedy")

    def alone(self, state: HOPState, seat: int, at: int) -> tuple["HOP", HOPState]:
        """With an empty replay: what was played among others says little about new co-players."""
        row = self.seats.index(seat) if self._separate else 0
        learner = dataclasses.replace(self, seats=(at,), active=(at,))
        networks, optimiser = jax.tree.map(
            lambda x: x[row : row + 1], (state.networks, state.optimiser)
        )
        return learner, HOPState(networks, optimiser, learner._empty_replay(), jnp.int32(0))

    # --- from what was played to rows ----------------------------------------------------------

    def watch(self, game: Game, trajectory: Trajectory) -> tuple[Watched, Trajectory]:
        """All seats' ego views and executed actions with goals in hindsight, and the own part of
        the trajectory; targets are filled in by `update`."""
        steps, copies, seats = trajectory.alive.shape
        executed = jax.vmap(jax.vmap(game.last_actions))(trajectory.after)
        if self.config.direct_om:
            goal = jnp.zeros((steps, copies, seats, 0))
            labelled = jnp.ones((steps, copies, seats), bool)
        else:
            goals = game.goals
            assert goals is not None
            realised = jax.vmap(jax.vmap(goals.realised))(trajectory.state, trajectory.after)
            label = hindsight(realised, trajectory.over, goals.unrealised)
            features = jax.vmap(jax.vmap(goals.features))(trajectory.state)
            chosen = label[..., None] == jnp.arange(features.shape[-2])
            goal = jnp.sum(jnp.where(chosen[..., None], features, 0.0), axis=-2)
            labelled = label >= 0
        own = np.array(self.active)
        everyone = Watched(
            observation=trajectory.observation,
            alive=trajectory.alive,
            action=executed.astype(jnp.int8),
            goal=goal,
            labelled=labelled,
            policy=jnp.exp(trajectory.log_policy[:, :, own]),
            target=jnp.zeros((steps, copies, len(own))),
        )
        rows = jax.tree.map(lambda x: x.reshape(steps * copies, *x.shape[2:]), everyone)
        return rows, super().watch(game, trajectory)

    def _targets(self, critic: Network, own: Trajectory) -> tuple[Array, Array]:
        """Discounted returns and values, [time, copy, own]; `critic` [own, ...]. The horizon is an
        end like any other: what would come after it is never received."""
        value = jax.vmap(
            lambda critic, observation: critic(flatten(observation))[..., 0],
            in_axes=(0, 2),
            out_axes=2,
        )(critic, own.observation)
        last = jax.vmap(
            lambda critic, observation: critic(flatten(observation))[..., 0],
            in_axes=(0, 1),
            out_axes=1,
        )(critic, own.last)
        ended = own.terminated | own.truncated
        zero = jnp.zeros_like(value)
        gains = gae(
            own.reward,
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
        trajectory: tuple[Watched, Trajectory],
        progress: Float[Array, ""],
    ) -> tuple[HOPState, dict[str, Float[Array, "seat *action"]]]:
        config, rows = self.config, self._rows
        new, own = trajectory
        per_seat = jax.tree.map(lambda x: x[rows], state.networks)
        target, value = self._targets(per_seat.critic, own)
        new = new._replace(target=target.reshape(-1, len(self.active)))
        metrics = self._foresight(per_seat.opponents, new)
        metrics |= {
            "value": masked_mean(value, own.alive, (0, 1)),
            "explained_variance": explained_variance(
                *(x.reshape(-1, len(self.active)) for x in (value, target, own.alive))
            ),
            "entropy": masked_mean(categorical.entropy(own.log_policy), own.alive, (0, 1)),
        }
        # The replay has a column for every seat with parameters; only active ones are filled.
        columns = np.array([self.seats.index(seat) for seat in self.active])
        wide = (new.policy.shape[0], len(self.seats))
        mine = jnp.zeros((*wide, self.shape.actions)).at[:, columns].set(new.policy)
        new = new._replace(policy=mine, target=jnp.zeros(wide).at[:, columns].set(new.target))
        replay = jax.tree.map(
            lambda old, x: jnp.concatenate([old, x.astype(old.dtype)])[-old.shape[0] :],
            state.replay,
            new,
        )
        filled = jnp.minimum(state.filled + new.alive.shape[0], config.replay)

        sets = np.unique(rows)
        networks, optimiser = jax.tree.map(lambda x: x[sets], (state.networks, state.optimiser))

        def one_step(carry: tuple, key: PRNGKeyArray) -> tuple[tuple, dict[str, Array]]:
            index = jax.random.randint(key, (config.batch,), config.replay - filled, config.replay)
            batch = jax.tree.map(lambda x: x[index], replay)
            return self._step(carry[0], carry[1], batch, columns)

        keys = jax.random.split(key, config.updates)
        (networks, optimiser), terms = jax.lax.scan(one_step, (networks, optimiser), keys)
        learned = {name: jnp.mean(values, axis=0) for name, values in terms.items()}
        each = np.searchsorted(sets, rows)
        metrics |= {name: values[each] for name, values in learned.items()}
        networks, optimiser = jax.tree.map(
            lambda old, x: old.at[sets].set(x),
            (state.networks, state.optimiser),
            (networks, optimiser),
        )
        return HOPState(networks, optimiser, replay, filled), metrics

    def _step(
        self, networks: Networks, optimiser: Networks, batch: Watched, columns: np.ndarray
    ) -> tuple[tuple[Networks, Networks], dict[str, Float[Array, " set"]]]:
        """One gradient step of all sets on one batch of rows."""
        seats = np.array(self.active)
        view = flatten(self._own(jax.tree.map(lambda x: x[:, seats], batch.observation)))
        legal = self._own(batch.observation.legal[:, seats])
        alive = self._own(batch.alive[:, seats])
        policy, target = self._own(batch.policy[:, columns]), self._own(batch.target[:, columns])

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
        learned = jax.vmap(self._apply)
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

    def _apply(self, network: Network, gradient: Network, state: Any) -> tuple[Network, Any]:
        step, state = self._optimiser.update(gradient, state)
        return optax.apply_updates(network, step), state

    def _own(self, x: Any) -> Any:
        """[row, own, ...] as [set, sample, ...]: a set per active seat, or one for all."""

        def turned(x: Shaped[Array, "row own *rest"]) -> Shaped[Array, "set sample *rest"]:
            x = jnp.moveaxis(x, 1, 0)
            return x if self._separate else x.reshape(1, -1, *x.shape[2:])

        return jax.tree.map(turned, x)

    def _pairs(self, batch: Watched) -> "Pairs":
        """What the opponent models learn from, [set, model, sample, ...]."""
        seats = self.game_seats
        order = (np.array(self.active)[:, None] + np.arange(1, seats)) % seats  # [own, other]

        def turned(x: Shaped[Array, "row seat *rest"]) -> Shaped[Array, "set model sample *rest"]:
            x = jnp.moveaxis(x[:, order], 0, 2)  # [own, other, row, ...]
            if not self._separate:
                x = jnp.swapaxes(x, 0, 1).reshape(1, seats - 1, -1, *x.shape[3:])
            if self.config.opponents == "shared":
                x = x.reshape(x.shape[0], 1, -1, *x.shape[3:])
            return x

        pairs = Pairs(batch.observation, batch.goal, batch.action, batch.alive & batch.labelled)
        pairs = jax.tree.map(turned, pairs)
        return pairs._replace(action=pairs.action.astype(jnp.int32))

    def _foresight(
        self, opponents: Network, new: Watched
    ) -> dict[str, Float[Array, "seat *action"]]:
        """How well the opponent models of each active seat [own, model, ...] foresee what was just
        played, before they learn from it, given the goals known in hindsight."""
        each = self if self._separate else dataclasses.replace(self, config=self.config.apart)
        pairs = each._pairs(new)
        log_probs = jax.vmap(jax.vmap(predict))(opponents, pairs.observation, pairs.goal)
        found = jax.vmap(accuracy)(log_probs, pairs.action, pairs.mask)
        return {
            "opponent_top1": found.top1,
            "opponent_top3": found.top3,
            "opponent_count": found.counts,
            "opponent_ratio": found.ratio,
            "opponent_precision": found.precision,
            "opponent_recall": found.recall,
            "opponent_f1": found.f1,
        }


def _form(tree: Any) -> tuple[Any, list[tuple[int, ...]]]:
    """Structure and shapes of a pytree."""
    return jax.tree.structure(tree), [x.shape for x in jax.tree.leaves(tree)]


class Pairs(NamedTuple):
    """Steps of co-players, [set, model, sample, ...]. mask: in the game, with a known goal."""

    observation: Observation
    goal: Float[Array, "*set sample feature"]
    action: Integer[Array, "*set sample"]
    mask: Bool[Array, "*set sample"]
