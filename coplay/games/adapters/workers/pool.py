"""A pool of environments in worker processes, as one batch.

Workers are fresh interpreters, neither forked (JAX has threads) nor spawned by `multiprocessing`
(which would run the user's script once more in each). Arrays go through shared memory; a batch step
costs one short message to and from each worker.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import IO, Any, NamedTuple

import numpy as np

from coplay.core.errors import WorkerFailed
from coplay.games.adapters.workers.memory import SharedArrays, new_file, open_arrays
from coplay.games.adapters.workers.seats import Seats, Views
from coplay.games.adapters.workers.source import Source
from coplay.games.adapters.workers.worker import WorkerTask

START = "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
START += "from coplay.games.adapters.workers.worker import main; main()"

CLOSING = 5.0  # seconds an environment may take to close
STARTING = 60.0  # seconds that a worker has at least to start and import what it needs

SETTINGS = {
    # One thread per worker: the workers are the parallelism.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # Sets of strings are walked through in the same order in every process.
    "PYTHONHASHSEED": "0",
    "SDL_VIDEODRIVER": "dummy",
    "PYGAME_HIDE_SUPPORT_PROMPT": "1",
}


class Stepped(NamedTuple):
    """What one batch step brought, [copy, ...]; valid until the next one. See `SharedArrays`."""

    after: Views
    fresh: Views
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    over: np.ndarray
    score: np.ndarray


class WorkerHandle(NamedTuple):
    """A worker process and what belongs to it. trace: where it writes when it is dying."""

    process: subprocess.Popen
    channel: Connection
    trace: IO[bytes]


class Pool:
    """`sets` times `copies` environments spread over workers; a set is stepped as one batch.

    workers: how many processes; 0: as many as cores. At most one per game copy.
    timeout: seconds that any single call of an environment may take.
    film: see `WorkerTask`.
    """

    def __init__(
        self,
        source: Source,
        seats: Seats,
        copies: int,
        sets: int = 1,
        workers: int = 0,
        timeout: float = 60.0,
        film: bool = False,
    ):
        count = min(workers or cores(), copies)
        self.seats, self.copies, self.timeout = seats, copies, timeout
        rows = sets * copies
        memory = new_file(seats, rows, count)
        self.arrays: SharedArrays = open_arrays(memory, seats, rows, count)
        self.handles: list[WorkerHandle] = []
        self._busy = False
        self._end = weakref.finalize(self, _kill, self.handles)
        try:
            for number, mine in enumerate(np.array_split(np.arange(copies), count)):
                own = tuple(mine.tolist())
                task = WorkerTask(number, count, source, seats, rows, copies, own, film)
                self.handles.append(_start(memory))
                self._tell(self.handles[-1], task)
        finally:
            os.close(memory)

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def reset(self, seed: int, begun: int = 0, number: int = 0) -> Views:
        """Begin all episodes of a set (see `episode_seed`): what the seats see, [copy, ...]."""
        self._all("reset", number, seed, begun)
        return Views(*(array.copy() for array in _set(self.arrays.fresh, number, self.copies)))

    def step(
        self, actions: np.ndarray, number: int = 0, active: np.ndarray | None = None
    ) -> Stepped:
        """One step of a set. actions: [copy, seat]; active: [copy] which environments step (all
        unless said). Environments whose episode ends begin the next one at once."""
        mine = slice(number * self.copies, (number + 1) * self.copies)
        self.arrays.action[mine] = actions
        self.arrays.active[mine] = True if active is None else active
        self._all("step", number)
        arrays = self.arrays
        return Stepped(
            _set(arrays.after, number, self.copies),
            _set(arrays.fresh, number, self.copies),
            arrays.reward[mine],
            arrays.terminated[mine],
            arrays.truncated[mine],
            arrays.over[mine],
            arrays.score[mine],
        )

    def picture(self) -> Any:
        """The first environment as its `render` shows it."""
        return self._all("picture")[0]

    def close(self) -> None:
        """Let the workers close their environments, and end them."""
        self.timeout = min(self.timeout, CLOSING)
        with contextlib.suppress(WorkerFailed):
            if self.handles and not self._busy:  # one that is busy would not listen
                self._all("close")
        self._end()

    # --- messages ------------------------------------------------------------------------------

    def _tell(self, handle: WorkerHandle, message: Any) -> None:
        try:
            handle.channel.send(message)
        except (BrokenPipeError, ConnectionError):
            self._fail(self.handles.index(handle), "died", "")

    def _all(self, *order: Any) -> list[Any]:
        """Give all workers an order and wait for their answers."""
        if not self.handles:
            raise WorkerFailed("the workers of this pool are closed")
        for handle in self.handles:
            self._tell(handle, order)
        self._busy = True
        answers: dict[int, Any] = {}
        numbers: dict[Any, int] = {handle.channel: n for n, handle in enumerate(self.handles)}
        calls, moved = self.arrays.at[:, 0].copy(), np.full(len(self.handles), time.monotonic())
        while len(answers) < len(self.handles):
            waiting = [channel for channel, number in numbers.items() if number not in answers]
            for channel in wait(waiting, min(1.0, self.timeout / 4)):
                number = numbers[channel]
                try:
                    fine, answers[number] = channel.recv()  # type: ignore
                except (EOFError, ConnectionError):
                    self._fail(number, "died", "")
                if not fine:
                    self._fail(number, "failed", answers[number])
            now, before = time.monotonic(), calls
            calls = self.arrays.at[:, 0].copy()
            moved[calls != before] = now
            for number in numbers.values():
                limit = self.timeout if calls[number] else max(self.timeout, STARTING)
                if number not in answers and now - moved[number] > limit:
                    self._fail(number, f"gave no answer for {limit:g} s", "")
        self._busy = False
        return [answers[number] for number in range(len(self.handles))]

    def _fail(self, number: int, what: str, trace: str) -> None:
        """End all workers and say which one brought this about, where, and with what traceback."""
        handle = self.handles[number]
        if what.startswith("gave no"):
            handle.process.send_signal(signal.SIGUSR1)
            time.sleep(0.5)
        elif what == "died":
            code = handle.process.wait()
            what = f"died ({signal.Signals(-code).name if code < 0 else f'exit code {code}'})"
        handle.trace.seek(0)
        trace = trace or handle.trace.read().decode(errors="replace")
        calls, row, episode, step = self.arrays.at[number].tolist()
        place = f"at environment {row % self.copies}, episode {episode}, step {step}"
        where = place if calls else "before its first environment"
        self._end()
        raise WorkerFailed(
            f"worker {number} {what} {where}"
            + (f":\n{trace.rstrip()}" if trace.strip() else "; there is no traceback")
        )


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _set(views: Views, number: int, copies: int) -> Views:
    mine = slice(number * copies, (number + 1) * copies)
    return Views(*(array[mine] for array in views))


def _start(memory: int) -> WorkerHandle:
    """A new worker process."""
    ours, theirs = Pipe()
    trace = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the worker)
    given = (theirs.fileno(), memory, trace.fileno())
    path = json.dumps([os.path.abspath(entry) for entry in sys.path])
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", START, *map(str, given), path],
        pass_fds=given,
        stdin=subprocess.DEVNULL,
        stdout=2,  # what environments print is no result of ours
        env=SETTINGS | os.environ,
        start_new_session=True,  # signals from the terminal are for the run alone
    )
    theirs.close()
    return WorkerHandle(process, ours, trace)


def _kill(handles: list[WorkerHandle]) -> None:
    """End the processes and let go of what belongs to them."""
    for handle in handles:
        handle.process.kill()
    for handle in handles:
        handle.process.wait()
        handle.channel.close()
        handle.trace.close()
    handles.clear()
