"""Whether a run that is taken up is the run that was left: what its checkpoints state.

Every checkpoint states the configuration (apart from `run.steps`, which may be raised, and
`run.devices`, which changes rounding at most) and its checksum, the version of coplay, and the
length and checksum of each file that grows.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from coplay.core.errors import UserError, see
from coplay.core.machine import machine
from coplay.core.version import VERSION
from coplay.training.config import TrainConfig
from coplay.training.records import note_in_history


def canonical(config: TrainConfig) -> dict[str, Any]:
    """All that must not change while a run goes on, as plain values."""
    data = json.loads(json.dumps(config.as_json()))
    data["run"].pop("steps", None)
    data["run"].pop("devices", None)
    return data


def config_sha256(data: Mapping[str, Any]) -> str:
    """The checksum of a canonical configuration."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def statement(config: TrainConfig, records: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What a checkpoint's note says about its run. records: name of a file that grows -> state."""
    data = canonical(config)
    return {"config": data, "config_sha256": config_sha256(data), "files": dict(records)}


def stated_files(note: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Name of a file that grows -> {"bytes", "sha256"} at a checkpoint. Version 0.1 stated only
    the length of metrics.jsonl."""
    if "files" in note:
        return dict(note["files"])
    return {"metrics.jsonl": {"bytes": note["metrics_bytes"]}}


def differences(note: Mapping[str, Any], config: TrainConfig) -> list[str]:
    """What is not as it was at the checkpoint, each as `field: before, now`."""
    if "config_sha256" not in note:
        return []
    found = []
    now = canonical(config)
    if note["config_sha256"] != config_sha256(now):
        before = _read(note.get("config") or {})
        found += [
            f"{path}: {_words(old)} at the checkpoint, {_words(new)} in config.json"
            for path, old, new in _compare(before, now)
        ]
    if note.get("coplay") != VERSION:
        found.append(f"coplay: {note.get('coplay')} at the checkpoint, {VERSION} is installed")
    return found


def require_same(note: Mapping[str, Any], config: TrainConfig, force: bool) -> None:
    """An error if anything is not as it was at the checkpoint, unless the user insists."""
    found = differences(note, config)
    if found and not force:
        raise UserError(
            "this is not the run that the checkpoint was written by: "
            + "; ".join(found)
            + ". Put it back as it was, or continue with --force, which is noted in history.jsonl"
            + see("how-to/resume")
        )


def tell_resumed(
    folder: Path,
    step: int,
    note: Mapping[str, Any],
    versions: Mapping[str, str],
    forced: list[str],
    damaged: list[str],
    say: Callable[[str], None],
) -> None:
    """Write into the history, and tell the user, that a run goes on, and what is not as it was."""
    note_in_history(folder, "resumed", step, versions=versions, machine=machine())
    for event, texts in (("forced", forced), ("damaged", damaged)):
        for text in texts:
            say(f"note: {text}")
            note_in_history(folder, event, step, what=text)
    if "config_sha256" not in note:
        say(
            "note: the checkpoint is of an older version and does not state its configuration: "
            "whether config.json was changed since cannot be told"
        )


def _read(data: Mapping[str, Any]) -> dict[str, Any]:
    """A stated configuration in the words of this version, if it can be read."""
    try:
        given = {**data, "run": {**data["run"]}}
        return canonical(TrainConfig.from_json(given, "the checkpoint"))
    except (UserError, KeyError, TypeError):
        return dict(data) if isinstance(data, dict) else {}


def _compare(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            below = f"{path}.{name}" if path else name
            yield from _compare(old.get(name, _NOTHING), new.get(name, _NOTHING), below)
    elif old != new:
        yield path, old, new


_NOTHING = object()


def _words(value: Any) -> str:
    return "nothing" if value is _NOTHING else json.dumps(value)
