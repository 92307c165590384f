"""Adaptation as a table and as pictures."""

from pathlib import Path
from typing import Any

from PIL import Image

from coplay.reports.adaptation import (
    draw_adaptation,
    draw_suite,
    episode_groups,
    print_adaptations,
    print_by_episode,
    set_name,
)


def result(against: str, models: bool) -> dict[str, Any]:
    course = {"mean": 0.5, "by_episode": [0.25, None, 0.75] * 5, "by_step": [0.5], "best": 0.9}
    return {
        "player": "runs/hop",
        "against": against,
        "score": 3.0,
        "interval": [2.0, 4.0],
        "random": 1.0,
        "best_response": 5.0,
        "normalised": 0.5,
        "normalised_interval": [0.25, 0.75],
        "episodes_to_90": 7,
        "episodes_to_90_robust": 3,
        "steps_to_90": None,
        "belief": course if models else None,
        "accuracy": course if models else None,
        "curve": [1.0, 2.0, 3.0] * 5,
        "curve_interval": [[0.5, 3.5]] * 15,
        "learns": {"policy": False, "opponent_models": models},
        "steps": 2400,
        "last": 600,
        "seeds": 5,
        "seats": 4,
    }


def test_a_set_of_equal_players_is_said_once() -> None:
    assert set_name("nh,nh,nh") == "3 x nh" and set_name("nh,ns") == "nh, ns"


def test_the_table_names_what_players_predict(capsys: Any) -> None:
    print_adaptations([result("nh,nh,nh", True), result("ns,ns,ns", False)])
    printed = capsys.readouterr().out
    assert "predicted" in printed and "0.500 of" in printed and "3 x nh" in printed
    print_adaptations([result("nh,nh,nh", False)])
    assert "predicted" not in capsys.readouterr().out


def test_a_meeting_is_told_by_episode(capsys: Any) -> None:
    assert episode_groups(3) == [(0, 1), (1, 2), (2, 3)]
    assert episode_groups(17)[4:] == [(4, 5), (5, 10), (10, 17)]
    print_by_episode(result("nh,nh,nh", True))
    lines = [line.split("│")[1:] for line in capsys.readouterr().out.splitlines() if "│" in line]
    rows = {cells[0].strip(): [cell.strip() for cell in cells[1:-1]] for cells in lines}
    assert rows["2"] == ["2.00", "-", "-"]
    # Episodes 6 to 10 bring 3, 1, 2, 3, 1; of two of them nothing is known about the others.
    assert rows["6 to 10"] == ["2.00", "0.50", "0.50"]
    assert rows["best response"] == ["5.00", "", ""]


def test_pictures_have_a_panel_for_beliefs_only_if_there_are_some(tmp_path: Path) -> None:
    sizes = []
    for models in (False, True):
        draw_adaptation(tmp_path / "one.png", result("nh,nh,nh", models))
        sizes.append(Image.open(tmp_path / "one.png").size)
    assert sizes == [(900, 540), (900, 740)]
    draw_suite(tmp_path / "suite.png", [result(text, False) for text in ("nh", "ns", "nd", "x")])
    assert Image.open(tmp_path / "suite.png").size == (1350, 660)
