"""Commands as processes of their own."""

import sys

_HEARS_SIGINT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from coplay.cli.main import main
main()
"""


def coplay_process(*arguments: str) -> list[str]:
    """The words that start `coplay …` as a process that Ctrl-C stops, also where the tests run in
    the background: such jobs inherit that SIGINT is ignored."""
    return [sys.executable, "-c", _HEARS_SIGINT, *arguments]
