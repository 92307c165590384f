"""A run's folder, open for writing."""

from contextlib import ExitStack
from pathlib import Path

from coplay.core.files import remove_leftovers
from coplay.core.lock import Lock
from coplay.core.manifest import Manifest

GROWING = ("metrics.jsonl", "metrics.csv", "evaluations.jsonl", "history.jsonl")


def is_growing(name: str) -> bool:
    """Whether a file of a run is appended to. Those that a resumed run needs have their checksums
    in the checkpoints."""
    return name in GROWING or name.startswith("tensorboard/")


class OpenedRun:
    """One process at a time may write in a run's folder: this one, until `close`.

    Opening makes the folder, takes the lock, removes what a process that died left unfinished, and
    keeps the manifest from then on.
    """

    def __init__(self, path: Path):
        self.lock = Lock(path)
        self._open = ExitStack()
        try:
            remove_leftovers(path)
            self.manifest = Manifest(path, is_growing)
            self._open.enter_context(self.manifest.keeping())
        except BaseException:
            self.lock.release()
            raise

    def settle(self) -> None:
        """Write the manifest when nothing is being replaced."""
        self.manifest.settle()

    def close(self, discard: bool = False) -> None:
        """Let others write. discard: leave nothing of a folder in which nothing was written."""
        self._open.close()
        self.lock.release(discard)
