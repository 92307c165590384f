"""What it costs to record what players think, and how large a replay becomes.

A planner with random weights plays Stag Hunt on 4×4 among scripted players: whole episodes by turns
with recording and without, with the same keys. Told is processor time, without compiling.

    python benchmarks/replay_cost.py --episodes 20 --repeats 3
"""

import argparse
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

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
    parser.add_argument("--repeats", type=int, default=3)
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

    def plain(seed: int) -> int:
        return len(record_episode(game, groups, seed).actions)

    def recorded(seed: int) -> int:
        return len(record_episodes(game, players, 1, seed)[0].actions)

    plain(0), recorded(0)
    ratios = []
    for _ in range(given.repeats):
        spent, steps = np.zeros(2), np.zeros(2, int)
        for seed in range(given.episodes):
            for place, play in enumerate((plain, recorded)):
                begun = time.process_time()
                steps[place] += play(seed)
                spent[place] += time.process_time() - begun
        assert steps[0] == steps[1]
        ratios.append(spent[1] / spent[0] - 1)
        print(
            f"{steps[0]} steps: {spent[0]:.1f} s without recording, {spent[1]:.1f} s with it: "
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
