"""coplay watch: episodes of a run's players, with what they thought."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from coplay.cli.arguments import parse
from coplay.core.config import PositiveFloat, PositiveInt, Seed
from coplay.core.errors import UserError


@dataclass(frozen=True)
class WatchArguments:
    """Look at episodes of a run's players: in the terminal, as a film, or as a page that shows what
    each of them believed, predicted and planned."""

    run: Annotated[Path, tyro.conf.Positional]
    """Folder of the run."""
    out: Path | None = None
    """Write this file: .html (a page with beliefs, predictions and plans), .jsonl (the same as
    data), .gif or .mp4; without it the episode is shown in the terminal."""
    seating: str = ""
    """Who plays (default: as at the end of the run)."""
    against: str = ""
    """Co-players of the run's player in seat 0, one per other seat: short for a seating."""
    episodes: PositiveInt = 1
    """How many episodes to play, one after the other; players remember the ones before."""
    pick: Literal["played", "surprising"] = "played"
    """Which episodes come first: as they were played, or the most surprising ones, in which the
    players predicted each other worst."""
    full_trees: bool = False
    """Keep all nodes of the search trees, not only those of two visits and more down to depth 4."""
    json: bool = False
    """Print the replay as JSON lines."""
    seed: Seed = 0
    """Which episode."""
    greedy: bool = False
    """Trained players take their most probable action instead of sampling."""
    fps: PositiveFloat = 3.0
    """Frames per second."""


def run(arguments: list[str]) -> int:
    """coplay watch RUN …"""
    from coplay.games.adapters.worker_game import WorkerGame
    from coplay.reports.replay import FILMS, ending_of
    from coplay.reports.results import replay_of, show_episode, show_frames, write_episode
    from coplay.training.run import load_run

    given = parse(WatchArguments, arguments, "watch")
    if given.json and given.out is not None:
        raise UserError("give --json, which prints, or --out FILE.jsonl, not both")
    if given.seating and given.against:
        raise UserError("give --seating or --against, not both")
    ending = "" if given.out is None else ending_of(given.out)
    played = load_run(given.run)
    seating = f"{given.run},{given.against}" if given.against else given.seating
    how = (seating, given.seed, given.greedy, given.fps)
    plain = given.episodes == 1 and given.pick == "played" and not given.json
    if plain and given.out is None:
        show_episode(played, *how)
        return 0
    if given.out is not None and plain and isinstance(played.game, WorkerGame):
        if ending not in FILMS:
            raise UserError(
                f"{played.game.name} runs in worker processes, so its episodes cannot be recorded "
                "step by step: write a .gif or .mp4"
            )
        write_episode(played, given.out, *how)
        print(f"wrote {given.out}")
        return 0
    replay = replay_of(
        played, seating, given.episodes, given.seed, given.greedy, given.full_trees, given.pick
    )
    if given.json:
        for line in replay.lines():
            print(line)
    elif given.out is not None:
        replay.write(given.out, given.fps)
        print(f"wrote {given.out}")
    else:
        for episode in replay.episodes:
            print(f"episode {episode.number}")
            show_frames(played.game, replay.labels, episode, given.fps)
    return 0
