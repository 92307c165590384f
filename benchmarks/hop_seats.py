"""What a joint step of HOP and its update cost with more and more seats, and with walls.

Every seat searches, so times are given for a step of all seats together, by processor time.

python benchmarks/hop_seats.py --seats 2 4 8 16 --side 8
"""

import argparse
import statistics
import time
from typing import Any

import jax
import jax.numpy as jnp

from coplay.algorithms.hop.config import HOPConfig
from coplay.algorithms.hop.learner import HOP
from coplay.core.config import with_fields
from coplay.games.registry import make_game
from coplay.matches.rollout import rollout
from coplay.nn.networks import view_shape
from coplay.training.block import TrainState, groups_of, init_state, learn
from coplay.training.phases import Phase


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seats", type=int, nargs="+", default=[2, 4, 8, 16])
    parser.add_argument("--side", type=int, default=8)
    parser.add_argument("--walls", type=int, default=0)
    parser.add_argument("--copies", type=int, default=32)
    parser.add_argument("--rollout", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--parameters", default="auto")
    parser.add_argument("--opponents", default="separate")
    given = parser.parse_args()
    before: tuple[float, float] | None = None
    for seats in given.seats:
        play, update, compiling = costs(given, seats)
        steps = given.copies * given.rollout
        words = f"{seats} seats: {steps / (play + update):.1f} joint steps per second"
        words += f", {play / steps * 1e3:.2f} ms of play and {update * 1e3:.0f} ms per update"
        words += f", {compiling:.0f} s to compile"
        if before is not None:
            words += f"; x{play / before[0]:.2f} and x{update / before[1]:.2f} of the row above"
        print(words, flush=True)
        before = play, update


def costs(given: argparse.Namespace, seats: int) -> tuple[float, float, float]:
    """Seconds of processor time of a rollout and of an update, and to compile both."""
    game = make_game(
        "stag-hunt", height=given.side, width=given.side, players=seats, walls=given.walls
    )
    everyone = tuple(range(seats))
    fields = {"parameters": given.parameters, "opponents": given.opponents}
    learner = HOP(
        with_fields(HOPConfig(), fields), view_shape(game), game.seats, everyone, everyone
    )
    phase = Phase(0, ("hop",) * seats, (learner,), ())
    streams = jnp.arange(seats)
    key = jax.random.key(0)

    def play(game: Any, state: TrainState) -> Any:
        groups = groups_of(phase, state.learners)
        return rollout(game, groups, state.table, key, given.rollout, streams)

    def update(game: Any, state: TrainState, trajectory: Any) -> Any:
        return learn(game, phase, state.learners, trajectory, key, jnp.float32(0))

    state = jax.jit(lambda key: init_state(phase, game, key, given.copies, streams))(key)
    begun = time.process_time()
    playing = jax.jit(play).lower(game, state).compile()
    _, trajectory = playing(game, state)
    updating = jax.jit(update).lower(game, state, trajectory).compile()
    jax.block_until_ready(updating(game, state, trajectory))
    compiling = time.process_time() - begun

    def seconds(program: Any, *arguments: Any) -> float:
        begun = time.process_time()
        jax.block_until_ready(program(*arguments))
        return time.process_time() - begun

    turns = [
        (seconds(playing, game, state), seconds(updating, game, state, trajectory))
        for _ in range(given.repeats)
    ]
    return *(statistics.median(turn) for turn in zip(*turns, strict=True)), compiling


if __name__ == "__main__":
    main()
