"""Games and learners with a fault put in on purpose, for the seat audit to find."""

from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from coplay.algorithms.hop.learner import HOP
from coplay.algorithms.hop_plus.learner import HopPlus
from coplay.algorithms.mappo.hyper import HyperMAPPO
from coplay.algorithms.ppo.learner import PPO
from coplay.core.game import Game, Observation
from coplay.core.group import Group
from coplay.core.learner import Learner
from coplay.core.player import Player
from coplay.core.trajectory import picked_seats, seat_keys
from coplay.games.stag_hunt import StagHunt, StagHuntConfig
from coplay.nn.networks import ViewShape, flatten

# --- games -------------------------------------------------------------------------------------


class RewardToSeat0(StagHunt):
    """All that anybody gains is written down for seat 0."""

    def step(self, key, state, actions):
        following, outcome = super().step(key, state, actions)
        alive = self.alive(state)
        first = (jnp.arange(self.seats) == 0) & alive
        return following, outcome._replace(reward=jnp.where(first, outcome.reward.sum(), 0.0))


class ActionsOffByOne(StagHunt):
    """The others' last actions are one place off; the planes are right."""

    def observe(self, state):
        seen = super().observe(state)
        width = self.seats * self.actions
        past = seen.features[:, :width].reshape(self.seats, self.seats, self.actions)
        past = jnp.concatenate([past[:, :1], jnp.roll(past[:, 1:], 1, axis=1)], axis=1)
        features = jnp.concatenate(
            [past.reshape(self.seats, width), seen.features[:, width:]], axis=1
        )
        return seen._replace(features=features)


class PoolOfLayouts(StagHunt):
    """Layouts come from a small pool, always with the same seats in the same places."""

    pool: jax.Array

    def __init__(self, config: StagHuntConfig):
        super().__init__(config)
        self.pool = jax.random.split(jax.random.key(7), 32)

    def reset(self, key):
        return super().reset(self.pool[jax.random.randint(key, (), 0, len(self.pool))])


class MovesFirst(StagHunt):
    """Where two seats act on the same cell only the first one's action counts."""

    def step(self, key, state, actions):
        earlier = jnp.tril(state.cell[:, None] == state.cell[None], -1) & state.alive[None]
        return super().step(key, state, jnp.where(earlier.any(axis=1), 4, actions))


# --- a learner of one's own, and faults in it ---------------------------------------------------


@dataclass(frozen=True)
class ReinforceConfig:
    """A linear policy for each seat that follows the rewards of the rollout."""

    learning_rate: float = 0.3
    """Step size."""


class LinearPlayer(Player):
    weight: Float[Array, "*seat action inputs"]

    def act(self, game: Game, key, view, memory):
        return flatten(view.observation) @ self.weight.T, memory


class ReinforceState(NamedTuple):
    weight: Float[Array, "seat action inputs"]


class Reinforce(Learner):
    """The whole protocol in as few lines as it takes; every seat has its own weights."""

    config: ReinforceConfig = eqx.field(static=True)
    shape: ViewShape
    game_seats: int = eqx.field(static=True)
    seats: tuple[int, ...] = eqx.field(static=True)
    active: tuple[int, ...] = eqx.field(static=True)

    def init(self, key, streams):
        height, width, planes = self.shape.planes
        size = (self.shape.actions, height * width * planes + self.shape.features)
        keys = seat_keys(key, streams)[jnp.array(self.seats)]
        return ReinforceState(jax.vmap(lambda k: 0.1 * jax.random.normal(k, size))(keys))

    def group(self, state):
        rows = jnp.array([self.seats.index(seat) for seat in self.active])
        return Group(LinearPlayer(state.weight[rows]), self.active, False)

    def player(self, state, seat, greedy=False):
        return LinearPlayer(state.weight[self.seats.index(seat)])

    def update(self, key, state, trajectory, progress):
        rows = jnp.array([self.seats.index(seat) for seat in self.active])
        weight = state.weight[rows]
        new = weight + self.rates() * self.gradients(weight, trajectory)
        return ReinforceState(state.weight.at[rows].set(new)), {
            "entropy": jnp.zeros(len(self.active))
        }

    def rates(self) -> Float[Array, " seat 1 1"]:
        return jnp.full((len(self.active), 1, 1), self.config.learning_rate)

    def gradients(self, weight, trajectory) -> Float[Array, "seat action inputs"]:
        """Of the mean of log-probability times reward of the rollout, for every seat."""
        gained = jnp.sum(trajectory.reward, axis=0)  # [copy, seat]

        def objective(weight, observation: Observation, action, alive, gained):
            logits = flatten(observation) @ weight.T
            log = jnp.take_along_axis(jax.nn.log_softmax(logits), action[..., None], -1)[..., 0]
            return jnp.sum(jnp.where(alive, log * gained, 0.0)) / jnp.sum(alive)

        return jax.vmap(jax.grad(objective), in_axes=(0, 2, 2, 2, 1))(
            weight, trajectory.observation, trajectory.action, trajectory.alive, gained
        )


