"""One run by several processes, on one machine or on several (`jax.distributed`).

All of them compute the same program on the devices of all, and reach every line of the training
loop together. The first one writes the run's folder; the others write a copy that is thrown away,
so that whatever depends on what lies there goes the same way everywhere.
"""

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
from jax._src.distributed import global_state
from jax.experimental import multihost_utils

from coplay.core.errors import UserError

SECONDS = 120
"""That all processes have to begin."""
PATIENCE = 3600
"""Seconds that a process waits for the others, which may still be compiling."""
MEETINGS = itertools.count()


def join(coordinator: str, processes: int, process: int) -> None:
    """Become one of several processes, before anything is computed. coordinator: HOST:PORT of the
    first one, the same for all; auto: as SLURM or a cluster of TPUs says."""
    if coordinator == "auto":
        given: dict[str, Any] = {}
    elif coordinator.partition(":")[2].isdigit():
        if processes < 2 or not 0 <= process < processes:
            raise UserError(
                f"--coordinator needs --processes N, at least 2, and --process 0 to N-1: "
                f"not {processes} and {process}"
            )
        given = {
            "coordinator_address": coordinator,
            "num_processes": processes,
            "process_id": process,
        }
    else:
        raise UserError(f"--coordinator '{coordinator}': expected HOST:PORT or auto")
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    try:
        jax.distributed.initialize(**given, initialization_timeout=SECONDS)
    except (RuntimeError, ValueError) as error:
        first = (str(error).splitlines() or [""])[0]
        raise UserError(f"--coordinator {coordinator}: the processes did not meet: {first}") from (
            error
        )


def meet() -> None:
    """Wait until all processes are here. What they compute together gives up after 30 seconds (so
    Gloo has it), while one may have its programs from a cache and another compile for minutes."""
    if global_state.client is not None and jax.process_count() > 1:
        name = f"coplay-{next(MEETINGS)}"
        global_state.client.wait_at_barrier(name, timeout_in_ms=1000 * PATIENCE)


def is_first() -> bool:
    """Whether this process is the one that writes; true of a process by itself."""
    return jax.process_index() == 0


@contextmanager
def own_folder(folder: Path) -> Iterator[Path]:
    """The folder that this process writes: `folder`, or a copy of it that is thrown away."""
    if jax.process_count() == 1:
        yield folder
        return
    scratch = None if is_first() else Path(tempfile.mkdtemp(prefix="coplay-process-"))
    try:
        if scratch is not None and folder.is_dir():
            shutil.copytree(folder, scratch / folder.name, ignore=_unfinished)
        multihost_utils.sync_global_devices("copied")  # the first one changes the folder from here
        yield folder if scratch is None else scratch / folder.name
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)


def _unfinished(folder: str, names: list[str]) -> list[str]:
    """Files that are being written, and locks."""
    return [name for name in names if name.startswith(".")]
