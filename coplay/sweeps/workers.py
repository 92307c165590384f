"""Runs in processes of their own, several at a time, on this machine."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from coplay.core.files import make_folder
from coplay.core.lock import is_held
from coplay.core.reading import shown

CONFIG = "config.json"
"""The first file of a run. `RunFolder` would load JAX, which an actor does without."""
PATIENCE = 60.0
"""Seconds that a run has to save after it was asked to stop."""
TAIL = 4000  # bytes of a log that are shown
TRIES = 3
"""How often a run may fail by itself."""
LOSSES = 20
"""How often the machine of a run may be lost."""
BREAK = 0.2  # seconds between two looks at the workers

LAUNCH = """
import ctypes, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
parent = int(sys.argv.pop(1))
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit(130)
from coplay.cli.main import main
main()
"""
"""Becomes `coplay …`. A run whose parent dies is asked to stop (1 is PR_SET_PDEATHSIG), so that it
saves and leaves its folder to whoever takes it up."""


class Job(NamedTuple):
    """A run to be done. name: of the job. folder: of the run. begin, go_on: what `coplay` is given
    to begin it and to take it up. log: file for what it prints. order: file that it reads."""

    name: str
    folder: Path
    begin: tuple[str, ...]
    go_on: tuple[str, ...]
    log: Path
    order: Path


class Ended(NamedTuple):
    """A job whose process is gone. code: its exit code, negative: a signal. lost: its machine is
    gone, not only the process. words: the end of what it printed."""

    name: str
    code: int
    lost: bool = False
    words: str = ""


class Workers(Protocol):
    """Does jobs, several at a time."""

    slots: int
    """Jobs at a time."""

    def start(self, job: Job) -> bool:
        """Begin a job or take it up; False: its folder is still being written."""

    def poll(self) -> list[Ended]:
        """The jobs that ended since this was last asked."""

    def ask_to_stop(self, name: str) -> None:
        """A job is to save and end."""

    def close(self) -> None:
        """Stop everything and wait."""


def awaited(workers: Workers) -> list[Ended]:
    """The jobs that ended, as soon as one has; none after a `BREAK`. A slot that waits for the next
    job is lost."""
    for _ in range(4):
        if ended := workers.poll():
            return ended
        time.sleep(BREAK / 4)
    return []


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def environment(threads: int, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a run that computes with so many threads, and runs this very program.
    more: variables beside those of this process."""
    found = {**os.environ, **(more or {})}
    home = str(Path(__file__).parents[2])
    before = found.get("PYTHONPATH", "")
    found["PYTHONPATH"] = os.pathsep.join([home, before] if before else [home])
    found |= {name: str(threads) for name in ("PJRT_NPROC", "OMP_NUM_THREADS")}
    flags = found.get("XLA_FLAGS", "")
    if threads == 1 and "xla_cpu_multi_thread_eigen" not in flags:
        found["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
    return found


def launch(
    arguments: tuple[str, ...], log: Path, where: Path, variables: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """`coplay …` as a process that no signal of this terminal reaches. It appends to its log."""
    make_folder(log.parent)
    with open(log, "ab") as out:
        return subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(os.getpid()), *arguments],
            cwd=where,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def next_arguments(job: Job) -> tuple[str, ...]:
    """What `coplay` is given: the run is taken up if there is something of it."""
    return job.go_on if (job.folder / CONFIG).exists() else job.begin


def end_of(log: Path, most: int) -> bytes:
    """The last bytes of a file; none if there is no such file."""
    try:
        with open(log, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - most))
            return file.read()
    except OSError:
        return b""


def tail(log: Path) -> str:
    """The last lines of what a run printed."""
    text = end_of(log, TAIL).decode(errors="replace")
    lines = [line for line in shown(text).splitlines() if line.strip()]
    return "\n".join(lines[-12:])


class LocalWorkers:
    """Worker processes on this machine. threads: of each."""

    def __init__(self, slots: int, threads: int):
        self.slots, self.threads = slots, threads
        self._running: dict[str, tuple[Job, subprocess.Popen[bytes]]] = {}

    def start(self, job: Job) -> bool:
        if is_held(job.folder):
            return False
        process = launch(next_arguments(job), job.log, Path.cwd(), environment(self.threads))
        self._running[job.name] = (job, process)
        return True

    def poll(self) -> list[Ended]:
        found = []
        for name, (job, process) in list(self._running.items()):
            if (code := process.poll()) is not None:
                del self._running[name]
                found.append(Ended(name, code, words=tail(job.log) if code else ""))
        return found

    def ask_to_stop(self, name: str) -> None:
        if name in self._running:
            self._running[name][1].send_signal(signal.SIGTERM)

    def close(self) -> None:
        for _, process in self._running.values():
            process.send_signal(signal.SIGTERM)
        end = time.monotonic() + PATIENCE
        for _, process in self._running.values():
            try:
                process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._running.clear()


def local_workers(workers: int, cpus: int, jobs: int) -> LocalWorkers:
    """Workers for so many jobs. workers: at a time, 0: as many as the cores allow. cpus: cores of
    each where the number of workers is not given."""
    slots = max(1, min(workers or max(1, cores() // cpus), jobs))
    threads = max(cpus, cores() // slots) if workers else cpus
    return LocalWorkers(slots, threads)
