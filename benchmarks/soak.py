"""Does anything grow in a long life? Trainings and a pool of crashing environments, over and over.

python benchmarks/soak.py --minutes 120

Each round of one process trains a small run on a compiled game, trains another on environments in
worker processes, and steps a pool of such environments. They crash every 1000 steps, by an
exception or by the death of their process, and are restarted. After each round the process counts
its memory, file descriptors, threads, children and temporary files. Needs Linux (/proc).
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from gymnasium import spaces

import coplay

CRASH_EVERY = 1000
SMALL: dict[str, Any] = {
    "copies": 8,
    "rollout": 8,
    "network.hidden": (8,),
    "minibatches": 2,
    "epochs": 1,
    "episodes": 16,
}


class Crashing:
    """Two agents see a number and win by naming it. Every 1000 steps the environment crashes."""

    metadata: ClassVar[dict[str, Any]] = {"name": "crashing", "render_modes": []}
    possible_agents: ClassVar = ["a", "b"]

    def __init__(self) -> None:
        self.agents: list[str] = []
        self.steps = 0

    def observation_space(self, agent: str) -> spaces.Space:
        return spaces.Box(0, 1, (4,), np.float32)

    def action_space(self, agent: str) -> spaces.Space:
        return spaces.Discrete(4)

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict, dict]:
        self.random, self.time = np.random.default_rng(seed), 0
        self.agents = list(self.possible_agents)
        return self.shown(), {}

    def step(self, actions: dict[str, int]) -> tuple[dict, dict, dict, dict, dict]:
        self.steps, self.time = self.steps + 1, self.time + 1
        if self.steps % CRASH_EVERY == 0:
            if self.random.random() < 0.5:
                os._exit(1)
            raise RuntimeError("a crash")
        rewards = {agent: float(actions[agent] == self.number) for agent in self.agents}
        shown, over = self.shown(), self.time >= 20
        ends = dict.fromkeys(self.agents, over)
        self.agents = [] if over else self.agents
        return shown, rewards, dict.fromkeys(rewards, False), ends, {}

    def shown(self) -> dict[str, np.ndarray]:
        self.number = int(self.random.integers(4))
        return {agent: np.eye(4, dtype=np.float32)[self.number] for agent in self.possible_agents}

    def close(self) -> None:
        pass


class Sizes(NamedTuple):
    """What a process holds: resident memory in MB, and how many of each."""

    memory: float
    descriptors: int
    threads: int
    children: int
    temporary: int


def sizes() -> Sizes:
    """Of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return Sizes(
        pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
        len(os.listdir("/proc/self/fd")),
        len(os.listdir("/proc/self/task")),
        len(children),
        len(os.listdir(tempfile.gettempdir())),
    )


def trainings(folder: Path, game: Any) -> int:
    """Two short runs; returns the restarts."""
    quiet: dict[str, Any] = {"quiet": True, "pictures": False, **SMALL}
    coplay.train("ppo", "stag-hunt", folder / "compiled", steps=2048, **quiet)
    summary = coplay.train("ppo", game, folder / "workers", steps=2048, **quiet)
    shutil.rmtree(folder)
    return summary["restarts"]


def pool_steps(game: Any, steps: int) -> int:
    """A pool of its own for so many steps; returns the restarts."""
    with game.pool(16, say=lambda text: None) as pool:
        pool.reset(0)
        for _ in range(steps):
            pool.step(np.zeros((16, 2), int))
        return pool.restarts


def verdict(rows: list[Sizes]) -> list[str]:
    """What grew: the last quarter beside the second, when everything was made once."""
    quarter = max(1, len(rows) // 4)
    early, late = rows[quarter : 2 * quarter], rows[-quarter:]
    grown = []
    for name, allowed in zip(Sizes._fields, (20.0, 0, 0, 0, 0), strict=True):
        was, is_ = (statistics.median(getattr(row, name) for row in part) for part in (early, late))
        if is_ - was > allowed:
            grown.append(f"{name} grew from {was:g} to {is_:g}")
    return grown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--pool-steps", type=int, default=4000)
    parser.add_argument("--only", choices=["pool", "trainings"])
    given = parser.parse_args()
    own = tempfile.mkdtemp()  # so that only files of this process are counted
    tempfile.tempdir = os.environ["TMPDIR"] = own
    folder = Path(tempfile.mkdtemp(dir=os.getcwd()))
    game = coplay.from_pettingzoo(
        Crashing, "crashing", workers=2, timeout=600, restart_workers=True
    )
    names = " ".join(f"{name:>11}" for name in Sizes._fields)
    print(f"{'minutes':>8} {'rounds':>7} {'restarts':>9} {names}")
    rows: list[Any] = []
    begun, restarts = time.monotonic(), 0
    try:
        while (passed := (time.monotonic() - begun) / 60) < given.minutes or len(rows) < 4:
            if given.only != "pool":
                restarts += trainings(folder / "runs", game)
            if given.only != "trainings":
                restarts += pool_steps(game, given.pool_steps)
            rows.append(sizes())
            shown = " ".join(f"{value:11.0f}" for value in rows[-1])
            print(f"{passed:8.1f} {len(rows):7} {restarts:9} {shown}", flush=True)
    finally:
        shutil.rmtree(folder)
        shutil.rmtree(own)
    grown = verdict(rows)
    print("flat: nothing grew" if not grown else "; ".join(grown))
    raise SystemExit(bool(grown))


if __name__ == "__main__":
    main()
