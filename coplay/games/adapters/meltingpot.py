"""Substrates of Melting Pot as games in worker processes: `meltingpot:SUBSTRATE`.

The adapter to their interface is `coplay/games/adapters/workers/meltingpot_env.py`.
"""

from collections.abc import Callable
from functools import lru_cache

from coplay.core.errors import UserError, unknown
from coplay.games.adapters.trusted import MELTINGPOT, check_library
from coplay.games.adapters.worker_game import WorkerConfig, WorkerGame, look_at_environment
from coplay.games.adapters.workers.meltingpot_env import LIBRARY, substrates
from coplay.games.adapters.workers.source import Source, parse_option


def meltingpot_parts(rest: str) -> tuple[type, Callable[[WorkerConfig], WorkerGame]]:
    """Configuration and maker of `meltingpot:SUBSTRATE`."""
    return WorkerConfig, lambda config: _game(rest, config)


@lru_cache(maxsize=16)
def _game(rest: str, config: WorkerConfig) -> WorkerGame:
    name = f"{LIBRARY}:{rest}"
    options = dict(parse_option(text) for text in config.options)
    check_library(name, LIBRARY, rest, config.options)
    for option in options.keys() - {"shrink"}:
        raise unknown(f"option of {name}", option, ["shrink"])
    if not isinstance(options.get("shrink", 1), int):
        raise UserError(f"{name}: shrink is a whole number, such as 8, not {options['shrink']!r}")
    try:
        known = substrates().SUBSTRATES
    except ModuleNotFoundError as error:
        raise UserError(f"{name}: {error}") from None
    if rest not in known:
        raise unknown("substrate of Melting Pot", rest, sorted(known))
    source = Source(MELTINGPOT, "make", (f"substrate={rest!r}", *config.options))
    return look_at_environment(name, config, source, lambda env: True)
