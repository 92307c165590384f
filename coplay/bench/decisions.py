"""HOP in `coplay bench`: decisions and simulations per second, beside the simulated steps alone."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from coplay.algorithms.hop.config import HOPConfig
from coplay.algorithms.hop.learner import HOP
from coplay.bench.measure import Work
from coplay.bench.search import arbitrary_searches, steps_alone
from coplay.core.game import Game
from coplay.matches.rollout import new_table, rollout
from coplay.nn.networks import view_shape

COPIES, STEPS = 32, 4


def deciding(game: Game, config: HOPConfig) -> list[Work]:
    """HOP in every seat, game and beliefs included, and as many simulated steps as its searches
    make (rules, opponent models, actor and critic, without a tree)."""
    seats = tuple(range(game.seats))
    learner = HOP(
        config=config, shape=view_shape(game), game_seats=game.seats, seats=seats, active=seats
    )
    key = jax.random.key(0)
    state = jax.jit(learner.init)(key, jnp.arange(game.seats))
    table = new_table(game, (learner.group(state),), key, COPIES)

    def play(game: Game, state: Any, table: Any, key: PRNGKeyArray) -> Any:
        group = learner.group(state)
        table, played = rollout(game, (group,), table, key, STEPS, jnp.arange(game.seats))
        return table, jnp.sum(played.reward)

    how, trees = config.search, COPIES * game.seats * config.search.draws
    simulator, *rest = arbitrary_searches(game, trees, config.network.hidden)
    simulator = dataclasses.replace(simulator, guides=config.personas.guides)
    setting = (simulator, *rest)

    def alone(game: Game, setting: Any) -> Any:
        simulator, *rest = setting
        return steps_alone(game, STEPS * how.simulations, simulator.prepared(game), *rest)

    name = f"HOP, {how.simulations} simulations x {how.draws} draws, {COPIES} copies"
    amount = COPIES * STEPS * game.seats
    return [
        Work(name, "decisions", amount, play, (game, state, table, key)),
        Work("limit: simulated steps, no tree", "decisions", amount, alone, (game, setting)),
    ]


def in_simulations(rows: list[dict[str, Any]], config: HOPConfig) -> list[dict[str, Any]]:
    """The same rows, counted in simulations."""
    each = config.search.simulations * config.search.draws
    return [
        row
        | {
            "counted": "simulations",
            "per_second": row["per_second"] * each,
            "beside_per_second": row["beside_per_second"] * each,
        }
        for row in rows
    ]
