"""A world model as a game: what a planner or an imagined rollout steps instead of the real one.

Everything is as seat 0 of the imagined game sees it, which is the player who imagines: its board,
its reward, whether it leaves. Nothing of the real rules is used; an episode's length is known from
the time that views show.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Integer, PRNGKeyArray

from coplay.core.game import Game, Observation, Outcome, State, require_horizon
from coplay.models.world_model import WorldModel, likely_board


class ImaginedState(NamedTuple):
    """One imagined game. planes: the board as seat 0 sees it, its own plane first.

    last: [seat] what each did last. alive: [seat] who is in the game by the model. time: [] steps
    played.
    """

    planes: Bool[Array, "height width plane"]
    last: Integer[Array, " seat"]
    alive: Bool[Array, " seat"]
    time: Integer[Array, ""]


class ImaginedGame(Game):
    """The game by the world model. Rewards are those of seat 0 alone.

    length: the horizon of the real game.
    """

    model: WorldModel
    length: int = eqx.field(static=True)

    name = "imagined"
    action_names = ()
    seat_planes = 1

    @property
    def seats(self) -> int:
        return self.model.seats

    @property
    def actions(self) -> int:
        return self.model.actions

    @property
    def horizon(self) -> int:
        return self.length

    def alive(self, state: ImaginedState) -> Bool[Array, " seat"]:
        return state.alive

    def last_actions(self, state: ImaginedState) -> Integer[Array, " seat"]:
        return state.last

    def step(
        self, key: PRNGKeyArray, state: ImaginedState, actions: Int[Array, " seat"]
    ) -> tuple[ImaginedState, Outcome]:
        planes = state.planes.astype(jnp.float32)
        done = jnp.where(state.alive, actions, state.last).astype(jnp.int32)
        prediction = self.model(planes, done)
        board = likely_board(planes, prediction) > 0
        leaves = prediction.leaves > 0
        there = jnp.any(board[..., : self.seats], axis=(0, 1))
        # Who leaves the game while staying on the board ends it for all: nothing follows for me.
        alive = state.alive & there & ~(leaves & (jnp.arange(self.seats) == 0))
        time = state.time + 1
        following = ImaginedState(board, done.astype(state.last.dtype), alive, time)
        gained = jnp.where(state.alive[0], self.model.likely_reward(prediction), 0.0)
        reward = jnp.where(jnp.arange(self.seats) == 0, gained, 0.0)
        cut = (time >= self.horizon) & jnp.any(alive)
        return following, Outcome(reward, state.alive & ~alive, cut)

    def observe(self, state: ImaginedState) -> Observation:
        """Ego views of all seats, in the form of the real game's."""
        seats, actions = self.seats, self.actions
        order = (np.arange(seats)[:, None] + np.arange(seats)) % seats
        rest = np.tile(np.arange(seats, state.planes.shape[-1]), (seats, 1))
        columns = np.concatenate([order, rest], axis=1)
        planes = jnp.stack([state.planes[..., columns[seat]] for seat in range(seats)])
        done = (state.last[:, None] == jnp.arange(actions)).astype(jnp.float32)
        past = done[order].reshape(seats, seats * actions)
        time = jnp.full((seats, 1), state.time / self.horizon, jnp.float32)
        legal = self.model.legal(state.planes.astype(jnp.float32)) > 0
        # Something is always legal, and those who left can only repeat what they did.
        best = jnp.arange(actions) == state.last[:, None]
        legal = jnp.where(state.alive[:, None] & jnp.any(legal, axis=1, keepdims=True), legal, best)
        return Observation(planes, jnp.concatenate([past, time], axis=-1), legal)

    def permute_seats(self, state: ImaginedState, order: Int[Array, " seat"]) -> ImaginedState:
        players = jnp.take(state.planes[..., : self.seats], order, axis=-1)
        planes = jnp.concatenate([players, state.planes[..., self.seats :]], axis=-1)
        return state._replace(planes=planes, last=state.last[order], alive=state.alive[order])


def imagined_state(game: Game, state: State) -> ImaginedState:
    """What seat 0 of a real state knows of it, by its own view alone."""
    view = game.observe(state)
    planes, features = view.planes[0], view.features[0]
    seats = game.seats
    past = features[: seats * game.actions].reshape(seats, game.actions)
    there = jnp.any(planes[..., :seats] != 0, axis=(0, 1))
    mine = game.alive(state)[0]
    horizon = require_horizon(game)
    return ImaginedState(
        planes=planes != 0,
        last=jnp.argmax(past, axis=-1).astype(jnp.int8),
        alive=there & jnp.where(jnp.arange(seats) == 0, mine, True),
        time=jnp.round(features[seats * game.actions] * horizon).astype(jnp.int16),
    )
