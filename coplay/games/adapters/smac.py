"""SMAC, SMACv2 and SMAClite as games in worker processes: `smac:MAP`, `smacv2:MAP`, `smaclite:MAP`.

The adapter to their interfaces is `coplay/games/adapters/workers/smac_env.py`.
"""

from collections.abc import Callable
from functools import lru_cache

from coplay.core.errors import UserError
from coplay.games.adapters.trusted import SMAC, check_library
from coplay.games.adapters.worker_game import WorkerConfig, WorkerGame, look_at_environment
from coplay.games.adapters.workers.smac_env import LIBRARIES, environment_class
from coplay.games.adapters.workers.smac_maps import own_map
from coplay.games.adapters.workers.source import Source, parse_option


def smac_parts(library: str, rest: str) -> tuple[type, Callable[[WorkerConfig], WorkerGame]]:
    """Configuration and maker of `LIBRARY:MAP`."""
    return WorkerConfig, lambda config: _game(library, rest, config)


@lru_cache(maxsize=16)
def _game(library: str, rest: str, config: WorkerConfig) -> WorkerGame:
    name = f"{library}:{rest}"
    options = dict(parse_option(text) for text in config.options)
    check_library(name, LIBRARIES[library][0], rest, config.options)
    limit = options.get("episode_limit", 1)
    if not isinstance(limit, int) or limit < 1:
        raise UserError(f"{name}: the option episode_limit is a number of steps, not {limit!r}")
    if "module" not in options:
        try:
            environment_class(library)
        except ModuleNotFoundError as error:
            raise UserError(f"{name}: {error}") from None
    given = (f"library={library}", f"map_name={rest!r}", *config.options)
    source = Source(SMAC, "make", given)
    own = f"the map {rest} is coplay's own: {library} has none of this name"
    notes = (own,) if own_map(library, rest) else ()
    return look_at_environment(name, config, source, lambda env: hasattr(env.kind, "render"), notes)
