"""Which environments of other libraries a file may name: a run, a dataset, a model.

A module is imported, and a function of it is called, only if a user names it in this process
(`--game`, `--load`, an argument in Python), or if it is an environment of a library listed here
that is installed. What a user names may lie in the current folder; what a file names may not.
"""

import os
import re
import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from typing import Any

from coplay.core.errors import UserError
from coplay.core.loading import is_loaded, is_named
from coplay.games.adapters.workers.source import Source, parse_option

MPE = (
    "collect_treasure simple simple_adversary simple_crypto simple_formation simple_line "
    "simple_push simple_reference simple_speaker_listener simple_spread simple_tag "
    "simple_world_comm"
)
KNOWN = {
    "mpe2": MPE,
    "pettingzoo.mpe": MPE,
    "pettingzoo.sisl": "multiwalker pursuit waterworld",
    "pettingzoo.butterfly": "cooperative_pong knights_archers_zombies pistonball",
    "pettingzoo.atari": (
        "basketball_pong boxing combat_plane combat_tank double_dunk entombed_competitive "
        "entombed_cooperative flag_capture foozpong ice_hockey joust mario_bros maze_craze othello "
        "pong quadrapong space_invaders space_war surround tennis video_checkers volleyball_pong "
        "warlords wizard_of_wor"
    ),
}
"""Package of a library -> its environments with a parallel form; a version (`_v3`) follows each."""

MAKER = "parallel_env"  # the function of such a module that makes an environment
SMAC = "coplay.games.adapters.workers.smac_env"  # makes the battles of all its libraries
MELTINGPOT = "coplay.games.adapters.workers.meltingpot_env"  # makes all its substrates
TEXTS = ("obs_type", "difficulty", "capability_config")
"""Options of these environments that may be texts: none of them is a path."""
WORD = re.compile(r"[A-Za-z0-9_]+")


def is_known(module: str, function: str) -> bool:
    """Whether this is the maker of an environment of a listed library."""
    package, _, name = module.rpartition(".")
    environment, version, number = name.rpartition("_v")
    listed = environment in KNOWN.get(package, "").split()
    return bool(function == MAKER and listed and version and re.fullmatch("[0-9]{1,3}", number))


def naming(source: Source) -> str:
    """What a command line has to say beside a run's folder so that its environment is made: an
    option with a space in front, or nothing."""
    own = not source.pickled and not is_known(source.module, source.function)
    return f" --load {source.module}" if own and source.module not in (SMAC, MELTINGPOT) else ""


def check_source(game: str, source: Source) -> None:
    """An error if nobody but a file names the function that makes an environment."""
    if is_named(game):
        return
    if is_loaded(source.module):
        _check_own(game, source)
        return
    if not is_known(source.module, source.function):
        raise UserError(
            f"{game} is named by a file, and would import the module '{source.module}': if you "
            f"trust it, add --load {source.module} (in Python: coplay.load('{source.module}')); "
            "docs/explanation/trust.md says why"
        )
    check_options(game, source.options)
    require_installed(game, source.module)


def check_library(game: str, module: str, map_name: str, options: Iterable[str]) -> None:
    """The same for a battle of SMAC, SMACv2 or SMAClite, of a class in this module, and for a
    substrate of Melting Pot."""
    for text in options:
        name, value = parse_option(text)
        place = str(value).partition(":")[0]
        if name == "module" and not (is_named(text) or is_loaded(place)):
            raise UserError(
                f"{game}: the option {text} is from a file, and would import '{place}': if you "
                f"trust it, add --load {place}; docs/explanation/trust.md says why"
            )
    if is_named(game):
        return
    if not WORD.fullmatch(map_name):
        raise UserError(
            f"{game} is named by a file, and its part behind the colon is no plain word"
        )
    check_options(game, [text for text in options if not text.startswith("module=")])
    require_installed(game, module)


def check_options(game: str, options: Iterable[str]) -> None:
    """An error if a file gives an environment a text: it may be a path to read or to write."""
    for text in options:
        name, value = parse_option(text)
        if name not in TEXTS and not is_named(text) and not _is_plain(value):
            raise UserError(
                f"{game}: the option {text} is from a file, which may only give numbers, true, "
                f"false and none; if you want it, name the game too: --game {game} "
                f"--game.options {text}"
            )


def require_installed(game: str, module: str) -> None:
    """An error if a library would be taken from the current folder, unless a user names it."""
    if is_named(game):
        return
    top = module.partition(".")[0]
    loaded = sys.modules.get(top)
    taken = loaded.__spec__ if loaded is not None else find_spec(top)
    installed = _installed(top)
    if taken is not None and (installed is None or installed.origin != taken.origin):
        raise UserError(
            f"{game} is named by a file, and the library '{top}' would be taken from the current "
            "folder: install it, or start the command in another folder"
        )


def _installed(top: str) -> ModuleSpec | None:
    """Where a library is found if the current folder does not count."""
    here = os.path.realpath(os.getcwd())
    path = [entry for entry in sys.path if os.path.realpath(entry or here) != here]
    for finder in sys.meta_path:
        found = finder.find_spec(top, path)
        if found is not None and found.origin is not None:
            return found
    return None


def _check_own(game: str, source: Source) -> None:
    """A module that a user loads is trusted with its own functions, not with those it imports."""
    if any(part.startswith("_") for part in source.function.split(".")):
        raise UserError(f"{game} is named by a file, and {source.function} is no public function")
    try:
        home = getattr(source.resolve(), "__module__", None) or ""
    except (ImportError, AttributeError):
        return  # whoever makes the environment says what is missing
    if not f"{home}.".startswith(f"{source.module}."):
        raise UserError(
            f"{game} is named by a file, and {source.function} is no function of "
            f"{source.module} itself; if you trust it, name the game: --game {game}"
        )


def _is_plain(value: Any) -> bool:
    """Whether a value is made of numbers, truth values and None alone."""
    if isinstance(value, list | tuple | set):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float)
