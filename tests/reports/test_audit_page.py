"""The folder of an audit."""

import json
from pathlib import Path

import pytest

from coplay.algorithms.ppo.config import PPOConfig
from coplay.evaluation.audits.checks import Audit, Check
from coplay.games.stag_hunt import StagHuntConfig
from coplay.reports.audit_page import draw_effects, power_words, write_audit
from coplay.training.config import RunConfig, TrainConfig

CURVES = [[[1.0, 2.0], [1.5, 2.5]]] * 2  # [seat, seed, window]
WORTH = {"player": "ns", "mean": [1.0, 1.1], "low": [0.9, 1.0], "high": [1.1, 1.2]}
CHECKS = (
    Check("worth", "game", True, "alike", figures=WORTH | {"detectable": 0.02}),
    Check("exact", "game", False, "differs", figures={"difference": 0.1, "allowed": 1e-6}),
    Check("who", "game", True, "", figures={"influence": [[1.0, 0.0], [0.0, 1.0]]}),
    Check("moved", "game", True, "", figures={"one_learner": CURVES, "metric": "reward"}),
    Check("bare", "game", True, "no figures"),
)


def test_page_pictures_and_json_are_written(tmp_path: Path) -> None:
    config = TrainConfig("ppo", "stag-hunt", PPOConfig(epochs=7), StagHuntConfig(), RunConfig())
    page = write_audit(tmp_path / "out", Audit("ppo", {"game": "the rules"}, CHECKS), config)
    text = page.read_text()
    assert "<td>epochs</td>" in text and ">7</td>" in text
    assert text.index("data:image/png") < text.index("<table>"), "figures first"
    assert "verdict fail" in text and text.count("FAILED") == 1 and text.count(">passed<") == 4
    pictures = {path.stem for path in page.parent.glob("*.png")}
    assert pictures == {"worth_of_the_seats", "exact_comparisons", "influence", "moved_learner"}
    assert text.count("data:image/png") == 4
    found = json.loads((page.parent / "audit.json").read_text())
    assert found["verdict"] == "fail" and len(found["checks"]) == 5


def test_a_pass_says_what_could_have_been_found() -> None:
    failed = Audit("ppo", {"game": "the rules"}, CHECKS)
    assert power_words(failed) == ""
    passed = Audit("ppo", {"game": "the rules"}, tuple(one for one in CHECKS if one.passed))
    assert "advantage of 2.0 % or more" in power_words(passed)
    assert power_words(Audit("ppo", {}, (CHECKS[-1],))) == ""
    asked = "No training runs were compared"
    assert asked not in power_words(passed)
    assert asked in power_words(Audit("ppo", {}, CHECKS[:1]))


INPUTS = Check(
    "inputs",
    "input",
    True,
    "",
    figures={"inputs": {"view": 0.5, "memory": 0.0}, "coefficients": {}},
)


def test_a_wiring_audit_shows_effects_and_what_it_was_not_asked(tmp_path: Path) -> None:
    config = TrainConfig("ppo", "stag-hunt", PPOConfig(), StagHuntConfig(), RunConfig(steps=7))
    quick = Audit("ppo", {"input": "acts", "loss": "acts"}, (INPUTS,))
    text = write_audit(tmp_path, quick, config, "Wiring audit").read_text()
    assert "a part without any effect" in text and "were not tried" in text
    assert (tmp_path / "inputs.png").stat().st_size > 1000
    assert not (tmp_path / "coefficients.png").exists(), "there are none"
    assert "<td>steps</td>" not in text, "no training run, so nothing of its length"
    fields = Check("fields", "configuration", True, "")
    whole = Audit("ppo", {"loss": "acts"}, (INPUTS, fields))
    assert "were not tried" not in power_words(whole)


def test_a_comparison_without_any_difference_is_drawn(tmp_path: Path) -> None:
    config = TrainConfig("ppo", "stag-hunt", PPOConfig(), StagHuntConfig(), RunConfig())
    exact = Check("exact", "game", True, "alike", figures={"difference": 0.0, "allowed": 1e-6})
    write_audit(tmp_path, Audit("ppo", {"game": "the rules"}, (exact,)), config)
    assert (tmp_path / "exact_comparisons.png").exists()


@pytest.mark.parametrize("effects", [{"a": 0.0}, {"a": 0.0, "b": 1e-6}, {".reward": 3.0}])
def test_effects_are_drawn_even_if_there_are_none(effects: dict[str, float]) -> None:
    check = Check("data", "data", True, "", figures={"data": effects, "declared": []})
    (axes,) = draw_effects("data", "change", [check]).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        name.strip(".") for name in reversed(effects)
    ]
    said = [text.get_text() for text in axes.texts]
    assert all("not declared" in words for words in said)
    assert ("none" in said[-1]) == (effects.get("a") == 0.0)
