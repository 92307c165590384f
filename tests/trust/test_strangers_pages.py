"""Names of a stranger on pages and pictures: shown as they are, and nothing more."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from coplay.algorithms.ppo.config import PPOConfig
from coplay.evaluation.audits.checks import Audit, Check
from coplay.games.stag_hunt import StagHuntConfig
from coplay.reports import charts, compare, inspect_goals, inspect_opponent, inspect_world
from coplay.reports.audit_page import write_audit
from coplay.reports.curves import learning_curve
from coplay.training.config import RunConfig, TrainConfig
from tests.trust.pages import EVIL, read_page

FORMULA = r"$\frac{ \[/] $$ \x"


class Figures(dict):
    """Has every figure that a page asks for."""

    def __missing__(self, name: str) -> Any:
        return 0.5


def seen() -> Any:
    """What a page is given: the stranger chose every name."""
    return SimpleNamespace(
        title=EVIL,
        kinds=(EVIL,),
        game=SimpleNamespace(name=EVIL, action_names=(EVIL,)),
        samples=SimpleNamespace(time=np.zeros(3)),
        rows=[{"epoch": 0}, {"epoch": 1}],
    )


def opponent_page(out: Path) -> None:
    one = Figures(classes={EVIL: Figures()})
    inspect_opponent._page(out, seen(), Figures(kinds={EVIL: one}, classes={EVIL: Figures()}), None)


def goals_page(out: Path) -> None:
    told = {"probe": Figures(), "filter": None}
    inspect_goals._page(out, seen(), Figures(recognition={EVIL: told}), np.ones(2))


def world_page(out: Path) -> None:
    inspect_world._page(out, seen(), Figures())


def audit_page(out: Path) -> None:
    worth = {"player": FORMULA, "mean": [1.0, 2.0], "low": [0.0, 1.0], "high": [2.0, 3.0]}
    checks = (
        Check(EVIL, EVIL, False, EVIL, figures=worth | {"detectable": 0.1}),
        Check(FORMULA, EVIL, True, EVIL, figures={"difference": 1e-3, "allowed": 1e-2}),
    )
    config = TrainConfig(EVIL, EVIL, PPOConfig(), StagHuntConfig(), RunConfig(seating=EVIL))
    write_audit(out, Audit(EVIL, {EVIL: EVIL}, checks), config, EVIL)


@pytest.mark.parametrize("make", [opponent_page, goals_page, world_page, audit_page])
def test_names_do_not_become_elements(make: Any, tmp_path: Path) -> None:
    names = "confusion classes by_step training probe pca tsne planes horizon calibration rewards "
    for name in (names + "chosen worst").split():
        Image.new("RGB", (1, 1)).save(tmp_path / f"{name}.png")
    make(tmp_path)
    assert sum(EVIL in text for text in read_page(tmp_path / "index.html")) >= 2


def test_names_are_no_formulas_in_pictures(tmp_path: Path) -> None:
    rows = [{"step": 1, "team_mean": 1.0}, {"step": 2, "team_mean": 2.0}]
    learning_curve(tmp_path / "curve.svg", rows, 1, FORMULA, {FORMULA: 1.0})
    assert (tmp_path / "curve.svg").exists()
    band: dict[str, list[float]] = {"step": [1, 2], "iqm": [1.0, 2.0], "low": [], "high": []}
    charts.save(compare.draw_curves(FORMULA, {FORMULA: band}), tmp_path / "curves.png")


def test_a_game_s_name_is_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    game, out = "pettingzoo:../../../outside", tmp_path / "a" / "b" / "out"
    drawn = {"step": [1], "iqm": [1.0], "low": [], "high": []}
    profiles = {"levels": [0.0], "runs": {"ppo": [1.0]}}
    found = {
        "curves": {game: {"ppo": drawn}},
        "games": {game: {"team_mean": {"better": [], "runs": {}, "profiles": profiles}}},
    }
    monkeypatch.setattr(compare, "compare", lambda runs: found)
    monkeypatch.setattr(compare, "marl_eval", lambda runs: {})
    monkeypatch.setattr(charts, "save", lambda figure, path: path.touch())
    compare.write_comparison(out, [])
    assert {path.name for path in out.iterdir()} == {
        "index.html",
        "comparison.json",
        "marl_eval.json",
        "curves-pettingzoo-..-..-..-outside.png",
        "profiles-pettingzoo-..-..-..-outside.png",
    }
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
