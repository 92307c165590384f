"""Comparisons of runs, from folders written by hand."""

import json
from pathlib import Path

import numpy as np
import pytest

from coplay import UserError
from coplay.algorithms.mappo.config import MAPPOConfig
from coplay.algorithms.ppo.config import PPOConfig
from coplay.cli import main as cli
from coplay.core.files import write_json
from coplay.evaluation.compare import load_runs, marl_eval, same_series
from coplay.games.stag_hunt import StagHuntConfig
from coplay.matches.statistics import iqm
from coplay.training.config import RunConfig, TrainConfig
from coplay.training.run import RunFolder


def finished_run(path: Path, player: str, values: np.ndarray, won: bool = False) -> Path:
    """A run's folder. values: [seed, point]; the last is the final evaluation's too."""
    learner = {"ppo": PPOConfig(), "mappo": MAPPOConfig()}[player]
    run = RunConfig(seeds=len(values), seed=3)
    folder = RunFolder(path)
    folder.write_config(TrainConfig(player, "stag-hunt", learner, StagHuntConfig(), run))
    with open(folder.metrics_file, "w") as file:
        for point in range(values.shape[1]):
            for seed, of_seed in enumerate(values):
                row = {"step": 10 * (point + 1), "seed": 3 + seed, "seconds": 0.5 * point}
                file.write(json.dumps(row | {"team_mean": float(of_seed[point])}) + "\n")
    seeds = [
        {"seed": 3 + i, "team_mean": float(x[-1])} | ({"scores": {"won": 0.5}} if won else {})
        for i, x in enumerate(values)
    ]
    several = {"seeds": seeds, "team_mean": 0.0, "iqm": 0.0, "interval": [0.0, 0.0]}
    about = {"game": "stag-hunt", "player": player, "episodes": 2, "seats": [], "steps": 1}
    about |= {"seconds": 1.0, "compile_seconds": 1.0}
    write_json(folder.summary_file, about | (several if len(seeds) > 1 else seeds[0]))
    return path


RNG = np.random.default_rng(0)
ONE, OTHER = RNG.normal(size=(5, 12)), RNG.normal(1.0, size=(4, 12))


