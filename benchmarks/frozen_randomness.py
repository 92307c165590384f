"""How optimistic trees are that fix all randomness beforehand, beside the exact value.

Two players stand on a stag, three steps are planned, the other player acts by chance.

    python benchmarks/frozen_randomness.py
"""

import json

import jax
import jax.numpy as jnp
import numpy as np

from coplay.games.board.board_game import uniform
from coplay.games.stag_hunt import HUNT_STAG, StagHunt, StagHuntConfig
from coplay.search.config import SearchConfig
from coplay.search.known_policies import KnownPolicies
from coplay.search.root import search
from coplay.search.simulator import mix_bits

TREES = 128
GAME = StagHunt(StagHuntConfig(height=2, width=3, players=2, stags=1, hares=1, horizon=6))


def random_where(game: StagHunt, ego: object) -> jax.Array:
    return uniform(game.observe(ego).legal[0])


def main() -> None:
    state = GAME.reset(jax.random.key(0))._replace(
        cell=jnp.array([1, 1], jnp.int16), prey=jnp.array([1, 5], jnp.int16)
    )
    states = jax.tree.map(lambda x: jnp.broadcast_to(x, (TREES, *x.shape)), state)
    seeds = mix_bits(jnp.arange(1, TREES + 1, dtype=jnp.uint32))
    # The other has five legal actions on the stag in the middle of the upper row. If it stays or
    # hunts it can be met again; expectimax over three steps gives 1.3916 (tests/search).
    for way in ("", "scenarios", "resample"):
        chosen = {way: True} if way else {}
        config = SearchConfig(simulations=300, depth=3, exploration=4.0, **chosen)
        simulator = KnownPolicies((random_where,))
        run = jax.jit(lambda s, c=config, w=simulator: search(w, GAME, c, s, (), seeds))
        q = np.asarray(run(states).q)
        best = q.max(axis=1)
        row = {
            "way": way or "luck of each edge",
            "believed": float(best.mean()),
            "stderr": float(best.std() / TREES**0.5),
            "hunt": float(q[:, HUNT_STAG].mean()),
            "exact": 1.3916,
        }
        print(json.dumps(row))


if __name__ == "__main__":
    main()
