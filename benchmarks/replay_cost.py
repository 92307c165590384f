"""What it costs to record what players think, and how large a replay becomes.

A planner with random weights plays Stag Hunt on 4×4 among scripted players: episodes by turns with
recording and without. Told is processor time, without compiling.

    python benchmarks/replay_cost.py --episodes 20 --repeats 5
"""

import argparse
import statistics
import time

import jax
import jax.numpy as jnp

from coplay.algorithms.hop.config import HOPConfig
from coplay.algorithms.hop.learner import HOP
from coplay.core.group import group_players
from coplay.games.registry import make_game
from coplay.matches.match import record_episode
from coplay.matches.recording import describe, record_episodes
from coplay.nn.networks import view_shape
from coplay.reports.replay import Replay
from coplay.training.players import make_player

OTHERS = ("ns", "nh", "random")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    game = make_game("stag-hunt")
    learner = HOP(
        config=HOPConfig(),
        shape=view_shape(game),
        game_seats=game.seats,
        seats=(0,),
        active=(0,),
    )
    state = jax.jit(lambda: learner.init(jax.random.key(0), jnp.arange(game.seats)))()
    players = [learner.player(state, 0), *(make_player(name, game) for name in OTHERS)]
    groups = group_players(players)

    def plain() -> int:
        return sum(len(record_episode(game, groups, seed).actions) for seed in seeds)

    def recorded() -> int:
        played = record_episodes(game, players, given.episodes, 0)
        return sum(len(episode.steps) for episode in played)

    seeds = range(given.episodes)
    plain(), recorded()
    ratios = []
    for _ in range(given.repeats):
        costs = []
        for play in (plain, recorded):
            begun = time.process_time()
            steps = play()
            costs.append(1000 * (time.process_time() - begun) / steps)
        ratios.append(costs[1] / costs[0] - 1)
        print(
            f"{costs[0]:.1f} ms a step without recording, {costs[1]:.1f} ms with it: "
            f"{100 * ratios[-1]:.0f} % more"
        )
    print(f"recording costs {100 * statistics.median(ratios):.0f} % (median)")
    labels = ["hop", *OTHERS]
    episodes = record_episodes(game, players, given.episodes, 0)
    page = Replay(game, labels, describe(game, players, labels, 0), episodes).page()
    total = sum(len(episode.steps) for episode in episodes)
    print(
        f"{given.episodes} episodes, {total} steps: the page has {len(page.encode()) / 1e6:.2f} MB"
    )


if __name__ == "__main__":
    main()
