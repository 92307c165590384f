"""Memory of one gradient of MAPPO and HyperMAPPO beside its inputs and outputs, by XLA's figure:
the same number of samples of few and of many agents.

python benchmarks/hyper_memory.py --hidden 64 64
"""

import argparse
from typing import Any

import jax
import jax.numpy as jnp

from coplay.algorithms.mappo.config import HyperMAPPOConfig, MAPPOConfig
from coplay.algorithms.mappo.hyper import HyperMAPPO
from coplay.algorithms.mappo.learner import MAPPO
from coplay.core.config import with_fields
from coplay.games.registry import make_game
from coplay.matches.rollout import new_table, rollout
from coplay.nn.networks import view_shape

STEPS, SAMPLES = 16, 4096


def megabytes(kind: type[MAPPO], config: Any, agents: int) -> float:
    """Of one gradient of `SAMPLES` samples."""
    game = make_game("hidden-target", players=agents)
    seats = tuple(range(agents))
    learner = kind(config, view_shape(game), agents, seats, seats)
    streams, key = jnp.arange(agents), jax.random.key(0)

    def prepared(state: Any) -> Any:
        groups = (learner.group(state),)
        table = new_table(game, groups, key, SAMPLES // STEPS // agents)
        seen = learner.training_data(game, rollout(game, groups, table, key, STEPS, streams)[1])
        return learner.prepare(state, seen)[:2]

    given = jax.eval_shape(prepared, jax.eval_shape(learner.init, key, streams))
    gradient = jax.jit(jax.vmap(lambda state, batch: learner.gradients(state, batch)[0]))
    analysis = gradient.lower(*given).compile().memory_analysis()
    assert analysis is not None, "this backend does not say how much memory a program needs"
    return analysis.temp_size_in_bytes / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hidden", type=int, nargs="+", default=[64, 64])
    parser.add_argument("--agents", type=int, nargs="+", default=[4, 16])
    given = parser.parse_args()
    hidden = tuple(given.hidden)
    for agents in given.agents:
        wide = {"network.hidden": hidden}
        plain = megabytes(MAPPO, with_fields(MAPPOConfig(), wide), agents)
        last, all_ = (
            megabytes(HyperMAPPO, with_fields(HyperMAPPOConfig(), wide | layers), agents)
            for layers in ({"hypernetwork.layers": "last"}, {"hypernetwork.layers": "all"})
        )
        print(f"{agents} agents: MAPPO {plain:.1f}, last {last:.1f}, all layers {all_:.1f} MB")


if __name__ == "__main__":
    main()
