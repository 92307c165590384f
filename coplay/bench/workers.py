"""Throughput of environments in worker processes beside a plain loop over one of them."""

import importlib.util
import statistics
import time
from typing import Any

import jax
import numpy as np

from coplay.algorithms.scripted import Random
from coplay.core.group import group_players
from coplay.games.adapters.worker_game import WorkerGame
from coplay.games.adapters.workers.pool import cores
from coplay.games.registry import make_game
from coplay.matches.rollout import Table
from coplay.matches.worker_match import worker_act, worker_table
from coplay.matches.worker_rollout import worker_rollout

MODULE = "mpe2.simple_spread_v3"
COPIES, STEPS = 32, 25  # an episode of the environment has 25 steps


def worker_rows(repeats: int) -> list[dict[str, Any]]:
    """Random players through our workers, and PettingZoo's own interface in one process with
    actions drawn beforehand, taking turns. Nothing if the environment is not installed."""
    if importlib.util.find_spec(MODULE.split(".")[0]) is None:
        return []
    game = make_game(f"pettingzoo:{MODULE}")
    assert isinstance(game, WorkerGame)
    groups = group_players([Random()] * game.seats)
    key = jax.random.key(0)
    ours, plain = [], []
    env = game.source.make()
    random = np.random.default_rng(0)
    with game.pool(COPIES) as pool:
        table = worker_table(game, groups, pool.reset(0))

        def act(table: Table, step: int) -> tuple[Any, Any, Any, Any]:
            action, memory = worker_act(game, groups, key, np.int32(step), table)
            return action, 0.0, memory, ()

        for _ in range(repeats + 1):
            begun = time.perf_counter()
            table, _ = worker_rollout(act, pool, 0, table, STEPS)
            middle = time.perf_counter()
            play_plainly(env, random.integers(0, game.actions, (COPIES * STEPS, game.seats)))
            ours.append(middle - begun)
            plain.append(time.perf_counter() - middle)
    env.close()
    seconds, plainly = (statistics.median(times[1:]) for times in (ours, plain))  # warmed up
    workers = min(cores(), COPIES)
    return [
        {
            "what": f"{MODULE}, random players, {workers} workers",
            "board": "",
            "counted": "game steps",
            "per_second": COPIES * STEPS / seconds,
            "beside": "a plain loop",
            "beside_per_second": COPIES * STEPS / plainly,
            "seconds": seconds,
            "compile_seconds": None,
        }
    ]


def play_plainly(env: Any, actions: np.ndarray) -> None:
    """The loop of PettingZoo's documentation; actions: [step, seat]."""
    env.reset(seed=0)
    for row in actions:
        if not env.agents:
            env.reset()
        env.step(dict(zip(env.agents, row, strict=True)))