def test_compare_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [finished_run(tmp_path / "a", "ppo", ONE), finished_run(tmp_path / "b", "mappo", OTHER)]
    out = tmp_path / "out"
    assert cli.run(["compare", *map(str, paths), "--out", str(out), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    found = shown["games"]["stag-hunt"]["team_mean"]
    assert found["runs"]["ppo"]["iqm"] == pytest.approx(iqm(ONE[:, -1]))
    better = np.mean([[x > y for y in OTHER[:, -1]] for x in ONE[:, -1]])
    assert found["better"][0]["probability"] == pytest.approx(better)
    band = shown["curves"]["stag-hunt"]["mappo"]
    np.testing.assert_allclose(band["iqm"], iqm(OTHER, axis=0))
    assert (out / "curves-stag-hunt.png").stat().st_size > 5000
    assert json.loads((out / "comparison.json").read_text())["games"] == shown["games"]
    assert cli.run(["compare", *map(str, paths), "--out", str(out)]) == 0
    assert "P(ppo better than mappo)" in capsys.readouterr().out


def test_one_seed_has_no_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [
        finished_run(tmp_path / "a", "ppo", ONE[:1]),
        finished_run(tmp_path / "b", "mappo", ONE[1:]),
    ]
    given = ["compare", *map(str, paths), "--out", str(tmp_path / "out")]
    assert cli.run([*given, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    found = shown["games"]["stag-hunt"]["team_mean"]
    assert found["runs"]["ppo"]["interval"] is None and found["better"] == []
    assert found["runs"]["ppo"]["iqm"] == pytest.approx(ONE[0, -1])
    low, high = found["runs"]["mappo"]["interval"]
    assert low < high
    assert shown["curves"]["stag-hunt"]["ppo"]["low"] == []
    assert cli.run(given) == 0
    printed = capsys.readouterr().out
    assert "ppo trained one seed" in printed and "better than" not in printed
    page = (tmp_path / "out" / "index.html").read_text()
    assert "ppo trained one seed" in page and "with probability" not in page


def test_two_single_seeds_are_two_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [
        finished_run(tmp_path / "a", "ppo", ONE[:1]),
        finished_run(tmp_path / "b", "mappo", ONE[1:2]),
    ]
    assert cli.run(["compare", *map(str, paths), "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "ppo and mappo trained one seed" in printed
    assert "interval" not in printed and "interquartile" not in printed


def test_non_stationarity_stands_beside_the_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [finished_run(tmp_path / "a", "ppo", ONE), finished_run(tmp_path / "b", "mappo", OTHER)]
    metrics = RunFolder(paths[1]).metrics_file
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    for row in rows:  # 12 points at steps 10 to 120: the last quarter is 100, 110, 120
        row |= {"policy_shift_kl/seat_0": row["step"], "policy_shift_kl/seat_1": row["step"] + 2.0}
        row |= {"diversity/seat_0": None if row["step"] == 120 else 1.0, "moved/seat_0": 7.0}
    metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = ["compare", *map(str, paths), "--out", str(tmp_path / "out")]
    assert cli.run([*given, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["non_stationarity"]["stag-hunt"]
    assert found == {"ppo": {}, "mappo": {"policy_shift_kl": 111.0, "diversity": 1.0}}
    assert cli.run(given) == 0
    assert "111.0000" in capsys.readouterr().out


def test_marl_eval_form(tmp_path: Path) -> None:
    runs = load_runs(
        [
            finished_run(tmp_path / "a", "ppo", ONE, won=True),
            finished_run(tmp_path / "b", "mappo", OTHER),
        ]
    )
    data = marl_eval(runs)["stag-hunt"]["stag-hunt"]
    assert set(data) == {"ppo", "mappo"} and set(data["ppo"]) == {f"seed_{3 + i}" for i in range(5)}
    seed = data["ppo"]["seed_4"]
    assert seed["step_2"]["step_count"] == 30
    assert seed["step_2"]["mean_episode_return"] == [pytest.approx(ONE[1, 2])]
    assert seed["absolute_metrics"] == {
        "mean_episode_return": [pytest.approx(ONE[1, -1])],
        "won": [0.5],
    }


def test_identical_curves_are_refused(tmp_path: Path) -> None:
    same = OTHER.copy()
    same[2] = ONE[4]
    with pytest.raises(UserError, match=r"identical learning curves.*audit wiring"):
        load_runs(
            [finished_run(tmp_path / "a", "ppo", ONE), finished_run(tmp_path / "b", "mappo", same)]
        )
    same[2, 5] += 1e-12
    load_runs(
        [finished_run(tmp_path / "c", "ppo", ONE), finished_run(tmp_path / "d", "mappo", same)]
    )


def test_what_never_changes_proves_nothing() -> None:
    assert not same_series(np.ones(9), np.ones(9))
    assert same_series(np.arange(9.0), np.arange(7.0))
    assert not same_series(np.arange(9.0), np.arange(9.0) + 1)


def test_two_runs_of_one_player_are_called_by_their_folders(tmp_path: Path) -> None:
    runs = load_runs(
        [finished_run(tmp_path / "a", "ppo", ONE), finished_run(tmp_path / "b", "ppo", OTHER)]
    )
    assert [run.label for run in runs] == ["a", "b"]


def test_unfinished_runs_and_single_ones_are_refused(tmp_path: Path) -> None:
    path = finished_run(tmp_path / "a", "ppo", ONE)
    with pytest.raises(UserError, match="at least two"):
        load_runs([path])
    RunFolder(path).summary_file.unlink()
    with pytest.raises(UserError, match="not finished"):
        load_runs([path, finished_run(tmp_path / "b", "ppo", OTHER)])
