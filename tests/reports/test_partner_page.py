"""The page of a pack shows everything, and what a file says as text."""

from pathlib import Path
from typing import Any

from coplay.reports.partner_page import write_partner_page


def partner(number: int, family: str, how: dict[str, Any]) -> dict[str, Any]:
    name = f"<b>{family}-{number}"
    return {"number": number, "name": name, "family": family, "reward": 1.0, "steps": 2.0} | {
        "how": how
    }


def test_a_page_of_a_whole_pack(tmp_path: Path) -> None:
    evidence = {"curve": [1.0, 2.0, "x"], "settled": True}
    found = {
        "pack": "packs/<i>",
        "game_name": "stag-hunt",
        "seed": 0,
        "episodes": 32,
        "seconds": {"rules": 3.0},
        "partners": [
            partner(0, "rules", {"preference": {"stag": 0.9, "bad": "x"}}),
            partner(1, "diverse", {"matrix": [0.25]}),
        ],
        "feature_names": ["reward", "moved"],
        "features": [[1.0, 2.0], [3.0, 2.0]],
        "matrix": {"partners": ["a", "b"], "reward": [[1.0, 2.0], [3.0, 4.0]]},
        "responses": {"a": {"reward": 2.5, "stderr": 0.1, "by": "search", "evidence": evidence}},
        "selection": {"parts": {"train": {"partners": ["a"], "gains": [0.75]}}},
    }
    path = write_partner_page(tmp_path / "page", found)
    text = path.read_text()
    assert "<b>" not in text and "<i>" not in text and "&lt;b&gt;rules-0" in text
    for words in ("rules 3 s", "stag 0.90", "0.25", "2.500 ± 0.100", "search", "0.75"):
        assert words in text, words
    pictures = {path.name for path in (tmp_path / "page").glob("*.png")}
    assert pictures == {"behaviour.png", "cross.png", "responses.png"}


def test_a_page_without_selection_and_responses(tmp_path: Path) -> None:
    found: dict[str, Any] = {
        "pack": "p",
        "game_name": "g",
        "seed": 0,
        "episodes": 32,
        "seconds": {},
        "partners": [partner(0, "rules", {})],
        "feature_names": ["reward"],
        "features": [[1.0]],
        "matrix": None,
        "responses": {},
        "selection": None,
    }
    text = write_partner_page(tmp_path, found).read_text()
    assert "answers whom" not in text and "Selection" not in text
