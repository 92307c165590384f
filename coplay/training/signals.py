"""Signals that ask a run to stop: Ctrl-C, a polite kill, a terminal that was closed."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from coplay.core.errors import Interrupted

SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class StopRequest:
    """Whether somebody asked a run to stop. The second time it stops wherever it is."""

    def __init__(self) -> None:
        self.asked = False
        self._words: str | None = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take note of signals. One that is ignored stays ignored, as under nohup."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, self._ask) for number in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def at_once(self, words: str) -> Iterator[None]:
        """While nothing is done that would have to be saved: a request ends the block, with
        `Interrupted(words)`."""
        if self.asked:
            raise Interrupted(words)
        self._words = words
        try:
            yield
        finally:
            self._words = None
        if self.asked:
            raise Interrupted(words)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        again, self.asked = self.asked, True
        if _collects_garbage(frame):
            return
        if again:
            raise KeyboardInterrupt
        if self._words is not None:
            raise Interrupted(self._words)


def _collects_garbage(frame: FrameType | None) -> bool:
    """Whether a signal came in JAX's callback of the garbage collector. Python prints what is
    raised there, with a traceback, and goes on; the request is noticed a moment later instead."""
    while frame is not None:
        if frame.f_code.co_name == "_xla_gc_callback":
            return True
        frame = frame.f_back
    return False
