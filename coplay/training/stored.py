"""The summary of a finished run as a file says it, checked before anybody relies on it."""

from pathlib import Path
from typing import Any

from coplay.core.reading import Unreadable, read_field, read_json

TEXTS = ("game", "player")
COUNTS = ("episodes", "steps")
NUMBERS = ("team_mean", "seconds", "compile_seconds")


def read_summary(path: Path) -> dict[str, Any]:
    """A summary; an error says which field is missing or of another type."""
    summary, where = read_json(path), str(path)
    for names, kind in ((TEXTS, str), (COUNTS, int), (NUMBERS, float)):
        for name in names:
            read_field(summary, name, kind, where)
    if summary.get("steps_per_second") is not None:
        read_field(summary, "steps_per_second", float, where)
    _check_result(summary, where)
    if "seeds" in summary:
        for seed in _objects(summary, "seeds", where):
            read_field(seed, "seed", int, where)
            read_field(seed, "team_mean", float, where)
            _check_result({"seats": []} | seed, where)
        read_field(summary, "iqm", float, where)
        ends = dict(enumerate(read_field(summary, "interval", list, where)))
        for end in (0, 1):
            read_field(ends, end, float, f"{where}: interval")
    return summary


def _check_result(result: dict[str, Any], where: str) -> None:
    """What the seats got, and the game's own scores."""
    for seat in _objects(result, "seats", where):
        read_field(seat, "player", str, where)
        for name in ("reward", "stderr", "steps"):
            read_field(seat, name, float, where)
    scores = read_field({"scores": {}} | result, "scores", dict, where)
    for name in scores:
        read_field(scores, name, float, where)


def _objects(data: dict[str, Any], name: str, where: str) -> list[dict[str, Any]]:
    rows = read_field(data, name, list, where)
    if not all(isinstance(row, dict) for row in rows):
        raise Unreadable(f"{where}: '{name}' must be a list of objects")
    return rows
