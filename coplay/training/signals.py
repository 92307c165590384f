"""Signals that ask a run to stop: Ctrl-C, a polite kill, a terminal that was closed."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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

    def _ask(self, number: int, frame: Any) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        if self._words is not None:
            raise Interrupted(self._words)
