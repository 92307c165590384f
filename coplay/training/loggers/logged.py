"""What every logger is told of a run, and what it must be able to do."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

Row = dict[str, Any]
"""{"step", "seed", "seconds", metric: value or None, …}"""


class LoggedRun(NamedTuple):
    """What a logger is told about the run.

    folder: of the run. config: everything that determines it, as plain values. seeds: trained side
        by side; each is a run of its own elsewhere. known: seed -> the identity under which the
        logger knew it before; empty for a new run.
    """

    folder: Path
    config: dict[str, Any]
    seeds: list[int]
    known: dict[str, str]

    @property
    def title(self) -> str:
        """The name of the run."""
        return self.folder.resolve().name

    def title_of(self, seed: int) -> str:
        """The name of one of its seeds."""
        return self.title if len(self.seeds) == 1 else f"{self.title}-seed-{seed}"


class Logger(Protocol):
    """known: seed -> identity, by which the run is found again when it goes on."""

    known: dict[str, str]

    def write(self, rows: list[Row]) -> None:
        """Take rows, which `metrics.jsonl` holds already."""

    def close(self, summary: dict[str, Any] | None) -> None:
        """The run stops here. summary: of its final evaluation; None: it is not finished."""


LABELS = ("step", "seed")
"""What tells rows apart and is no metric."""


def numbers_of(row: Mapping[str, Any]) -> dict[str, float]:
    """The metrics of a row that have a value."""
    return {
        name: float(value)
        for name, value in row.items()
        if name not in LABELS and value is not None
    }


def final_figures(summary: Mapping[str, Any] | None, seed: int) -> dict[str, float]:
    """What the final evaluation gave for a seed; nothing if there was none."""
    if summary is None:
        return {}
    of_seed = [row["team_mean"] for row in summary.get("seeds", []) if row["seed"] == seed]
    return {"final_team_mean": float(of_seed[0] if of_seed else summary["team_mean"])}


def flat(config: Mapping[str, Any], inside: str = "") -> dict[str, Any]:
    """Path -> value, of nested dictionaries."""
    found: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{inside}{name}.")
        else:
            found[f"{inside}{name}"] = value
    return found
