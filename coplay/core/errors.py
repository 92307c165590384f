"""Errors that a user can act on, and the nearest valid name for a mistyped one."""

import difflib
import errno
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

_OWN_PAGES = {"game": "write-a-game", "player": "write-a-partner", "learner": "write-a-learner"}


class UserError(ValueError):
    """Something the user asked for cannot be done; the message says what, where, and what to do.

    The command line prints the message alone and exits with code 2.

        try:
            coplay.make_game("stag-hnt")
        except coplay.UserError as error:
            print(error)  # unknown game 'stag-hnt': did you mean 'stag-hunt'? …
    """


def see(page: str) -> str:
    """Where the documentation says more, to be put at the end of an error, as `how-to/resume`."""
    return f"; see docs/{page}.md"


def own(kind: str) -> str:
    """What to add to an error about an unknown game, player or learner."""
    return (
        f"own {kind}s are known after coplay.register_{kind}, or with --load FILE_OR_MODULE"
        + see(f"how-to/{_OWN_PAGES[kind]}")
    )


def unknown(kind: str, name: str, valid: Iterable[str]) -> UserError:
    """An error for a name that is not among the valid ones, with the nearest of them."""
    valid = sorted(valid)
    near = difflib.get_close_matches(name, valid, n=1, cutoff=0.4)
    hint = f"did you mean '{near[0]}'? " if near else ""
    return UserError(f"unknown {kind} '{name}': {hint}valid: {', '.join(valid)}")


def wrong_signature(what: str, function: Callable[..., Any], *arguments: str) -> str:
    """What to say of a function that cannot be called with these arguments; empty if it can be.

    what: the function in words. arguments: the names of what it is called with, in order.
    """
    try:
        signature = inspect.signature(function)
    except ValueError:  # written in C: it does not say what it takes
        return ""
    try:
        signature.bind(*arguments)
    except TypeError:
        return f"{what} must take ({', '.join(arguments)}), but takes {signature}"
    return ""


def how_to_install(extra: str, package: Path = Path(__file__).parents[1]) -> str:
    """What to type to get an optional part, such as jaxmarl. package: the folder of the package,
    which is in a checkout or installed."""
    if (package.parent / "pyproject.toml").exists():
        return f"pip install -e '.[{extra}]' in the folder of coplay's source"
    return f"pip install 'coplay[{extra}]'"


class WorkerFailed(RuntimeError):
    """An environment in a worker process raised, crashed or hung; the message says which one, at
    which step, with its traceback. All workers are gone then."""


class RunStopped(Exception):
    """A run that could not go on; the message says why and where it can be taken up."""


class Interrupted(Exception):
    """A run that was asked to stop and did so after saving."""


WHAT_TO_DO = {
    errno.ENOSPC: "make room on the disk",
    errno.EDQUOT: "your quota is used up: make room",
    errno.EFBIG: "a file would be larger than the system allows (ulimit -f)",
    errno.EROFS: "the file system is read-only: choose another folder",
    errno.EACCES: "you may not write there: choose another folder",
    errno.EPERM: "you may not write there: choose another folder",
    errno.ENOENT: "was the folder removed?",
    errno.ENOTDIR: "a part of that path is a file",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EIO: "the disk reports an error: look after it before you go on",
    errno.EMFILE: "too many files are open (ulimit -n)",
}
MEMORY = "not enough memory: fewer --copies, a shorter --rollout or fewer --seeds need less"


def why_stopped(error: BaseException) -> str | None:
    """Why work ended that can be taken up, in a sentence; None: it cannot, or is at fault."""
    return str(error) if isinstance(error, RunStopped) else system_error(error)


def system_error(error: BaseException) -> str | None:
    """What the system refused, in a sentence; None: the error is of another kind."""
    if isinstance(error, MemoryError):
        return MEMORY
    if isinstance(error, OSError):
        what = (error.strerror or str(error)).lower()
        where = f" ({error.filename})" if error.filename is not None else ""
        hint = WHAT_TO_DO.get(error.errno or 0)
        return f"the system says: {what}{where}" + (f"; {hint}" if hint else "")
    # JAX's own class is not imported here: `coplay --help` does without JAX.
    if type(error).__name__ in ("JaxRuntimeError", "XlaRuntimeError") and any(
        words in str(error) for words in ("RESOURCE_EXHAUSTED", "Out of memory")
    ):
        return MEMORY
    return None
