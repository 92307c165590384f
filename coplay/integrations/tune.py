"""coplay inside Ray Tune, for experiments that are there already; else see `coplay sweep`."""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from coplay.api.training import train
from coplay.core.errors import UserError, how_to_install
from coplay.training.run import RunFolder
from coplay.training.watching import Report, Watcher


def trainable(
    player: str = "ppo", game: str = "stag-hunt", **fields: Any
) -> Callable[[Mapping[str, Any]], None]:
    """A function for `ray.tune.Tuner`: trains the player with a setting of fields over `fields`.

    It reports `team_mean` and `step` after every block, with the run as a checkpoint whenever there
    is a new one, from which a trial that was lost or paused goes on. At its end it reports the
    final evaluation, and `done_training`.

        tune.Tuner(trainable("ppo", steps=200_000), param_space={"discount": tune.grid_search([…])})
    """
    try:
        import ray.tune  # noqa: F401
    except ImportError as error:
        raise UserError(f"this needs Ray Tune: {how_to_install('tune')}") from error

    def train_one(setting: Mapping[str, Any]) -> None:
        from ray import tune

        # As many threads as Ray gives to a trial; JAX asks when it first computes.
        os.environ.setdefault("PJRT_NPROC", os.environ.get("OMP_NUM_THREADS", "1"))
        run = Path(tune.get_context().get_trial_dir()) / "run"
        if (before := tune.get_checkpoint()) is not None:
            with before.as_directory() as kept:
                shutil.copytree(kept, run, dirs_exist_ok=True)
        asked: dict[str, Any] = {"watcher": _Reports(run), "pictures": False}
        if run.exists():
            found = train(player, out=run, resume=True, **asked)
        else:
            found = train(player, game, run, **asked, **{**fields, **setting})
        last = {"team_mean": found["team_mean"], "step": found["steps"], "done_training": True}
        tune.report(last, checkpoint=tune.Checkpoint.from_directory(run))

    return train_one


class _Reports(Watcher):
    """Tells Tune what a run tells."""

    def __init__(self, run: Path):
        self.saved, self.kept = RunFolder(run).checkpoints(), 0

    def show(self, report: Report) -> None:
        from ray import tune

        made = {"team_mean": report.team_mean, "step": report.step, "done_training": False}
        newest = self.saved.last_step()
        fresh = newest > self.kept
        self.kept = newest
        run = self.saved.folder.parent
        tune.report(made, checkpoint=tune.Checkpoint.from_directory(run) if fresh else None)
