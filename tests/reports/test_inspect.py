"""coplay pretrain and coplay inspect in small: folders, figures, pages, errors before work."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from coplay.cli.main import run
from tests.trust.pages import read_page

GAME = ["--game.height=3", "--game.width=3", "--game.players=3", "--game.hares=2"]
TINY = ["--epochs", "2", "--batch", "64"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset and both models."""
    home = tmp_path_factory.mktemp("minds") / '"><script>alert(1)'  # names are shown, never run
    data = ["--data", str(home / "data")]
    collect = ["collect", *GAME, "--game.horizon=6", "--samples", "600"]
    assert run([*collect, "--out", str(home / "data")]) == 0
    sizes = ["--dim", "3", "--width", "6", "--opponent-hidden", "8"]
    assert run(["pretrain", "goals", *data, "--out", str(home / "goals"), *sizes, *TINY]) == 0
    small = ["--channels", "6", "--width", "6"]
    assert run(["pretrain", "world-model", *data, "--out", str(home / "world"), *small, *TINY]) == 0
    return home


def inspected(made: Path, capsys: Any, part: str, model: str) -> tuple[dict[str, Any], Path]:
    out = made / f"page-{part}"
    capsys.readouterr()
    assert run(["inspect", part, str(made / model), "--out", str(out), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures == json.loads((out / "figures.json").read_text())
    page = (out / "index.html").read_text()
    assert any(str(made / model) in text for text in read_page(out / "index.html"))
    pictures = list(out.glob("*.png"))
    assert len(pictures) >= 3 and page.count("data:image/png;base64") == len(pictures)
    for picture in pictures:
        with Image.open(picture) as image:
            assert image.size[0] > 400
    return figures, out


@pytest.mark.slow
def test_opponent_model(made: Path, capsys: Any) -> None:
    figures, out = inspected(made, capsys, "opponent-model", "goals")
    assert 0 <= figures["top1"] <= figures["top3"] <= 1 and 0.3 < figures["bayes_top1"] < 1
    summary = json.loads((made / "goals" / "summary.json").read_text())
    for name in ("top1", "bayes_top1", "bayes_interval", "share_of_bayes"):
        assert figures[name] == pytest.approx(summary[name], rel=1e-5), name
    with open(out / "classes.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 * 7
    counted = sum(int(row["count"]) for row in rows if row["kind"] == "all")
    assert counted == figures["samples"] == sum(k["samples"] for k in figures["kinds"].values())


@pytest.mark.slow
def test_world_model(made: Path, capsys: Any) -> None:
    figures, out = inspected(made, capsys, "world-model", "world")
    for name in ("exact", "psnr", "board_mse", "reward_mse", "impossible", "planes"):
        assert name in figures
    planes = [one["mse"] for one in figures["planes"].values()]
    assert len(planes) == 6 and np.mean(planes) == pytest.approx(figures["board_mse"], rel=1e-4)
    assert (out / "horizon.csv").exists() and (out / "rewards.csv").exists()


@pytest.mark.slow
def test_goals(made: Path, capsys: Any) -> None:
    figures, out = inspected(made, capsys, "goals", "goals")
    assert 0 < figures["probe_accuracy"] <= 1 and 0 < figures["filter_accuracy"] <= 1
    assert "steps_to_recognise" in figures and (out / "codes.csv").exists()


@pytest.mark.slow
def test_wrong_folders_are_named(made: Path, capsys: Any) -> None:
    assert run(["inspect", "world-model", str(made / "goals")]) == 2
    assert "holds 'goals', not world-model" in capsys.readouterr().err
    assert run(["inspect", "goals", str(made / "nothing")]) == 2
    assert "coplay pretrain goals" in capsys.readouterr().err
    assert run(["pretrain", "goals", "--data", str(made / "x"), "--out", str(made / "y")]) == 2
    assert run(["pretrain", "minds"]) == 2
