"""A game of one's own in pure functions: check it, train on it.

Rendezvous: players on a ring of cells get 1 each when all of them meet on one cell, and leave.
"""

import tempfile
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

import coplay
from coplay import EntityList, Game, Observation, Outcome, register_game


@dataclass(frozen=True)
class RendezvousConfig:
    """Rendezvous."""

    players: int = 3
    """Number of seats."""
    cells: int = 6
    """Cells of the ring."""
    horizon: int = 12
    """Steps after which an episode is truncated."""


class State(NamedTuple):
    cell: jax.Array  # [seat]
    alive: jax.Array  # [seat]
    time: jax.Array  # []


def follower(game, state):
    """A scripted player: walks towards the player of the next seat. It is seat 0 itself."""
    ahead = (state.cell[1] - state.cell[0]) % game.config.cells
    move = jnp.where(ahead == 0, 0, jnp.where(2 * ahead > game.config.cells, 1, 2))
    return jnp.eye(game.actions)[jnp.where(state.alive[0], move, 0)]


class Rendezvous(Game):
    config: RendezvousConfig = eqx.field(static=True)
    name, action_names = "rendezvous", ("stay", "left", "right")

    @property
    def seats(self):
        return self.config.players

    @property
    def horizon(self):
        return self.config.horizon

    @property
    def seat_features(self):  # each player's cell as a one-hot, ego-first
        return self.config.cells

    def reset(self, key):
        cell = jax.random.randint(key, (self.seats,), 0, self.config.cells)
        return State(cell, jnp.ones(self.seats, bool), jnp.int32(0))

    def step(self, key, state, actions):
        move = jnp.where(actions == 1, -1, jnp.where(actions == 2, 1, 0))
        cell = (state.cell + jnp.where(state.alive, move, 0)) % self.config.cells
        met = jnp.all(cell == cell[0]) & state.alive
        alive, time = state.alive & ~met, state.time + 1
        cut = (time >= self.horizon) & jnp.any(alive)
        return State(cell, alive, time), Outcome(met.astype(jnp.float32), met, cut)

    def observe(self, state):
        order = (jnp.arange(self.seats)[:, None] + jnp.arange(self.seats)) % self.seats
        where = state.cell[order][..., None] == jnp.arange(self.config.cells)
        legal = state.alive[:, None] | (jnp.arange(self.actions) == 0)
        features = where.reshape(self.seats, -1).astype(jnp.float32)
        return Observation(jnp.zeros((self.seats, 0, 0, 0), bool), features, legal)

    @property
    def entities(self):  # the other players, each as the one-hot of its cell
        cells, others = self.config.cells, range(1, self.seats)
        places = tuple(tuple(range(cells * one, cells * (one + 1))) for one in others)
        return (EntityList("players", places),) if others else ()

    def alive(self, state):
        return state.alive

    def permute_seats(self, state, order):
        return State(state.cell[order], state.alive[order], state.time)

    @property
    def scripted(self):
        return {"follower": follower}

    def text(self, state):  # how many players are on each cell
        counts = [int((state.cell == cell).sum()) for cell in range(self.config.cells)]
        return " ".join(str(count or ".") for count in counts)


register_game(RendezvousConfig, Rendezvous)
if __name__ == "__main__":
    coplay.check_game(Rendezvous(RendezvousConfig()))
    with tempfile.TemporaryDirectory() as out:
        print("random:", coplay.play("rendezvous", "random,random,random")["team_mean"])
        run = coplay.train("ppo", "rendezvous", f"{out}/run", steps=60_000, copies=64, rollout=16)
        print("trained:", run["team_mean"])
