"""Training of MAPPO and HyperMAPPO on one game, in the settings of JaxMARL's own MAPPO script.

That script is not part of JaxMARL's wheel, so it cannot run beside ours here. The settings are its
defaults for recurrent MAPPO, so that its figure on the same machine can be put beside: a gated
recurrent unit of 128 and two layers of 128 (it has one of them behind the unit, we have both before
it: products of the same number and shapes), no normalised layers, rollouts of 128 steps through all
of which gradients go back, 4 epochs of 4 minibatches, a critic on the global state. Beside it
the same with rollouts cut into chunks: as many samples in every minibatch, in fewer, wider steps.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from coplay.algorithms.mappo.config import HyperMAPPOConfig, MAPPOConfig
from coplay.algorithms.mappo.hyper import HyperMAPPO
from coplay.algorithms.mappo.learner import MAPPO
from coplay.bench.measure import Work
from coplay.core.config import with_fields
from coplay.core.game import Game
from coplay.core.learner import Learner
from coplay.games.registry import make_game
from coplay.nn.networks import view_shape
from coplay.training.block import init_state, one_iteration
from coplay.training.phases import Phase

STEPS = 128
CHUNK = 32
MIRRORED: dict[str, Any] = {
    "network.hidden": (128, 128),
    "network.layer_norm": False,
    "memory.units": 128,
    "memory.chunk_length": STEPS,
    "epochs": 4,
    "minibatches": 4,
    "critic_input": "global",
}


def team_training(name: str, copies: int) -> list[Work]:
    """HyperMAPPO, recurrent MAPPO with whole rollouts and with chunks of them, and feed-forward
    MAPPO, all on the same game; the last stands beside the others."""
    game = make_game(name)
    plain = with_fields(MAPPOConfig(), MIRRORED)
    recurrent = with_fields(plain, {"memory.kind": "gru"})
    chunks = with_fields(recurrent, {"memory.chunk_length": CHUNK})
    hyper = with_fields(HyperMAPPOConfig(), MIRRORED)
    return [
        _work(game, "HyperMAPPO, last layer, latent 8", HyperMAPPO, hyper, copies),
        _work(game, "MAPPO, gru 128", MAPPO, recurrent, copies),
        _work(game, f"MAPPO, gru 128, chunks of {CHUNK} steps", MAPPO, chunks, copies),
        _work(game, "MAPPO, feed-forward", MAPPO, plain, copies),
    ]


def _work(game: Game, title: str, kind: Any, config: MAPPOConfig, copies: int) -> Work:
    seats = tuple(range(game.seats))
    learner: Learner = kind(config, view_shape(game), game.seats, seats, seats)
    phase = Phase(0, ("team",) * game.seats, (learner,), ())
    streams = jnp.arange(game.seats)
    state = jax.jit(lambda key: init_state(phase, game, key, copies, streams))(jax.random.key(0))

    def one(game: Game, state: Any, key: PRNGKeyArray) -> Any:
        return one_iteration(phase, game, state, key, jnp.float32(0), STEPS, streams)

    name = f"{title}, {game.name}, {copies} x {STEPS} steps, 4 x 4 minibatches"
    return Work(name, "game steps", copies * STEPS, one, (game, state, jax.random.key(1)))
