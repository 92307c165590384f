"""Whether the fields that a sweep varies change anything: their part of the wiring audit.

Two values of a field are compared by the programs that a run would compile. A field whose values
all give the same programs, with every tried setting of the others, would cost hours for nothing.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax

from coplay.core.compilation import use_cache
from coplay.core.config import inert_fields
from coplay.core.errors import UserError
from coplay.core.files import write_json
from coplay.core.loading import loaded
from coplay.core.reading import read_json
from coplay.core.version import VERSION
from coplay.evaluation.audits.wiring import audit_size
from coplay.evaluation.audits.wiring_fields import programs
from coplay.games.adapters.worker_game import WorkerGame
from coplay.sweeps.space import Dimension, configured
from coplay.training.config import TrainConfig
from coplay.training.phases import plan_phases
from coplay.training.play_defaults import with_defaults
from coplay.training.preparation import records
from coplay.training.run import make_game_of

MOST_SECONDS = 60.0
OF_RECORDINGS = ("recordings.", "goals.")
"""Fields that act before the first step, where a learner makes recordings."""


def refuse_inert(
    config: TrainConfig,
    space: Sequence[Dimension],
    say: Callable[[str], None],
    seconds: float = MOST_SECONDS,
) -> None:
    """An error that names the fields that change nothing. What takes longer than a minute is left
    out and said. What was found is kept for the same program and the same configuration."""
    kept = _kept_file(config, space)
    if kept is None or (found := _read(kept)) is None:
        found = inert(config, space, say, seconds)
        if kept is not None and not found["untried"]:
            write_json(kept, found)
    if found["inert"]:
        raise UserError(
            f"{_listed(found['inert'])} would change nothing here: all values give the same "
            f"program ({found['why'] or 'see coplay audit wiring'}). Leave it out of --vary, or "
            "give --no-audit"
        )
    if found["untried"]:
        say(f"note: not asked whether it acts: {', '.join(found['untried'])}")


def inert(
    config: TrainConfig, space: Sequence[Dimension], say: Callable[[str], None], seconds: float
) -> dict[str, Any]:
    """{"inert": paths, "untried": paths, "why": words}"""
    use_cache()
    if isinstance(make_game_of(config), WorkerGame):
        return {"inert": [], "untried": [one.path for one in space], "why": ""}
    end = time.monotonic() + seconds
    contexts = _contexts(config, space)
    still: list[str] = []
    untried: list[str] = []
    why = ""
    for one in space:
        if _acts_otherwise(config, one.path):
            continue
        verdict = None
        for context in contexts:
            if time.monotonic() > end:
                break
            verdict = _acts(context, one)
            if verdict:
                break
        if verdict is None:
            untried.append(one.path)
        elif not verdict:
            still.append(one.path)
            changed = configured(config, {one.path: one.ends()[-1]})
            notes = [*inert_fields(changed.learner), *inert_fields(changed.game)]
            own = one.path.removeprefix("game.")
            why = why or next((text for text in notes if text.startswith(own)), "")
    return {"inert": still, "untried": untried, "why": why}


def _contexts(config: TrainConfig, space: Sequence[Dimension]) -> list[TrainConfig]:
    """The configuration as it is, and with the last and the first values of all fields: a field may
    act only where another one is switched on."""
    found = [config]
    for place in (-1, 0):
        try:
            found.append(configured(config, {one.path: one.ends()[place] for one in space}))
        except UserError:
            continue
    return found


def _acts_otherwise(config: TrainConfig, path: str) -> bool:
    """Whether a field acts without being in a learner's programs."""
    if hasattr(config.run, path):  # what is played, and how much of it
        return True
    return records(config.learner) and path.startswith(OF_RECORDINGS)


def _acts(config: TrainConfig, one: Dimension) -> bool | None:
    """Whether two values of a field give other programs; None: no two could be tried."""
    prints: list[list[str]] = []
    for value in one.ends():
        try:
            prints.append(fingerprints(configured(config, {one.path: value}), one.path))
        except UserError:
            continue
        if prints[-1] != prints[0]:
            return True
    return False if len(prints) > 1 else None


def fingerprints(config: TrainConfig, varied: str = "") -> list[str]:
    """Of the programs with which a run begins, plays and learns. varied: a field that stays as it
    is, whatever audits have in its place."""
    better = dict(getattr(config.learner, "audit_defaults", {}))
    better.pop(varied, None)
    learns = with_defaults(config.learner, better)
    game = make_game_of(config)
    changed = TrainConfig(config.player, config.game_name, learns, config.game, config.run)
    phase = plan_phases(changed, game)[0]
    copies, steps = audit_size(changed)
    return list(programs(game, phase.learners[0], copies, steps, phase.parts[0]))


def _listed(paths: Sequence[str]) -> str:
    return " and ".join(paths)


# --- what was found before ---------------------------------------------------------------------


def _kept_file(config: TrainConfig, space: Sequence[Dimension]) -> Path | None:
    """Where the answer for this program and this configuration is kept; None: nowhere."""
    if os.environ.get("COPLAY_CACHE") == "off":
        return None
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    asked = {
        "coplay": VERSION,
        "jax": jax.__version__,
        "config": config.as_json(),
        "space": [one.as_json() for one in space],
    }
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode())
    sources = [*sorted(Path(__file__).parents[1].rglob("*.py")), *map(Path, loaded())]
    for path in sources:
        digest.update(path.read_bytes() if path.is_file() else str(path).encode())
    return home / "coplay" / "acting" / f"{digest.hexdigest()[:24]}.json"


def _read(path: Path) -> dict[str, Any] | None:
    """An answer that was kept, if it can be used."""
    if not path.is_file():
        return None
    try:
        found = read_json(path)
    except UserError:
        return None
    return found if {"inert", "untried", "why"} <= found.keys() else None
