"""Small teams of MAPPO and HyperMAPPO for tests: one compiled program for each configuration."""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from coplay.algorithms.mappo.config import HyperMAPPOConfig, MAPPOConfig
from coplay.algorithms.mappo.data import MAPPOData, MAPPOState
from coplay.algorithms.mappo.hyper import HyperMAPPO
from coplay.algorithms.mappo.learner import MAPPO
from coplay.core.config import with_fields
from coplay.core.game import Game
from coplay.core.trajectory import Trajectory
from coplay.games.stag_hunt import StagHunt, StagHuntConfig
from coplay.matches.rollout import Table, new_table, rollout
from coplay.nn.networks import view_shape

# Episodes of at most 5 steps, so that they begin and end at all places of a rollout; players who
# catch something leave.
GAME = StagHunt(StagHuntConfig(height=3, width=3, players=3, stags=1, hares=2, horizon=5))
STEPS, COPIES = 12, 4
SMALL: dict[str, Any] = {
    "network.hidden": (6,),
    "memory.units": 5,
    "memory.chunk_length": 4,
    "epochs": 2,
}
SMALL_HYPER: dict[str, Any] = SMALL | {
    "hypernetwork.latent": 3,
    "hypernetwork.width": 6,
    "hypernetwork.units": 5,
}


def team(game: Game = GAME, kind: type[MAPPO] = MAPPO, **fields: Any) -> MAPPO:
    """A learner in all seats. fields: of its configuration, by their paths."""
    config: MAPPOConfig
    if issubclass(kind, HyperMAPPO):
        config = with_fields(HyperMAPPOConfig(), SMALL_HYPER | fields)
    else:
        config = with_fields(MAPPOConfig(), SMALL | fields)
    seats = tuple(range(game.seats))
    return kind(config, view_shape(game), game.seats, seats, seats)


def wide(state: MAPPOState, size: float = 0.25, seed: int = 0) -> MAPPOState:
    """Parameters large enough for every part to matter."""
    rng = np.random.default_rng(seed)

    def larger(x: jax.Array) -> jax.Array:
        return jnp.asarray(x + size * rng.normal(size=x.shape), jnp.float32)

    return state._replace(parameters=jax.tree.map(larger, state.parameters))


class Played(NamedTuple):
    """The second of two rollouts, which begins amid episodes; `table` before it."""

    state: MAPPOState
    table: Table
    trajectory: Trajectory
    seen: MAPPOData


def play(learner: MAPPO, game: Game = GAME, size: float = 0.25, state: Any = None) -> Played:
    """Two rollouts by parameters that are `wide`, or by a given state."""
    streams = jnp.arange(game.seats)
    if state is None:
        state = wide(jax.jit(learner.init)(jax.random.key(0), streams), size)

    @jax.jit
    def both(state: MAPPOState) -> tuple[Table, Trajectory, MAPPOData]:
        groups = (learner.group(state),)
        table = new_table(game, groups, jax.random.key(5), COPIES)

        def one(table: Table, key: jax.Array) -> tuple[Table, tuple[Table, Trajectory]]:
            after, trajectory = rollout(game, groups, table, key, STEPS, streams)
            return after, (table, trajectory)

        _, played = jax.lax.scan(one, table, jax.random.split(jax.random.key(6), 2))
        table, trajectory = jax.tree.map(lambda x: x[1], played)
        return table, trajectory, learner.training_data(game, trajectory)

    return Played(state, *both(state))


@cache
def course(
    kind: type[MAPPO], updates: int, fields: tuple[tuple[str, Any], ...], game: Game = GAME
) -> tuple[MAPPOState, dict[str, np.ndarray], np.ndarray]:
    """States after each update [update, ...], with the first before any; metrics [update, seat];
    log-policies [update, time, copy, seat, action]."""
    learner = team(game, kind, **dict(fields))
    streams = jnp.arange(game.seats)

    @jax.jit
    def run(key: jax.Array) -> Any:
        state = learner.init(key, streams)
        table = new_table(game, (learner.group(state),), key, COPIES)

        def one(carry: Any, key: jax.Array) -> Any:
            state, table = carry
            table, trajectory = rollout(game, (learner.group(state),), table, key, STEPS, streams)
            after, metrics = learner.update(
                key, state, learner.training_data(game, trajectory), jnp.float32(0)
            )
            return (after, table), (state, metrics, trajectory.log_policy)

        (state, _), (states, metrics, policies) = jax.lax.scan(
            one, (state, table), jax.random.split(key, updates)
        )
        return (
            jax.tree.map(lambda x, y: jnp.concatenate([x, y[None]]), states, state),
            metrics,
            policies,
        )

    states, metrics, policies = run(jax.random.key(3))
    return states, {name: np.asarray(x) for name, x in metrics.items()}, np.asarray(policies)
