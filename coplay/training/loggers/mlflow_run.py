"""The rows of a run in MLflow.

Its own settings decide where they go: `MLFLOW_TRACKING_URI`, and `MLFLOW_EXPERIMENT_NAME` (here
`coplay` if it is not set).
"""

import os
import re
import time
from typing import Any

from coplay.training.loggers.logged import LoggedRun, Row, final_figures, flat, numbers_of

METRICS, PARAMS = 1000, 100
"""How many metrics and parameters MLflow takes at once."""
LONGEST = 500
"""Characters of a parameter; a longer one is cut."""


class MlflowLog:
    """One run of MLflow for each seed, in one experiment."""

    def __init__(self, run: LoggedRun):
        from mlflow.entities import Metric, Param
        from mlflow.tracking import MlflowClient

        self.client, self.metric = MlflowClient(), Metric
        self.known = dict(run.known)
        for seed in run.seeds:
            if known := self.known.get(str(seed)):
                self.client.update_run(known, status="RUNNING")
                continue
            tags = {"coplay.run": run.title, "coplay.seed": str(seed)}
            made = self.client.create_run(
                self._experiment(), tags=tags, run_name=run.title_of(seed)
            )
            self.known[str(seed)] = made.info.run_id
            params = [
                Param(_name(path), str(value)[:LONGEST]) for path, value in flat(run.config).items()
            ]
            for start in range(0, len(params), PARAMS):
                self.client.log_batch(made.info.run_id, params=params[start : start + PARAMS])

    def _experiment(self) -> str:
        """The identity of the experiment; it is made where it is missing."""
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "coplay")
        found = self.client.get_experiment_by_name(name)
        return found.experiment_id if found else self.client.create_experiment(name)

    def write(self, rows: list[Row]) -> None:
        """See `Logger.write`."""
        now = int(1000 * time.time())
        for seed, identity in self.known.items():
            metrics = [
                self.metric(_name(name), value, now, row["step"])
                for row in rows
                if row["seed"] == int(seed)
                for name, value in numbers_of(row).items()
            ]
            for start in range(0, len(metrics), METRICS):
                self.client.log_batch(identity, metrics=metrics[start : start + METRICS])

    def close(self, summary: dict[str, Any] | None) -> None:
        """See `Logger.close`. A run that is not finished is `KILLED` until it goes on."""
        now = int(1000 * time.time())
        for seed, identity in self.known.items():
            for name, value in final_figures(summary, int(seed)).items():
                self.client.log_metric(identity, name, value, now, summary["steps"])  # type: ignore
            self.client.set_terminated(identity, "KILLED" if summary is None else "FINISHED")


def _name(name: str) -> str:
    """A name of the signs that MLflow takes."""
    return re.sub(r"[^\w\-. /]", "_", name)
