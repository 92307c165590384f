"""What a comparison leaves and prints."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from coplay.evaluation.compare import ComparedRun, Curve
from coplay.reports.compare import print_comparison, write_comparison


def run(label: str, game: str, better: float) -> ComparedRun:
    rng = np.random.default_rng(len(label))
    steps = np.arange(1.0, 6.0)
    curves = tuple(
        Curve(
            seed,
            steps,
            steps + better + rng.normal(size=5),
            steps,
            True,
            {"team_mean": better + seed / 10},
            {"policy_shift_kl": 0.25} if label == "mappo" else {},
        )
        for seed in range(3)
    )
    return ComparedRun(Path(label), label, label, game, curves)


RUNS = [run(label, game, b) for game in ("a:one", "b") for label, b in (("ppo", 0), ("mappo", 1))]


def test_everything_is_written(tmp_path: Path) -> None:
    result = write_comparison(tmp_path, RUNS)
    assert json.loads((tmp_path / "comparison.json").read_text()) == result
    names = {path.name for path in tmp_path.glob("*.png")}
    assert names == {"curves-a-one.png", "curves-b.png", "profiles-a-one.png", "profiles-b.png"}
    page = (tmp_path / "index.html").read_text()
    assert page.count("data:image/png") == 4 and "with probability 0.00" in page
    profiles = result["games"]["b"]["team_mean"]["profiles"]
    shares = np.array([profiles["runs"][name] for name in ("ppo", "mappo")])
    assert (np.diff(shares, axis=1) <= 0).all() and (shares[1] >= shares[0]).all()
    assert shares[:, -1].tolist() == [0, 0], "nobody is above the best of all"


def test_tables_are_plain_english(tmp_path: Path, capsys: Any) -> None:
    print_comparison(write_comparison(tmp_path, RUNS), tmp_path, False)
    printed = capsys.readouterr().out
    assert "P(ppo better than mappo) = 0.00" in printed and "all games: team_mean" in printed
    assert "non-stationarity" in printed and "policy_shift_kl" in printed
    print_comparison(write_comparison(tmp_path, RUNS), tmp_path, True)
    assert json.loads(capsys.readouterr().out)["out"] == str(tmp_path)
