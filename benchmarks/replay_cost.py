"""What it costs to record what players think, and how large a replay becomes.

A planner with random weights, which searches as the player of a run does, plays Stag Hunt on 4×4
among scripted players, by turns without recording, with all thoughts as arrays, and with the
records that a page is written of. Told is processor time, without compiling: the median of the
turns and, since other work disturbs, the least.

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
from coplay.matches.episodes import play_steps
from coplay.matches.match import record_episode
from coplay.matches.recording import describe, record_episodes
from coplay.nn.networks import view_shape
from coplay.reports.replay import Replay
from coplay.training.players import make_player
from coplay.training.run import playing

OTHERS = ("ns", "nh", "random")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    game = make_game("stag-hunt")
    learner = HOP(
        config=playing(HOPConfig()),
        shape=view_shape(game),
        game_seats=game.seats,
        seats=(0,),
        active=(0,),
    )
    state = jax.jit(lambda: learner.init(jax.random.key(0), jnp.arange(game.seats)))()
    players = [learner.player(state, 0), *(make_player(name, game) for name in OTHERS)]
    groups = group_players(players)

    def alone() -> int:
        return sum(len(record_episode(game, groups, seed).actions) for seed in seeds)

    def recording() -> int:
        return len(list(play_steps(game, groups, given.episodes, 0)))

    def records() -> int:
        played = record_episodes(game, players, given.episodes, 0)
        return sum(len(episode.steps) for episode in played)

    seeds = range(given.episodes)
    ways = alone, recording, records
    costs: dict[str, list[float]] = {way.__name__: [] for way in ways}
    for turn in range(given.repeats + 1):
        for way in ways:
            begun = time.process_time()
            steps = way()
            if turn:  # the first one compiles
                costs[way.__name__].append(1000 * (time.process_time() - begun) / steps)
    middle = {name: statistics.median(found) for name, found in costs.items()}
    for name, found in costs.items():
        more = [
            f"{100 * (one - base) / base:+.0f} %"
            for one, base in (
                (middle[name], middle["alone"]),
                (min(found), min(costs["alone"])),
            )
        ]
        print(
            f"{name:10} {middle[name]:.2f} ms a step ({more[0]}), least {min(found):.2f} ms "
            f"({more[1]})"
        )
    labels = ["hop", *OTHERS]
    episodes = record_episodes(game, players, given.episodes, 0)
    page = Replay(game, labels, describe(game, players, labels, 0), episodes).page()
    total = sum(len(episode.steps) for episode in episodes)
    print(
        f"{given.episodes} episodes, {total} steps: the page has {len(page.encode()) / 1e6:.2f} MB"
    )


if __name__ == "__main__":
    main()
