"""How long work tells that it goes on."""

from collections.abc import Callable

Told = Callable[[str, float, float], None]
"""told(what, done, total): `done` of `total` parts of the work are done. A first call with 0 done
says that it begins."""


def untold(what: str, done: float, total: float) -> None:
    """Nobody is told."""
