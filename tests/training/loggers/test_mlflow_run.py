"""Rows arrive in MLflow, here in an SQLite file."""

from pathlib import Path
from typing import Any

import pytest

from coplay.training.loggers.registry import OtherLogs

pytest.importorskip("mlflow", reason="mlflow is not installed: pip install -e '.[mlflow]'")
pytest.importorskip("sqlalchemy", reason="MLflow keeps SQLite files by it")


def rows(*steps: int) -> list[dict[str, Any]]:
    return [
        {"step": step, "seed": seed, "seconds": 1.0, "entropy/seat_0": step + seed / 2, "kl": None}
        for step in steps
        for seed in (3, 4)
    ]


def opened(folder: Path, sent: int = 0) -> tuple[OtherLogs, list[str]]:
    said: list[str] = []
    config = {"run": {"seed": 3}, "learner": {"network": {"hidden": [8]}}}
    logs = OtherLogs("mlflow", folder, config, [3, 4], said.append)
    logs.sent = sent
    return logs, said


def test_a_run_goes_on_in_the_same_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow.tracking import MlflowClient

    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    folder = tmp_path / "mine"
    folder.mkdir()
    logs, said = opened(folder)
    logs.write(rows(1, 2))
    logs.close(None)
    again, said_again = opened(folder, sent=2)
    again.write(rows(2, 3))
    again.close({"steps": 3, "team_mean": 2.0, "seeds": [{"seed": 4, "team_mean": 1.5}]})
    assert not said + said_again
    client = MlflowClient()
    experiment = client.get_experiment_by_name("coplay")
    assert experiment is not None
    found = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    assert sorted(found) == ["mine-seed-3", "mine-seed-4"]
    run = found["mine-seed-4"]
    history = client.get_metric_history(run.info.run_id, "entropy/seat_0")
    assert [(one.step, one.value) for one in history] == [(1, 3.0), (2, 4.0), (3, 5.0)]
    assert run.info.status == "FINISHED" and run.data.metrics["final_team_mean"] == 1.5
    assert run.data.params["learner.network.hidden"] == "[8]"
