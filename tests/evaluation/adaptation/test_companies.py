"""Companies of a pack's partners, and what is said of scores among them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coplay
from coplay.core.errors import UserError
from coplay.evaluation.adaptation.companies import companies, summarise_companies
from coplay.training.partner_packs import Pack, Partner

PARTNERS = tuple(Partner(f"rules-{n}", "rules", n, {}) for n in range(3))
PACK = Pack(Path("packs/x"), "stag-hunt", None, 7, PARTNERS)


def result(name: str, scores: list[float], best: float = 3.0, first: float = 1.0) -> dict[str, Any]:
    return {
        "against": name,
        "scores": scores,
        "random": 1.0,
        "best_response": best,
        "curve": [first, 2.0],
    }


def test_each_partner_takes_all_other_seats_and_some_are_mixed() -> None:
    found = companies(PACK, coplay.make_game("stag-hunt"), mixed=2)
    assert list(found)[1] == ",".join(["packs/x@partner=1"] * 3)
    assert list(found.values()) == ["rules"] * 3 + ["mixed"] * 2
    assert all(len(set(text.split(","))) == 3 for text in list(found)[3:])
    assert found == companies(PACK, coplay.make_game("stag-hunt"), mixed=2)
    with pytest.raises(UserError, match="4 different partners; packs/x has 3"):
        companies(PACK, coplay.make_game("stag-hunt", players=5), mixed=1)


def test_scores_over_companies() -> None:
    results = [
        result("a", [3.0, 3.0]),
        result("b", [1.5, 1.5], first=2.0),
        result("c", [2.5, 2.9]),
        result("nothing to gain", [1.0, 1.0], best=1.01),
    ]
    found = summarise_companies(results, ["rules", "rules", "selfplay", "selfplay"])
    assert found["left_out"] == ["nothing to gain"] and found["companies"] == 4
    whole = found["all"]
    assert whole["mean"] == pytest.approx((1 + 0.25 + 0.85) / 3)
    assert (whole["worst"], whole["worst_against"]) == (0.25, "b")
    assert whole["below_half"] == pytest.approx(1 / 3) == whole["below_0.8"]
    assert whole["first_episode"] == pytest.approx(0.5 / 3) and whole["above_best"] == 0
    assert found["by_family"]["selfplay"]["mean"] == pytest.approx(0.85)
    low, high = whole["interval"]
    assert 0.25 < low < whole["mean"] < high <= 1.0


def test_the_interval_is_over_companies_within_families() -> None:
    alike = [result(str(n), [2.0, 2.0]) for n in range(4)]
    assert summarise_companies(alike, ["rules"] * 4)["all"]["interval"] == [0.5, 0.5]
    # Families are strata: that they differ adds nothing.
    apart = alike + [result(str(n), [3.0, 3.0]) for n in range(4)]
    both = summarise_companies(apart, ["rules"] * 4 + ["selfplay"] * 4)["all"]
    assert both["interval"] == [0.75, 0.75]
    mixed = summarise_companies(apart, ["rules"] * 8)["all"]["interval"]
    assert np.diff(mixed) > 0.2


def test_poor_references_are_counted() -> None:
    found = summarise_companies([result("a", [4.0, 4.0])], ["rules"])
    assert found["all"]["above_best"] == 1
    unmeasured = result("a", [4.0]) | {"best_response": None}
    assert summarise_companies([unmeasured], ["rules"])["all"] is None
