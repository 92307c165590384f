"""What HyperMAPPO costs beside MAPPO: processor time of an iteration (a rollout and an update).

All programs run by turns in one process. Ratios are of the same turn; the median over turns is
shown with its range, so that other work on the machine does not count.

python benchmarks/hyper_cost.py --turns 7
python benchmarks/hyper_cost.py --rows "width 64" --set hypernetwork.width=64 hypernetwork.units=64
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coplay.algorithms.registry import LEARNERS, new_learner
from coplay.core.compilation import use_cache
from coplay.core.config import parse_fields
from coplay.core.game import Game
from coplay.games.registry import make_game
from coplay.matches.rollout import new_table, rollout
from coplay.nn.networks import view_shape

ROWS: dict[str, tuple[str, list[str]]] = {
    "MAPPO": ("mappo", []),
    "recurrent MAPPO": ("mappo", ["memory.kind=gru"]),
    "HyperMAPPO": ("hyper-mappo", []),
    "context as an input": ("hyper-mappo", ["hypernetwork.use=input"]),
}


def prepared(
    game: Game, player: str, texts: list[str], sizes: tuple[int, int, int]
) -> tuple[Callable[[], Any], int]:
    """One iteration, compiled, and how many numbers are optimised. sizes: game copies, steps of a
    rollout, steps of a chunk."""
    copies, steps, chunk = sizes
    kind, made = LEARNERS[player]
    config = parse_fields(kind(), [f"memory.chunk_length={chunk}", *texts], "the benchmark")
    seats, key = tuple(range(game.seats)), jax.random.key(0)
    fields = {"shape": view_shape(game), "game_seats": game.seats, "seats": seats}
    learner: Any = new_learner(made, config=config, active=seats, **fields)
    streams = jnp.arange(game.seats)

    @jax.jit
    def begin() -> Any:
        state = learner.init(key, streams)
        return state, new_table(game, (learner.group(state),), key, copies)

    @jax.jit
    def iterate(state: Any, table: Any) -> Any:
        table, trajectory = rollout(game, (learner.group(state),), table, key, steps, streams)
        seen = learner.training_data(game, trajectory)
        state, _ = learner.update(key, state, seen, jnp.float32(0.0))
        return state, table

    given = begin()
    jax.block_until_ready(iterate(*given))
    numbers = sum(x.size for x in jax.tree.leaves(learner.parameters(given[0])))
    return lambda: jax.block_until_ready(iterate(*given)), numbers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--game", default="jaxmarl:MPE_simple_spread_v3")
    parser.add_argument("--copies", type=int, default=64)
    parser.add_argument("--steps", type=int, default=128)
    parser.add_argument("--chunk", type=int, default=8)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--rows", nargs="*", default=[], help="names of rows beside the usual ones")
    parser.add_argument("--set", nargs="*", action="append", default=[], help="fields of each")
    parser.add_argument("--leave-out", nargs="*", default=[], help="usual rows that do not run")
    given = parser.parse_args()
    use_cache()
    rows = {name: row for name, row in ROWS.items() if name not in given.leave_out}
    rows |= {
        name: ("hyper-mappo", fields) for name, fields in zip(given.rows, given.set, strict=True)
    }
    game = make_game(given.game)
    programs = {
        name: prepared(game, row[0], row[1], (given.copies, given.steps, given.chunk))
        for name, row in rows.items()
    }
    seconds: dict[str, list[float]] = {name: [] for name in rows}
    for _ in range(given.turns):
        for name, (program, _) in programs.items():
            begun = time.process_time()
            program()
            seconds[name].append(time.process_time() - begun)
    print(f"{given.game}, {given.copies} x {given.steps} steps, chunks of {given.chunk}")
    for name, (_, numbers) in programs.items():
        mine, plain = np.array(seconds[name]), np.array(seconds["MAPPO"])
        ratio = mine / plain
        print(
            f"{name}: {np.median(mine):.2f} s, {np.median(ratio):.2f} times MAPPO "
            f"({ratio.min():.2f} to {ratio.max():.2f}), {numbers:,} parameters"
        )


if __name__ == "__main__":
    main()
