"""HOP+ from data to adaptation by its commands, on a tiny game; a run that is taken up again."""

import json
import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from coplay.cli.main import run
from coplay.training.run import load_learner

pytestmark = pytest.mark.slow

GAME = [
    *("--game.height=2", "--game.width=3", "--game.players=2"),
    *("--game.stags=1", "--game.hares=1", "--game.horizon=5"),
]
GOALS = ["--dim", "2", "--prototypes", "3", "--opponent-hidden", "6"]
SMALL = [
    *("--network.hidden", "8", "--epochs", "1", "--minibatches", "2"),
    *("--models.chunk-length", "4", "--models.buffer-chunks", "20"),
    *("--models.buffer-transitions", "50", "--models.batch-chunks", "4"),
    *("--models.batch-transitions", "8", "--goals.dim", "2", "--imagination.over", "model"),
    *("--network.kind", "mlp", "--models.learn-opponents"),
    *("--copies", "6", "--rollout", "8", "--block", "1", "--episodes", "20"),
    *("--checkpoint-every", "48"),
]


def numbers(folder: Path) -> list[np.ndarray]:
    """All that is saved of the learner of a run."""
    return [np.asarray(x) for x in jax.tree.leaves(load_learner(str(folder))[1])]


def test_from_data_to_adaptation(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    def call(*words: Any) -> Any:
        capsys.readouterr()
        assert run([*map(str, words), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    names = ("d", "g", "w", "whole", "cut")
    data, goals, world, whole, cut = (tmp_path / name for name in names)
    about = call("collect", *GAME, "--mix", "ns,nh,random", "--samples", "600", "--out", data)
    assert about["samples"] == 600
    fit = ("--data", data, "--epochs", "2", "--batch", "64", "--width", "6")
    found = call("pretrain", "goals", *fit, *GOALS, "--out", goals)
    assert 0 < found["top1"] <= 1 and found["bayes_top1"] > 0
    found = call("pretrain", "world-model", *fit, "--channels", "6", "--out", world)
    assert 0 <= found["exact"] <= 1

    # The models are what the run begins with; then it learns.
    begun = ["--goals.from", goals, "--world-model.from", world]
    begun += ["--imagination.share", "0.25", "--imagination.strangers", "0.25"]
    plan = ["--planner", "search", "--plan-over", "model"]
    plan += ["--search.simulations", "7", "--search.draws", "1"]
    command = ["train", "hop-plus", *GAME, *SMALL, *begun, *plan]
    summary = call(*command, "--steps", "144", "--out", whole)
    assert np.isfinite(summary["team_mean"])
    rows = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    assert len(rows) == 3
    for part in ("real", "imagined", "strangers"):
        for name in ("value_loss", "policy_loss", "return", "reward"):
            assert np.isfinite(rows[-1][f"{part}_{name}/seat_0"])
    state = load_learner(str(whole))[1]
    assert state.goals.memory_size == 3 and state.world.cell.bias.shape == (6,)

    # A run that ends early and is taken up again is, to the bit, the run in one go; it needs the
    # models that it began with no more.
    call(*command, "--steps", "96", "--out", cut)
    for folder in (goals, world):
        shutil.rmtree(folder)
    assert any((a != b).any() for a, b in zip(numbers(whole), numbers(cut), strict=True))
    call("train", "hop-plus", "--resume", cut, "--steps", "144")
    for one, other in zip(numbers(whole), numbers(cut), strict=True):
        np.testing.assert_array_equal(one, other)

    pages = {
        "opponent-model": ("top1", "top3", "bayes_top1", "classes"),
        "world-model": ("exact", "psnr", "board_mse", "reward_mse", "impossible", "planes"),
        "goals": ("probe_accuracy", "steps_to_recognise"),
    }
    for part, names in pages.items():  # type: ignore[assignment]
        figures = call("inspect", part, whole, "--samples", "400")
        assert set(names) <= set(figures)
        assert (whole / f"inspect-{part}" / "index.html").exists()

    short = ("--against", "nh", "--steps", "40", "--last", "20", "--seeds", "1", "--no-normalise")
    for learning in ([], ["--learn", "--learn-opponents", "--rollout", "8"]):
        out = tmp_path / f"adapt{len(learning)}"
        found = call("adapt", whole, *short, *learning, "--out", out)
        assert np.isfinite(found["score"])
