"""Battles of environments in worker processes beside a plain loop over the same environments.

Both play random legal actions. The host loop asks one compiled policy for all copies at once; the
plain loop steps one environment after the other in one process. The two take turns.

- battles and steps per second of both;
- idle: the share of the time in which a worker has nothing to compute, by the scheduler, so that
  other work on the machine does not count. It has two parts: nobody steps while the policy
  acts, and workers wait for the slowest one;
- memory of the host and of its workers after each turn, which should stay flat.

    python benchmarks/battles.py --game smaclite:2s3z --copies 8 --steps 50 --turns 3
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

import coplay
from coplay.algorithms.scripted import Random
from coplay.core.group import group_players
from coplay.games.adapters.worker_game import WorkerGame
from coplay.games.adapters.workers.pool import Pool, cores
from coplay.matches.rollout import Table
from coplay.matches.worker_match import worker_act, worker_table
from coplay.matches.worker_rollout import worker_rollout


def busy_seconds(pid: int) -> float:
    """Seconds for which a process has computed, or has waited for a core that others used."""
    running, waiting, _ = map(int, Path(f"/proc/{pid}/schedstat").read_text().split())
    return (running + waiting) / 1e9


def megabytes(pid: int) -> float:
    """Resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class PlainLoop:
    """Environments in this process, stepped one after the other."""

    def __init__(self, game: WorkerGame, copies: int):
        self.envs = [game.source.make() for _ in range(copies)]
        self.random = np.random.default_rng(0)
        self.views = [env.reset(seed=copy)[0] for copy, env in enumerate(self.envs)]

    def play(self, steps: int) -> int:
        """Step every environment; how many episodes ended."""
        ended = 0
        for _ in range(steps):
            for copy, env in enumerate(self.envs):
                actions = {agent: self.choose(env, agent, copy) for agent in env.agents}
                self.views[copy] = env.step(actions)[0]
                if not env.agents:
                    ended += 1
                    self.views[copy] = env.reset(seed=copy + ended * len(self.envs))[0]
        return ended

    def choose(self, env: Any, agent: str, copy: int) -> int:
        """A random legal action."""
        seen = self.views[copy][agent]
        if isinstance(seen, dict) and "action_mask" in seen:
            return int(self.random.choice(np.flatnonzero(seen["action_mask"])))
        return int(self.random.integers(env.action_space(agent).n))


class HostLoop:
    """The same environments in workers, with one call of the policy for all copies."""

    def __init__(self, game: WorkerGame, pool: Pool):
        self.game, self.pool = game, pool
        self.groups = group_players([Random()] * game.seats)
        self.key = jax.random.key(0)
        self.table = worker_table(game, self.groups, pool.reset(0))
        self.stepping = 0.0
        self.step_pool = pool.step
        pool.step = self.timed  # type: ignore[method-assign]

    def timed(self, *arguments: Any, **named: Any) -> Any:
        begun = time.perf_counter()
        stepped = self.step_pool(*arguments, **named)
        self.stepping += time.perf_counter() - begun
        return stepped

    def act(self, table: Table, step: int) -> tuple[Any, Any, Any, Any]:
        action, memory = worker_act(self.game, self.groups, self.key, np.int32(step), table)
        return action, 0.0, memory, ()

    def play(self, steps: int) -> int:
        """Step every environment; how many episodes ended."""
        self.table, played = worker_rollout(self.act, self.pool, 0, self.table, steps)
        return int(np.sum(played.over))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--game", default="smaclite:2s3z")
    parser.add_argument("--options", nargs="*", default=[])
    parser.add_argument("--copies", type=int, default=8)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--steps", type=int, default=50, help="of each copy in a turn")
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    game = coplay.make_game(given.game, options=tuple(given.options), workers=given.workers)
    if not isinstance(game, WorkerGame):
        raise SystemExit(f"{given.game} is compiled: coplay bench throughput measures it")
    plain = PlainLoop(game, given.copies)
    with game.pool(given.copies) as pool:
        host = HostLoop(game, pool)
        host.play(1)  # compiles the policy
        workers = [handle.process.pid for handle in pool.handles]
        print(f"{given.game}, {given.copies} copies, {len(workers)} workers, {cores()} cores")
        for turn in range(given.turns):
            host.stepping, busy = 0.0, sum(map(busy_seconds, workers))
            begun = time.perf_counter()
            battles = host.play(given.steps)
            wall = time.perf_counter() - begun
            busy = sum(map(busy_seconds, workers)) - busy
            middle = time.perf_counter()
            plainly = plain.play(given.steps)
            plain_wall = time.perf_counter() - middle
            steps = given.copies * given.steps
            print(
                f"turn {turn}: workers {steps / wall:.1f} steps/s, {battles / wall:.2f} battles/s; "
                f"plain loop {steps / plain_wall:.1f} steps/s, {plainly / plain_wall:.2f} "
                f"battles/s; {plain_wall / wall:.2f} times as fast; "
                f"idle {1 - busy / (wall * len(workers)):.0%}, of it {1 - host.stepping / wall:.0%}"
                f" while the policy acts; memory {megabytes(os.getpid()):.0f} MB, "
                f"workers {sum(map(megabytes, workers)):.0f} MB"
            )


if __name__ == "__main__":
    main()
