"""coplay watch: an episode of a run's players."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from coplay.cli.arguments import parse
from coplay.core.config import PositiveFloat, Seed


@dataclass(frozen=True)
class WatchArguments:
    """Look at an episode of a run's players."""

    run: Annotated[Path, tyro.conf.Positional]
    """Folder of the run."""
    out: Path | None = None
    """Write a GIF to this file; without it the episode is shown in the terminal."""
    seating: str = ""
    """Who plays (default: as at the end of the run)."""
    seed: Seed = 0
    """Which episode."""
    greedy: bool = False
    """Trained players take their most probable action instead of sampling."""
    fps: PositiveFloat = 3.0
    """Frames per second."""


def run(arguments: list[str]) -> int:
    """coplay watch RUN …"""
    from coplay.reports.results import show_episode, write_episode
    from coplay.training.run import load_run

    given = parse(WatchArguments, arguments, "watch")
    played = load_run(given.run)
    if given.out is None:
        show_episode(played, given.seating, given.seed, given.greedy, given.fps)
    else:
        write_episode(played, given.out, given.seating, given.seed, given.greedy, given.fps)
        print(f"wrote {given.out}")
    return 0
