"""The rows of a run in Weights & Biases.

Its own settings decide where they go: `WANDB_PROJECT` (here `coplay` if it is not set),
`WANDB_ENTITY`, `WANDB_MODE=offline`, `WANDB_DIR`, … Its files are in the folder `wandb` of the
current folder and not in that of the run: among them are links that lead out of it.
"""

import os
import secrets
from typing import Any

from coplay.training.loggers.logged import LoggedRun, Row, final_figures, numbers_of


class WandbLog:
    """One run of Weights & Biases for each seed, in a group with the name of the run's folder."""

    def __init__(self, run: LoggedRun):
        import wandb

        self.runs = {}
        for seed in run.seeds:
            self.runs[seed] = wandb.init(
                id=run.known.get(str(seed)) or secrets.token_hex(6),
                resume="allow",
                reinit="create_new",
                project=os.environ.get("WANDB_PROJECT", "coplay"),
                name=run.title_of(seed),
                group=run.title,
                config={**run.config, "seed": seed},
                # Output of the program is the user's, and no part of the run.
                settings=wandb.Settings(console="off", quiet=True),
            )
        self.known = {str(seed): one.id for seed, one in self.runs.items()}

    def write(self, rows: list[Row]) -> None:
        """See `Logger.write`."""
        for row in rows:
            self.runs[row["seed"]].log(numbers_of(row), step=row["step"])

    def close(self, summary: dict[str, Any] | None) -> None:
        """See `Logger.close`."""
        for seed, run in self.runs.items():
            run.summary.update(final_figures(summary, seed))
            run.finish()
