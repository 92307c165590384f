"""PettingZoo environments as games: `pettingzoo:MODULE`, `pettingzoo:MODULE:FUNCTION`, a callable.

What a parallel environment must be to have seats is in `coplay/games/adapters/workers/seats.py`.
"""

import importlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from coplay.core.errors import UserError, how_to_install, unknown
from coplay.core.loading import name_game
from coplay.games.adapters.trusted import check_source
from coplay.games.adapters.worker_game import WorkerConfig, WorkerGame, look_at_environment
from coplay.games.adapters.workers.seats import turn_by_turn
from coplay.games.adapters.workers.source import Source, accepts, parse_option

FAMILY = "pettingzoo"
INSTALL = how_to_install("pettingzoo")
USUAL = "parallel_env"  # what PettingZoo's modules call the function that makes an environment

_CALLABLES: dict[str, Source] = {}  # of `from_pettingzoo`, by the name after the family's


def parts(rest: str) -> tuple[type, Callable[[WorkerConfig], WorkerGame]]:
    """The configuration and the maker of the game `pettingzoo:REST`."""
    return WorkerConfig, lambda config: _game(rest, _source(rest), config)


def from_pettingzoo(
    make: Callable[..., Any],
    name: str | None = None,
    *,
    options: Sequence[str] = (),
    workers: int = 0,
    timeout: float = 60.0,
    strict: bool = False,
    restart_workers: bool = False,
) -> WorkerGame:
    """A game from a callable that makes a PettingZoo parallel environment, for `coplay.train` and
    `coplay.play`.

    make: called in every worker process; it may be a lambda. If it takes `render_mode`, films can
        be made.
    name: what the game is called, `pettingzoo:NAME`. A run on it can be taken up, and its players
        loaded, wherever the name is known: unless said, it is `MODULE:FUNCTION` where that can be
        imported, and then known everywhere; other names are known after this call.
    options, workers, timeout, strict, restart_workers: see `WorkerConfig`.

        game = coplay.from_pettingzoo(lambda: MyEnvironment(), "mine", workers=2)
        coplay.train("ppo", game, "runs/mine")
    """
    if isinstance(make, str) or not callable(make):
        raise UserError(f"from_pettingzoo needs a callable that makes an environment, not {make!r}")
    module, function = getattr(make, "__module__", None), getattr(make, "__qualname__", None)
    config = WorkerConfig(tuple(options), workers, timeout, strict, restart_workers)
    if name is None and module and function and _importable(make, module, function):
        rest = f"{module}:{function}"
        name_game(f"{FAMILY}:{rest}")
        return _game(rest, Source(module, function), config)
    rest = name or (function if function and "<" not in function else "environment")
    _CALLABLES[rest] = Source("", "", pickled=_pickled(make))
    return _game(rest, _CALLABLES[rest], config)


def _importable(make: Callable[..., Any], module: str, function: str) -> bool:
    """Whether a worker that imports this name gets the same callable."""
    if module == "__main__" or "<" in function:
        return False
    try:
        return Source(module, function).resolve() is make
    except (ImportError, AttributeError):
        return False


def _pickled(make: Callable[..., Any]) -> bytes:
    try:
        import cloudpickle
    except ModuleNotFoundError:
        raise UserError(f"cloudpickle is not installed: {INSTALL}") from None
    try:
        return cloudpickle.dumps(make)
    except Exception as error:
        raise UserError(
            f"{make!r} cannot be sent to worker processes ({error}): let it make the environment "
            "from plain values"
        ) from error


def _source(rest: str) -> Source:
    if rest in _CALLABLES:
        return _CALLABLES[rest]
    module, _, function = rest.partition(":")
    return Source(module, function or USUAL)


@lru_cache(maxsize=16)
def _game(rest: str, source: Source, config: WorkerConfig) -> WorkerGame:
    """The game of a source; errors say what it lacks."""
    name = f"{FAMILY}:{rest}"
    for text in config.options:
        parse_option(text)
    try:
        import gymnasium  # noqa: F401
    except ModuleNotFoundError:
        raise UserError(f"gymnasium is not installed: {INSTALL}") from None
    source = Source(source.module, source.function, config.options, source.pickled)
    if not source.pickled:
        check_source(name, source)
        _check_function(name, source)
    return look_at_environment(name, config, source, lambda env: _pictures(env, source))


def _pictures(env: Any, source: Source) -> bool:
    """Whether environments of this source give pictures when they are asked to."""
    modes = (getattr(env, "metadata", None) or {}).get("render_modes", ())
    takes_mode = accepts(source.resolve(), "render_mode")
    return "rgb_array" in modes if takes_mode else getattr(env, "render_mode", None) == "rgb_array"


def _check_function(name: str, source: Source) -> None:
    try:
        module = importlib.import_module(source.module)
    except ModuleNotFoundError as error:
        hint = "a game made by coplay.from_pettingzoo is known after that call only; "
        if error.name and source.module.startswith(error.name):
            missing = f"there is no module '{error.name}'"
            hint += f"a library has to be installed, e.g. pip install {error.name.split('.')[0]}"
        else:
            missing = f"it needs the module '{error.name}'"
            hint = f"pip install {(error.name or '').split('.')[0]}"
        raise UserError(f"{name}: {missing} ({hint})") from None
    except Exception as error:
        raise UserError(f"{name} cannot be imported: {type(error).__name__}: {error}") from error
    try:
        source.resolve()
    except AttributeError:
        if source.function == USUAL and hasattr(module, "env"):
            raise UserError(turn_by_turn(name, getattr(module, "raw_env", None))) from None
        public = [x for x in vars(module) if not x.startswith("_") and callable(vars(module)[x])]
        raise unknown(f"function of {source.module}", source.function, public) from None
