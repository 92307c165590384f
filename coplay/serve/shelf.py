"""The runs of a folder, as a list that is kept up to date by looking at what changed."""

import os
import socket
import time
from pathlib import Path
from typing import Any

from coplay.core.errors import UserError
from coplay.core.lock import LOCK
from coplay.core.reading import is_below, read_json
from coplay.reports.results import find_runs, run_overview
from coplay.serve.folder import address_of, pages_of
from coplay.training.run import RunFolder

RESCAN = 5.0
"""Seconds between two looks for new runs."""
QUIET = 60.0
"""A run on another machine counts as running if it wrote so many seconds ago."""
MOST_RUNS = 2000

Row = dict[str, Any]


class Shelf:
    """All runs below a folder. Nothing in the folder is written, and no lock is taken.

    rows: one per run: what `coplay list --json` tells, with its name below the folder, the address
    of its page, and its state: finished, running, stopped or damaged.
    pages: other pages in the folder, such as replays and audits: {"name", "address"}.
    """

    def __init__(self, root: Path):
        self.root = root
        self.rows: list[Row] = []
        self.pages: list[dict[str, str]] = []
        self._runs: list[RunFolder] = []
        self._known: dict[Path, tuple[Any, Row]] = {}
        self._scanned = -RESCAN

    def refresh(self) -> bool:
        """Look again; whether anything is different."""
        try:
            return self._refresh()
        except OSError:  # something was removed while it was looked at: the next look will do
            return False

    def _refresh(self) -> bool:
        now, pages = time.monotonic(), self.pages
        if now - self._scanned >= RESCAN:
            found = [run for run in find_runs(self.root) if is_below(run.path, self.root)]
            self._runs = found[:MOST_RUNS]
            pages = pages_of(self.root, {run.path for run in self._runs})
            self._scanned = now
        rows = [self._row(run) for run in self._runs if run.exists()]
        changed = rows != self.rows or pages != self.pages
        self.rows, self.pages = rows, pages
        return changed

    def _row(self, run: RunFolder) -> Row:
        stamp = _stamp(run)
        known = self._known.get(run.path)
        if known is None or known[0] != stamp:
            known = (stamp, self._made(run))
            self._known[run.path] = known
        row = known[1]
        return row if row["state"] != "stopped" else row | {"state": _state(run)}

    def _made(self, run: RunFolder) -> Row:
        name = run.path.relative_to(self.root).as_posix()
        name = "" if name == "." else name
        # A name that is no text cannot be part of an address.
        readable = name.encode(errors="replace").decode()
        overview = run_overview(run) | {"run": readable or self.root.resolve().name}
        state = "finished" if overview["finished"] else "stopped"
        return overview | {
            "name": readable,
            "address": address_of(f"{name}/" if name else "") if readable == name else None,
            "state": "damaged" if overview["damaged"] else state,
        }


def _stamp(run: RunFolder) -> tuple[Any, ...]:
    """What is different whenever a run has changed."""
    found = []
    for path in (run.config_file, run.metrics_file, run.summary_file, run.path / "checkpoints"):
        try:
            about = os.stat(path)
            found.append((about.st_mtime_ns, about.st_size))
        except OSError:
            found.append((0, 0))
    return tuple(found)


def _state(run: RunFolder) -> str:
    """Whether somebody writes in an unfinished run, as far as can be told without asking for its
    lock: who would, could keep a training run from starting."""
    try:
        about = read_json(run.path / LOCK)
    except UserError:
        return "stopped"
    pid = about.get("pid")
    if about.get("host") != socket.gethostname():
        return "running" if _seconds_since(run.metrics_file) < QUIET else "stopped"
    return "running" if isinstance(pid, int) and pid > 0 and _is_alive(pid) else "stopped"


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _seconds_since(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return float("inf")
