"""The seeds of one run trained by several workers: on this machine, or on a Ray cluster.

Each seed is a run of its own until all are done. Then they are put together to the folder that one
run of all seeds would have left.
"""

from collections.abc import Callable
from pathlib import Path

from coplay.core.errors import UserError
from coplay.sweeps.config import SweepConfig
from coplay.sweeps.jobs import make_job, with_run
from coplay.sweeps.parts import do_parts
from coplay.sweeps.workers import Job
from coplay.training.config import TrainConfig
from coplay.training.merge import merge_runs
from coplay.training.phases import plan_phases
from coplay.training.preparation import records
from coplay.training.run import RunFolder, make_game_of

EPISODES = 2
"""Of the final evaluation of a single seed; the whole run makes its own."""


def train_seeds(
    config: TrainConfig, out: Path, where: SweepConfig, say: Callable[[str], None]
) -> None:
    """Train every seed by itself and put them together in `out`, which can then be resumed.

    What is done lies in a folder beside it until then. The same call goes on where it was.
    """
    check(config)
    RunFolder(out).refuse_if_taken()
    home = out.with_name(f"{out.name}.parts")

    def jobs() -> list[Job]:
        return [_job(config, home, config.run.seed + index) for index in range(config.run.seeds)]

    def merge(done: list[Job]) -> None:
        merge_runs([job.folder for job in done], config, out)

    do_parts(where, home, jobs, _is_done, merge, say, "seeds")


def check(config: TrainConfig) -> None:
    """An error if the seeds of a run cannot be trained one by one."""
    if config.run.seeds < 2:
        raise UserError("--on shares the seeds of a run: give at least --seeds 2")
    if config.run.devices > 1:
        raise UserError("--on and --devices both share the seeds: leave out one of them")
    if records(config.learner):
        raise UserError(
            f"'{config.player}' makes its recordings once for all seeds: give --goals.from, or "
            "leave out --on"
        )
    plan_phases(config, make_game_of(config))


def _job(config: TrainConfig, home: Path, seed: int) -> Job:
    name = f"seed-{seed}"
    one = with_run(config, seed=seed, seeds=1, episodes=EPISODES)
    there = RunFolder(home / name)
    if there.exists() and there.read_config() != one:
        raise UserError(
            f"{home} holds seeds of a run with another configuration: remove it, or choose another "
            "--out"
        )
    files = (home / f"{name}.json", home / f"{name}.txt")
    return make_job(name, one, home / name, *files, "--no-pictures")


def _is_done(job: Job) -> bool:
    return RunFolder(job.folder).read_summary() is not None
