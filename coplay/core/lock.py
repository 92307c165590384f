"""One writer per folder: a lock that the system releases when its process dies."""

import errno
import json
import os
import shlex
import socket
import sys
import time
from pathlib import Path

from coplay.core import files
from coplay.core.errors import UserError
from coplay.core.reading import shown_in_line

try:
    import fcntl
except ImportError:  # Windows: there is no such lock, so nobody is refused
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class Lock:
    """The right to write in a folder, until `release` or the end of the process.

    `flock` belongs to the open file, and children do not inherit it. The file says who holds the
    lock, for the message that the next one gets. kept: False where the file system has no locks.
    """

    def __init__(self, folder: Path):
        self.path = folder / LOCK
        self.kept = fcntl is not None
        self.made: list[Path] = []
        try:
            self.made = [one for one in (folder, *folder.parents) if not one.exists()]
            files.make_folder(folder)
            self._file = self._take()
        except OSError as error:
            self._unmake()
            raise UserError(
                f"cannot write in {folder}: {error.strerror or error}; choose another folder, or "
                "make it writable"
            ) from error

    def _take(self) -> int:
        while True:
            # A stranger's folder may hold a link of this name; nothing is written through it.
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
            try:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                words = who(file)
                os.close(file)
                raise UserError(
                    f"{self.path.parent} is being written by {words}; wait for it, stop it, or "
                    "choose another folder"
                ) from error
            except OSError as error:
                if error.errno not in NO_LOCKS:
                    os.close(file)
                    raise
                self.kept = False
            # Whoever held it before may have removed the file since it was opened here.
            if self.path.exists() and os.path.samestat(os.fstat(file), os.stat(self.path)):
                break
            os.close(file)
        about = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "command": shlex.join(sys.argv),
            "since": time.strftime("%Y-%m-%d %H:%M:%S %Z"),
        }
        os.ftruncate(file, 0)
        os.pwrite(file, (json.dumps(about) + "\n").encode(errors="replace"), 0)
        return file

    def release(self, discard: bool = False) -> None:
        """Let others write. discard: leave nothing of a folder in which nothing was written."""
        if self._file < 0:
            return
        if discard and self.made and os.listdir(self.path.parent) == [LOCK]:
            self.path.unlink(missing_ok=True)
            self._unmake()
        os.close(self._file)
        self._file = -1

    def _unmake(self) -> None:
        """Remove the folders that were made for this lock, as far as they are empty."""
        for one in self.made:
            try:
                one.rmdir()
            except OSError:
                return


def is_held(folder: Path) -> bool:
    """Whether a process has the right to write in a folder just now. Changes nothing."""
    if fcntl is None:
        return False
    try:
        file = os.open(folder / LOCK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(file)
    return False


def who(file: int) -> str:
    """Who holds a lock, as its file says, for a message."""
    try:
        about = json.loads(os.pread(file, 10_000, 0))
        words = f"process {about['pid']} on {about['host']} since {about['since']} "
        words += f"({about['command']})"
    except (ValueError, KeyError, TypeError):
        return "another process"
    return shown_in_line(words)