class FedSeat0(Reinforce):
    """Everybody learns from what seat 0 did."""

    def update(self, key, state, trajectory, progress):
        first = jnp.zeros(len(self.active), int)
        rest = trajectory._replace(over=None, last=None)
        rest = jax.tree.map(lambda x: x[:, :, first], rest)
        return super().update(
            key, state, rest._replace(over=trajectory.over, last=trajectory.last), progress
        )


class KeepsDeadSteps(Reinforce):
    """Steps after a player left are learned from like any other."""

    def update(self, key, state, trajectory, progress):
        everything = trajectory._replace(alive=jnp.ones_like(trajectory.alive))
        return super().update(key, state, everything, progress)


class SlowSeat(Reinforce):
    """Seat 2 learns a little more slowly."""

    def rates(self):
        slower = jnp.where(jnp.array(self.active) == 2, 0.95, 1.0)
        return super().rates() * slower[:, None, None]


class InOrder(Reinforce):
    """Each seat is pulled towards what the seat before it has just learned."""

    def update(self, key, state, trajectory, progress):
        new, metrics = super().update(key, state, trajectory, progress)
        weight = new.weight
        for seat in range(1, len(self.active)):
            weight = weight.at[seat].add(0.1 * (weight[seat - 1] - state.weight[seat - 1]))
        return ReinforceState(weight), metrics


class InitBySeat(Reinforce):
    """Weights before learning hang on the position of a seat."""

    def init(self, key, streams):
        return super().init(key, jnp.arange(len(streams)))


class LoudPlayer(LinearPlayer):
    loud: Float[Array, "*seat"]

    def act(self, game, key, view, memory):
        logits, memory = super().act(game, key, view, memory)
        return logits * self.loud, memory


class LoudSeat(Reinforce):
    """Seat 1 acts more decidedly than its weights say."""

    def group(self, state):
        quiet = super().group(state)
        loud = jnp.where(jnp.array(self.active) == 1, 2.0, 1.0)
        return Group(LoudPlayer(quiet.player.weight, loud), self.active, False)


# --- faults inside PPO, for the stages it shows --------------------------------------------------


class HalfAdvantage(PPO):
    """The advantages of the first seat are half of what they should be."""

    def prepare(self, state, trajectory):
        learning, batch = super().prepare(state, trajectory)
        half = batch.advantage.at[0, :, :, 0].multiply(0.5)  # [set, row, time, seat of the set]
        return learning, batch._replace(advantage=half)


class HalfGradient(PPO):
    """The gradient that is shown for the first seat is half of what it should be."""

    def stages(self, key, state, trajectory, progress):
        shown = super().stages(key, state, trajectory, progress)
        terms, gradients = shown["loss"]
        return shown | {"loss": (terms, jax.tree.map(lambda x: x.at[0].multiply(0.5), gradients))}


class HalfCodes(HopPlus):
    """Half of what the first seat knows of others' goals reaches its policy when it learns."""

    def _with_codes(self, goals, new):
        own = super()._with_codes(goals, new)
        half = own.observation.features.at[:, :, 0].multiply(0.5)
        return own._replace(observation=own.observation._replace(features=half))


class HalfHopPlusAdvantage(HopPlus):
    """PPO inside of HOP+ halves the advantages of the first seat."""

    @property
    def _ppo(self):
        mine = super()._ppo
        fields = ("config", "shape", "game_seats", "seats", "active")
        return HalfAdvantage(**{name: getattr(mine, name) for name in fields})


class FedSeat0HopPlus(HopPlus):
    """All seats are trained on the trajectory of seat 0."""

    def _with_codes(self, goals, new):
        own = super()._with_codes(goals, new)
        first = jnp.zeros(len(self.active), int)
        return picked_seats(own, first)


class BySeatHopPlus(HopPlus):
    """What is drawn to learn from, and to imagine, hangs on the position of a seat."""

    def update(self, key, state, trajectory, progress):
        by_position = trajectory._replace(streams=jnp.arange(self.game_seats))
        return super().update(key, state, by_position, progress)


class HalfReturns(HOP):
    """The returns that the first seat's critic learns are half of what they should be."""

    def _with_returns(self, critic, new, own, info, personas):
        new, value = super()._with_returns(critic, new, own, info, personas)
        return new._replace(target=new.target.at[:, 0].multiply(0.5)), value


class HalfTeamAdvantage(HyperMAPPO):
    """The advantages of a team's last seat are half of what they should be."""

    def _prepare_set(self, state, seen, identity):
        state, batch, metrics = super()._prepare_set(state, seen, identity)
        halved = batch.advantage * jnp.array([1.0, 1.0, 0.5])
        return state, batch._replace(advantage=halved), metrics
