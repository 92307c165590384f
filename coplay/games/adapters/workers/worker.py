"""What a worker process does: it steps its environments when told so, one message per batch."""

import faulthandler
import os
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from coplay.games.adapters.workers.memory import SharedArrays, open_arrays
from coplay.games.adapters.workers.seats import SeatedEnv, Seats, Views
from coplay.games.adapters.workers.source import Source


@dataclass(frozen=True)
class WorkerTask:
    """What a worker is told first.

    number: of the worker, out of `workers`. source, seats: what makes an environment, and for whom.
    rows: environments of all sets; set_size: of one set. copies: which of every set are its own.
    film: the environments are to be looked at: made to give pictures, if they can, and left as they
        are when their episode is over.
    """

    number: int
    workers: int
    source: Source
    seats: Seats
    rows: int
    set_size: int
    copies: tuple[int, ...]
    film: bool


def episode_seed(seed: int, begun: int, copy: int, episode: int) -> int:
    """The seed of an episode: of game copy `copy`, its episode-th since the environments of the
    run with `seed` were begun at iteration `begun`."""
    state = np.random.SeedSequence((seed, begun, copy, episode)).generate_state(1)
    return int(state[0]) >> 1  # many environments want less than 2**31


class Worker:
    """The environments of one process, by row = set * copies + copy."""

    def __init__(self, task: WorkerTask, arrays: SharedArrays):
        self.task, self.arrays = task, arrays
        self.envs: dict[int, SeatedEnv] = {}
        self.begun: dict[int, tuple[int, int]] = {}  # set -> (seed, iteration)
        self.episode: dict[int, int] = {}
        self.steps: dict[int, int] = {}

    def reset(self, number: int, seed: int, begun: int) -> None:
        """Begin the episodes of one set of environments."""
        self.begun[number] = (seed, begun)
        self.task.source.resolve()  # imports take their time, and are no call of an environment
        for copy in self.task.copies:
            row = number * self.task.set_size + copy
            self.episode[row] = -1
            if row not in self.envs:
                self._at(row)
                env = self.task.source.make(self.task.film)
                self.envs[row] = SeatedEnv(env, self.task.seats)
            self._begin(number, copy)

    def step(self, number: int) -> None:
        """One step of all environments of a set that are active; those that end begin anew."""
        arrays = self.arrays
        for copy in self.task.copies:
            row = number * self.task.set_size + copy
            if not arrays.active[row]:
                arrays.over[row], arrays.reward[row] = False, 0.0
                arrays.terminated[row] = arrays.truncated[row] = False
                continue
            self.steps[row] += 1
            self._at(row)
            arrays.over[row] = self.envs[row].step(
                arrays.action[row],
                _row(arrays.after, row),
                arrays.reward[row],
                arrays.terminated[row],
                arrays.truncated[row],
            )
            if arrays.over[row] and self.task.seats.scores:
                arrays.score[row] = self.envs[row].env.scores()
            if arrays.over[row] and not self.task.film:
                self._begin(number, copy)

    def picture(self) -> Any:
        """What the first environment looks like now."""
        return self.envs[self.task.copies[0]].env.render()

    def close(self) -> None:
        for env in self.envs.values():
            env.env.close()

    def _begin(self, number: int, copy: int) -> None:
        row = number * self.task.set_size + copy
        self.episode[row] += 1
        self.steps[row] = 0
        self._at(row)
        seed = episode_seed(*self.begun[number], copy, self.episode[row])
        self.envs[row].reset(seed, _row(self.arrays.fresh, row))

    def _at(self, row: int) -> None:
        """Say where this worker is, for whoever has to report that it went no further."""
        at = self.arrays.at[self.task.number]
        at[1:] = row, self.episode.get(row, 0), self.steps.get(row, 0)
        at[0] += 1


def _row(views: Views, row: int) -> Views:
    return Views(*(array[row] for array in views))


def main() -> None:
    """Serve until the other end of the connection is gone."""
    connection, memory, trace = (int(text) for text in sys.argv[1:4])
    # Ctrl-C is for the run, which tells its workers to close.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable(trace)
    faulthandler.register(signal.SIGUSR1, trace)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    channel = Connection(connection)
    task: WorkerTask = channel.recv()
    worker = Worker(task, open_arrays(memory, task.seats, task.rows, task.workers))
    while True:
        try:
            order, *arguments = channel.recv()
        except (EOFError, ConnectionError):
            return
        try:
            answer = getattr(worker, order)(*arguments)
        except BaseException:
            channel.send((False, traceback.format_exc()))
            return
        channel.send((True, answer))
        if order == "close":
            return


def _end_with(parent: int) -> None:
    """A worker that hangs must not outlive a run that was killed."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
