"""What a worker process does: it steps its environments when told so, one message per batch."""

import faulthandler
import os
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

from coplay.games.adapters.workers.checks import BadEnvironment
from coplay.games.adapters.workers.memory import SharedArrays, open_arrays
from coplay.games.adapters.workers.seated import SeatedEnv
from coplay.games.adapters.workers.seats import Seats, Views
from coplay.games.adapters.workers.source import Source


@dataclass(frozen=True)
class WorkerTask:
    """What a worker is told first.

    number: of the worker, out of `workers`. source, seats: what makes an environment, and for whom.
    rows: environments of all sets; set_size: of one set. copies: which of every set are its own.
    film: the environments are to be looked at: made to give pictures, if they can, and left as they
        are when their episode is over.
    strict: see `Checks`. restart: an environment that raises is made anew.
    """

    number: int
    workers: int
    source: Source
    seats: Seats
    rows: int
    set_size: int
    copies: tuple[int, ...]
    film: bool
    strict: bool = False
    restart: bool = False


IN_A_ROW = 3  # failures without a step between them after which nothing is restarted any more


class Told(NamedTuple):
    """What a worker has to say beside its answer: sentences about places.

    breaches: (kind, agent, text). failures: of environments that were made anew.
    """

    breaches: list[tuple[str, str, str]]
    failures: list[str]


class Hopeless(RuntimeError):
    """An environment that cannot be made to work by making it anew."""


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
        self.steps: dict[int, int] = {}
        self.in_a_row: dict[int, int] = {}
        self.told = Told([], [])

    def reset(self, number: int, seed: int, begun: int, go_on: bool = False) -> None:
        """Begin the episodes of one set of environments: the first ones, or (`go_on`) those after
        the ones that another worker was playing."""
        self.begun[number] = (seed, begun)
        self.task.source.resolve()  # imports take their time, and are no call of an environment
        for copy in self.task.copies:
            row = number * self.task.set_size + copy
            if not go_on:
                self.arrays.episode[row] = -1
            self.steps[row] = 0
            if row not in self.envs:
                self._make(row)
            self._begin(number, copy)

    def step(self, number: int) -> None:
        """One step of all environments of a set that are active; those that end begin anew."""
        arrays = self.arrays
        for copy in self.task.copies:
            row = number * self.task.set_size + copy
            arrays.cut[row] = False
            if not arrays.active[row]:
                arrays.over[row], arrays.reward[row] = False, 0.0
                arrays.terminated[row] = arrays.truncated[row] = False
                continue
            self.steps[row] += 1
            self._at(row)
            try:
                self._step(row)
                self.in_a_row[row] = 0
            except Exception as error:
                if not self.task.restart:
                    raise
                self._renew(row, error)
                arrays.over[row] = arrays.cut[row] = True
            if arrays.over[row] and not self.task.film:
                try:
                    self._begin(number, copy)
                except Exception as error:
                    if not self.task.restart:
                        raise
                    self._renew(row, error)
                    self._begin(number, copy)

    def _step(self, row: int) -> None:
        arrays, env = self.arrays, self.envs[row]
        arrays.over[row] = env.step(
            arrays.action[row],
            _row(arrays.after, row),
            arrays.reward[row],
            arrays.terminated[row],
            arrays.truncated[row],
        )
        if arrays.over[row] and self.task.seats.scores:
            arrays.score[row] = env.env.scores()
        self._hear(row)

    def _hear(self, row: int) -> None:
        """Take note of what the checks of an environment found."""
        for kind, agent, text in self.envs[row].checks.take():
            self.told.breaches.append((kind, agent, f"{text} ({self._place(row)})"))

    def _renew(self, row: int, error: Exception) -> None:
        """A new environment in place of one that raised."""
        self.in_a_row[row] = self.in_a_row.get(row, 0) + 1
        if self.in_a_row[row] > IN_A_ROW:
            raise Hopeless(f"it failed {IN_A_ROW + 1} times in a row") from error
        name = "" if isinstance(error, BadEnvironment) else f"{type(error).__name__}: "
        self.told.failures.append(f"{self._place(row)}: {name}{error}")
        with suppress(Exception):
            self.envs[row].env.close()
        self._make(row)

    def _make(self, row: int) -> None:
        self._at(row)
        env = self.task.source.make(self.task.film)
        self.envs[row] = SeatedEnv(env, self.task.seats, self.task.strict)

    def _place(self, row: int) -> str:
        copy, episode = row % self.task.set_size, self.arrays.episode[row]
        return f"environment {copy}, episode {episode}, step {self.steps[row]}"

    def picture(self) -> Any:
        """What the first environment looks like now."""
        return self.envs[self.task.copies[0]].env.render()

    def close(self) -> None:
        for env in self.envs.values():
            env.env.close()

    def _begin(self, number: int, copy: int) -> None:
        row = number * self.task.set_size + copy
        self.arrays.episode[row] += 1
        self.steps[row] = 0
        self._at(row)
        seed = episode_seed(*self.begun[number], copy, int(self.arrays.episode[row]))
        self.envs[row].reset(seed, _row(self.arrays.fresh, row))
        self._hear(row)

    def _at(self, row: int) -> None:
        """Say where this worker is, for whoever has to report that it went no further."""
        at = self.arrays.at[self.task.number]
        at[1:] = row, max(0, self.arrays.episode[row]), self.steps.get(row, 0)
        at[0] += 1

    def take_told(self) -> Told:
        """What there is to say, once."""
        told, self.told = self.told, Told([], [])
        return told


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
            _end_group()
        try:
            answer = getattr(worker, order)(*arguments)
        except BaseException as error:
            plain = isinstance(error, BadEnvironment)  # its sentence says all
            hopeless = isinstance(error, Hopeless)
            text = str(error) if plain else traceback.format_exc()
            channel.send(("hopeless" if hopeless else "failed", text, worker.take_told()))
            return
        channel.send(("fine", answer, worker.take_told()))
        if order == "close":
            return


def _end_with(parent: int) -> None:
    """A worker that hangs must not outlive a run that was killed."""
    while os.getppid() == parent:
        time.sleep(1.0)
    _end_group()


def _end_group() -> None:
    """End this process and what its environments have started."""
    os.killpg(0, signal.SIGKILL)
    os._exit(1)
