"""What a user's own games and players, and the runs in a seating, really are: by their content.

Names stay the same when a policy is edited, a game's rules are changed, or a run goes on learning.
What is kept about them (best responses) must not.
"""

import dataclasses
import hashlib
import inspect
from pathlib import Path
from typing import Any

import jax
import numpy as np

from coplay.algorithms.registry import PLAYERS
from coplay.algorithms.scripted import Scripted
from coplay.core.reading import open_file
from coplay.games.registry import GAMES
from coplay.training.partner_packs import ABOUT, is_pack
from coplay.training.partner_responses import FIGURES, is_response
from coplay.training.run import RunFolder
from coplay.training.seating import is_run


def identities(game_name: str, entries: tuple[str, ...]) -> list[str]:
    """A digest of the game, if it is a user's own, and of each own player and run in the entries of
    a seating, in a fixed order."""
    found = []
    if game_name in GAMES and _is_own(GAMES[game_name][1]):
        found.append(_digest(_source(GAMES[game_name][1])))
    for part in (part for entry in entries for part in entry.split(":")):
        if is_pack(part):
            found.append(_pack(part))
        elif is_run(part):
            found.append(_run(part))
        elif part in PLAYERS:
            found.append(_player(PLAYERS[part]))
    return found


def _run(entry: str) -> str:
    """Of the configuration and of the checkpoint that the entry names."""
    path, *options = entry.split("@")
    saved = RunFolder(Path(path)).checkpoints()
    used = [saved.best] if "best" in options and saved.best.exists() else saved.all()[-1:]
    return _digest(*(_content(file) for file in (RunFolder(Path(path)).config_file, *used)))


def _content(file: Path) -> bytes:
    with open_file(file) as opened:
        return hashlib.file_digest(opened, "sha256").digest()


def _pack(entry: str) -> str:
    """Of the pack, which states the checksums of its files, and of the partner that is named; of
    its best responses if one of them is."""
    path, *options = entry.split("@")
    files = [ABOUT, FIGURES] if is_response(entry) else [ABOUT]
    stated = [(Path(path) / name).read_bytes() for name in files if (Path(path) / name).exists()]
    return _digest(*stated, *map(str.encode, options))


def _player(player: Any) -> str:
    """Of the source of a player and of the values it is made of."""
    kind = player.policy if isinstance(player, Scripted) else type(player)
    values = [getattr(player, field.name) for field in dataclasses.fields(player)]
    made_of = [
        np.asarray(leaf).tobytes() if hasattr(leaf, "dtype") else repr(leaf).encode()
        for leaf in jax.tree.leaves(values)
        if hasattr(leaf, "dtype") or isinstance(leaf, str | int | float)
    ]
    return _digest(_source(kind), *made_of)


def _is_own(kind: type) -> bool:
    return kind.__module__.partition(".")[0] != "coplay"


def _source(thing: Any) -> bytes:
    """The text of the file a function or class is defined in, which may call what stands beside
    it; without a file, its compiled form."""
    try:
        return Path(inspect.getsourcefile(thing) or "").read_bytes()
    except (OSError, TypeError):
        code = getattr(thing, "__code__", None)
        if code is None:
            return repr(thing).encode()
        return code.co_code + repr(code.co_consts).encode()


def _digest(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:16]
