"""The runs of a sweep as commands, and what they gave."""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jax

from coplay.core.errors import UserError, unknown
from coplay.core.files import write_json
from coplay.core.game import Game
from coplay.core.loading import is_named, loaded
from coplay.core.reading import read_field, read_json
from coplay.core.version import VERSION
from coplay.games.adapters.worker_game import WorkerGame
from coplay.sweeps.config import ADAPTED, Place, SweepConfig
from coplay.sweeps.workers import Job, Workers, local_workers
from coplay.training.config import TrainConfig
from coplay.training.records import read_rows
from coplay.training.run import RunFolder, named_paths

ADAPTED_FILE = "adapted.json"
"""Scores of an adaptation, in the folder of a run."""


def make_job(
    name: str, config: TrainConfig, run: Path, setting: Path, log: Path, *more: str
) -> Job:
    """A run of a configuration, which is written into the file `setting`. more: options of
    `coplay train`."""
    write_json(setting, {"coplay": VERSION} | config.as_json())
    game = ["--game", config.game_name] if is_named(config.game_name) else []
    options = [text for text in getattr(config.game, "options", ()) if is_named(text)]
    game += ["--game.options", *options] if options else []
    # As JSON: nobody reads how scripted players would have done, which takes seconds to find out.
    train = (*trusted(named_paths(config)), "train", config.player, "--json")
    return Job(
        name,
        run,
        (*train, "--config", str(setting), "--out", str(run), *game, *more),
        (*train, "--resume", str(run), *game, *more),
        log,
        setting,
    )


def trusted(folders: Iterable[str]) -> list[str]:
    """Options by which a job loads what this process has loaded, and may read these folders."""
    own = [*loaded(), *(f"{path.rstrip('/')}/" for path in folders if Path(path).is_dir())]
    return [text for one in own for text in ("--load", one)]


def workers_for(where: SweepConfig, folder: Path, jobs: int) -> Workers:
    """Workers for so many jobs, whose runs are to be in a folder."""
    place = Place.of(where.on)
    if place.kind == "ray":
        # Ray is loaded only where it is asked for.
        from coplay.sweeps.ray_workers import RayWorkers

        return RayWorkers(place.address, where.cpus, where.gpus, where.files, folder)
    return local_workers(place.workers, where.cpus, max(jobs, 1))


def with_run(config: TrainConfig, **fields: Any) -> TrainConfig:
    """A configuration with other fields of the run."""
    return dataclasses.replace(config, run=dataclasses.replace(config.run, **fields))


# --- objectives --------------------------------------------------------------------------------


def check_objective(objective: str, game: Game, prune: bool) -> None:
    """An error unless the final evaluation of a run on this game gives such a number, and with
    `prune` the evaluations during the run, too."""
    scores = [] if isinstance(game, WorkerGame) else list(_scores(game))
    seats = [f"seat_{seat}" for seat in range(game.seats)]
    valid = ["team_mean", *seats, *scores, ADAPTED]
    if objective not in valid and not isinstance(game, WorkerGame):
        raise unknown("objective", objective, valid)
    if prune and objective in (*seats, ADAPTED):
        raise UserError(
            f"--prune needs an objective that is evaluated during a run, not {objective}: "
            f"{', '.join(['team_mean', *scores])}"
        )


def _scores(game: Game) -> Mapping[str, Any]:
    def of_first_state(key: Any) -> Mapping[str, Any]:
        return game.scores(game.reset(key))

    return jax.eval_shape(of_first_state, jax.random.key(0))


def objective_values(folder: Path, objective: str) -> list[float]:
    """[seed] what a finished run got."""
    if objective == ADAPTED:
        scores = read_field(read_json(folder / ADAPTED_FILE), "scores", list, str(folder))
        return [float(one) for one in scores]
    summary = RunFolder(folder).read_summary()
    if summary is None:
        raise UserError(f"{folder} is not finished: there is no summary")
    return [_of(row, objective, folder) for row in summary.get("seeds", [summary])]


def _of(row: Mapping[str, Any], objective: str, folder: Path) -> float:
    if objective == "team_mean":
        return float(row["team_mean"])
    kind, _, seat = objective.partition("seat_")
    if not kind and seat.isdigit():
        return float(row["seats"][int(seat)]["reward"])
    scores = row.get("scores", {})
    if objective not in scores:
        raise unknown(f"score of {folder}", objective, ["team_mean", *scores])
    return float(scores[objective])


def evaluated(folder: Path, objective: str, seeds: int) -> list[tuple[int, float]]:
    """(step, mean over seeds) of the evaluations of a run that all its seeds have made."""
    by_step: dict[int, list[float]] = {}
    for row in read_rows(RunFolder(folder).evaluations_file):
        if isinstance(row.get(objective), int | float) and isinstance(row.get("step"), int):
            by_step.setdefault(row["step"], []).append(float(row[objective]))
    return [
        (step, sum(found) / seeds) for step, found in sorted(by_step.items()) if len(found) == seeds
    ]
