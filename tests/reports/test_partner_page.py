"""The page of a pack shows everything, and what a file says as text."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from coplay.reports import charts, partner_page
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


@pytest.mark.parametrize("rows", [1, 4, 40])
def test_the_words_beside_a_bar_of_colours_are_whole(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(charts, "save", lambda figure, path: drawn.append(figure))
    names = [f"rules-{number}" for number in range(rows)]
    columns = ["hunt hare (share of actions)", "reward"]
    values = np.arange(2.0 * rows).reshape(rows, 2)
    partner_page._heat(Path("p.png"), values, names, columns, "standard deviations")
    canvas = FigureCanvasAgg(drawn[0])
    canvas.draw()
    words = drawn[0].axes[-1].yaxis.label.get_window_extent(canvas.get_renderer())
    assert words.y0 >= 0 and words.y1 <= drawn[0].bbox.height and words.x1 <= drawn[0].bbox.width
    assert len(drawn[0].axes[0].texts) == (2 * rows if rows <= partner_page.MOST_NUMBERS else 0)
