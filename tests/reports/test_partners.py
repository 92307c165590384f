"""Tables and the picture of partners."""

from pathlib import Path
from typing import Any

import pytest

from coplay.reports.partners import draw_companies, print_companies, print_partners


def test_a_pack_is_shown_and_what_a_file_says_is_escaped(capsys: Any) -> None:
    how = {"preference": {"stag": 0.9, "hare": 0.01}, "noise": 0.25, "change": 0.0}
    one = {"number": 0, "name": "[/red]\x1b[2J", "reward": 1.5, "steps": 7.0, "how": how}
    print_partners({"pack": "p", "game_name": "stag-hunt", "episodes": 4, "partners": [one]})
    shown = capsys.readouterr().out
    assert "[/red]\\x1b[2J" in shown and "stag 0.90; noise 0.25" in shown
    assert "hare" not in shown and "change" not in shown


def company(name: str, share: float | None) -> dict[str, Any]:
    span = None if share is None else [share - 0.1, share + 0.1]
    lines = {"random": 0.0, "best_response": None if share is None else 2.0}
    score = 1.0 if share is None else 2.0 * share
    return {
        "against": name,
        "score": score,
        "normalised": share,
        "normalised_interval": span,
        "curve": [score],
    } | lines


@pytest.mark.parametrize("shares", [[0.9, 0.4, None], [None]])
def test_companies_are_shown_from_the_worst(
    shares: list[float | None], tmp_path: Path, capsys: Any
) -> None:
    results = [company(f"x{share}", share) for share in shares]
    row = {"companies": 1, "mean": 0.65, "interval": [0.4, 0.9], "iqm": 0.65, "worst": 0.4}
    row |= {"below_half": 0.5, "below_0.8": 0.5, "first_episode": 0.65, "above_best": 1}
    every = row if shares[0] else None
    summary = {"companies": len(results), "left_out": ["xNone"], "all": every, "by_family": {}}
    found = {"player": "p", "summary": summary, "companies": results}
    families = ["rules"] * len(results)
    print_companies(found, families)
    shown = capsys.readouterr().out
    assert "1 of them are in no mean" in shown
    if every:
        places = [shown.index(name) for name in ("x0.4", "x0.9", "xNone")]
        assert places == sorted(places) and "poor reference" in shown
    draw_companies(tmp_path / "so.png", found, families)
    assert (tmp_path / "so.png").read_bytes().startswith(b"\x89PNG")
