"""The command line that is being run, for what says how it was made."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

_command: ContextVar[str | None] = ContextVar("command", default=None)


@contextmanager
def invoked(arguments: Sequence[str]) -> Iterator[None]:
    """What is made meanwhile is made by this command."""
    before = _command.set(shlex.join(["coplay", *arguments]))
    try:
        yield
    finally:
        _command.reset(before)


def invocation() -> str | None:
    """The command as users type it; None: a Python program calls."""
    return _command.get()
