"""A pool of environments in worker processes, as one batch.

Workers are fresh interpreters, neither forked (JAX has threads) nor spawned by `multiprocessing`
(which would run the user's script once more in each). Arrays go through shared memory; a batch step
costs one short message to and from each worker.

A worker leads a process group of its own, which ends with it: what environments start, too.
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
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import IO, Any, NamedTuple

import numpy as np

from coplay.core.errors import WorkerFailed
from coplay.games.adapters.workers.memory import SharedArrays, new_file, open_arrays
from coplay.games.adapters.workers.seats import Seats, Views
from coplay.games.adapters.workers.source import Source
from coplay.games.adapters.workers.worker import IN_A_ROW, Told, WorkerTask

START = "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
START += "from coplay.games.adapters.workers.worker import main; main()"

CLOSING = 5.0  # seconds an environment may take to close
HOPELESS = "failed again and again"
STARTING = 300.0  # seconds that a worker has at least to start: a busy machine is slow to import

SETTINGS = {
    # One thread per worker: the workers are the parallelism.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # Sets of strings are walked through in the same order in every process.
    "PYTHONHASHSEED": "0",
    "SDL_VIDEODRIVER": "dummy",
    "SDL_AUDIODRIVER": "dummy",
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


def say_on_stderr(text: str) -> None:
    """Tell the user."""
    print(f"note: {text}", file=sys.stderr)


class WorkerHandle(NamedTuple):
    """A worker process and what belongs to it. trace: where it writes when it is dying."""

    process: subprocess.Popen
    channel: Connection
    trace: IO[bytes]


class Pool:
    """`sets` times `copies` environments spread over workers; a set is stepped as one batch.

    workers: how many processes; 0: as many as cores. At most one per game copy.
    timeout: seconds that any single call of an environment may take.
    film: see `WorkerTask`. strict: see `Checks`.
    restart: what raises, dies or hangs is started anew. Its episodes are cut where they were: the
        seats in the game are truncated and saw nothing new. restarts: how often that was done.
    say: is told what the user should know of the environments.
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
        strict: bool = False,
        restart: bool = False,
        say: Callable[[str], None] = say_on_stderr,
    ):
        count = min(workers or cores(), copies)
        self.seats, self.copies, self.timeout = seats, copies, timeout
        self.restart, self.restarts, self._say = restart and not film, 0, say
        rows = sets * copies
        self._memory = new_file(seats, rows, count)
        self.arrays: SharedArrays = open_arrays(self._memory, seats, rows, count)
        self.handles: list[WorkerHandle] = []
        self.tasks: list[WorkerTask] = []
        self._busy = False
        self._begun: dict[int, tuple[int, int]] = {}  # set -> (seed, iteration)
        self._shown: dict[int, Views] = {}  # set -> what its seats saw last, to cut episodes at
        self._lost: list[set[int]] = [set() for _ in range(count)]  # [worker] sets to begin anew
        self._in_a_row = [0] * count
        self._told: set[tuple[str, str]] = set()
        self._end = weakref.finalize(self, _kill, self.handles, self._memory)
        for number, mine in enumerate(np.array_split(np.arange(copies), count)):
            own = tuple(mine.tolist())
            self.tasks.append(
                WorkerTask(
                    number, count, source, seats, rows, copies, own, film, strict, self.restart
                )
            )
            self.handles.append(_start(self._memory))
            self._tell(number, self.tasks[-1])

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def reset(self, seed: int, begun: int = 0, number: int = 0) -> Views:
        """Begin all episodes of a set (see `episode_seed`): what the seats see, [copy, ...]."""
        self._begun[number] = (seed, begun)
        self._all([("reset", number, seed, begun)] * len(self.handles))
        for lost in self._lost:
            lost.discard(number)
        views = Views(*(array.copy() for array in _set(self.arrays.fresh, number, self.copies)))
        if self.restart:
            self._shown[number] = Views(*(array.copy() for array in views))
        return views

    def step(
        self, actions: np.ndarray, number: int = 0, active: np.ndarray | None = None
    ) -> Stepped:
        """One step of a set. actions: [copy, seat]; active: [copy] which environments step (all
        unless said). Environments whose episode ends begin the next one at once."""
        mine = slice(number * self.copies, (number + 1) * self.copies)
        arrays = self.arrays
        arrays.action[mine] = actions
        arrays.active[mine] = True if active is None else active
        anew = ("reset", number, *self._begun[number], True)
        lost = [n for n, sets in enumerate(self._lost) if number in sets]
        orders = [anew if n in lost else ("step", number) for n in range(len(self.handles))]
        for worker in [*lost, *self._all(orders)[1]]:
            rows = number * self.copies + np.array(self.tasks[worker].copies)
            arrays.cut[rows] = arrays.active[rows]
            arrays.over[rows] = False  # those that were not to step
            self._lost[worker].discard(number)
        stepped = Stepped(
            _set(arrays.after, number, self.copies),
            _set(arrays.fresh, number, self.copies),
            arrays.reward[mine],
            arrays.terminated[mine],
            arrays.truncated[mine],
            arrays.over[mine],
            arrays.score[mine],
        )
        if self.restart:
            self._cut(stepped, arrays.cut[mine], self._shown[number])
        return stepped

    def picture(self) -> Any:
        """The first environment as its `render` shows it."""
        return self._all([("picture",)] * len(self.handles))[0][0]

    def close(self) -> None:
        """Let the workers close their environments, and end them."""
        self.timeout = min(self.timeout, CLOSING)
        restart, self.restart = self.restart, False
        with contextlib.suppress(WorkerFailed):
            if self.handles and not self._busy:  # one that is busy would not listen
                self._all([("close",)] * len(self.handles))
        self._end()
        if restart and self.restarts:
            self._say(f"environments were restarted {self.restarts} times; their episodes were cut")

    # --- restarts ------------------------------------------------------------------------------

    def _cut(self, stepped: Stepped, cut: np.ndarray, shown: Views) -> None:
        """Give cut episodes an end, and keep what the seats see next."""
        for array, before in zip(stepped.after, shown, strict=True):
            array[cut] = before[cut]
        stepped.reward[cut], stepped.terminated[cut] = 0.0, False
        stepped.truncated[cut], stepped.over[cut] = shown.alive[cut], True
        stepped.score[cut] = 0.0
        for array, after, fresh in zip(shown, stepped.after, stepped.fresh, strict=True):
            array[...] = after
            array[stepped.over] = fresh[stepped.over]

    def _renew(self, number: int, order: tuple[Any, ...], message: str) -> None:
        """A new process in place of a worker that is gone, which begins the set under way; its
        other sets begin when they are stepped next."""
        self._in_a_row[number] += 1
        if self._in_a_row[number] > IN_A_ROW:
            self._end()
            raise WorkerFailed(f"{message}\nIt failed {self._in_a_row[number]} times in a row.")
        self._count(message)
        _end([self.handles[number]])
        self.arrays.at[number] = 0
        self.handles[number] = _start(self._memory)
        self._tell(number, self.tasks[number])
        self._lost[number] = set(self._begun) - {order[1]}
        self._tell(number, ("reset", order[1], *self._begun[order[1]], True))

    def _count(self, message: str) -> None:
        if not self.restarts:
            self._say(f"an environment failed and was restarted, its episode cut: {message}")
        self.restarts += 1

    def _hear(self, told: Told) -> None:
        """Pass on what a worker has to say; a breach once, whichever worker finds it."""
        for kind, agent, text in told.breaches:
            if (kind, agent) not in self._told:
                self._told.add((kind, agent))
                self._say(f"{text}; said once, refused with --game.strict")
        for text in told.failures:
            self._count(text)

    # --- messages ------------------------------------------------------------------------------

    def _tell(self, number: int, message: Any) -> None:
        # One that has died is noticed when its answer is awaited.
        with contextlib.suppress(BrokenPipeError, ConnectionError):
            self.handles[number].channel.send(message)

    def _all(self, orders: list[tuple[Any, ...]]) -> tuple[list[Any], set[int]]:
        """Give each worker its order and wait for their answers: those, and which workers had to be
        replaced and began the set anew instead."""
        if not self.handles:
            raise WorkerFailed("the workers of this pool are closed")
        for number, order in enumerate(orders):
            self._tell(number, order)
        self._busy = True
        answers: dict[int, Any] = {}
        anew: set[int] = set()
        calls, moved = self.arrays.at[:, 0].copy(), np.full(len(self.handles), time.monotonic())

        def trouble(number: int, what: str, trace: str = "") -> None:
            message = self._message(number, what, trace)
            if not self.restart or what == HOPELESS:
                self._end()
                raise WorkerFailed(message)
            self._renew(number, orders[number], message)
            anew.add(number)
            calls[number], moved[number] = 0, time.monotonic()

        while len(answers) < len(self.handles):
            waiting = {h.channel: n for n, h in enumerate(self.handles) if n not in answers}
            ready: list[Any] = wait(list(waiting), min(1.0, self.timeout / 4))
            for channel in ready:
                number = waiting[channel]
                try:
                    state, answer, told = channel.recv()
                except (EOFError, ConnectionError):
                    trouble(number, "died")
                    continue
                self._hear(told)
                if state == "fine":
                    answers[number] = answer
                    if orders[number][0] == "step" and number not in anew:
                        self._in_a_row[number] = 0
                else:
                    trouble(number, "failed" if state == "failed" else HOPELESS, answer)
            now, before = time.monotonic(), calls.copy()
            calls[:] = self.arrays.at[:, 0]
            moved[calls != before] = now
            for number in range(len(self.handles)):
                limit = self.timeout if calls[number] else max(self.timeout, STARTING)
                if number not in answers and now - moved[number] > limit:
                    trouble(number, f"gave no answer for {limit:g} s")
        self._busy = False
        return [answers[number] for number in range(len(self.handles))], anew

    def _message(self, number: int, what: str, trace: str) -> str:
        """Which worker is in trouble, where, and with what traceback."""
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
        return f"worker {number} {what} {where}" + (
            f":\n{trace.rstrip()}" if trace.strip() else "; there is no traceback"
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


def _end(handles: list[WorkerHandle]) -> None:
    """End workers with all that their environments have started, and let go of what is theirs."""
    for handle in handles:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(handle.process.pid, signal.SIGKILL)
    for handle in handles:
        handle.process.wait()
        handle.channel.close()
        handle.trace.close()


def _kill(handles: list[WorkerHandle], memory: int) -> None:
    """End a pool."""
    _end(handles)
    handles.clear()
    os.close(memory)
