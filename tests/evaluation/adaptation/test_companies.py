"""Companies of a pack's partners, and what is said of scores among them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coplay
from coplay.algorithms.rules import RuleParameters, draw_rules
from coplay.core.errors import UserError
from coplay.evaluation.adaptation.companies import (
    Known,
    companies,
    known_to,
    summarise_companies,
    were_met,
)
from coplay.games.stag_hunt import StagHuntConfig
from coplay.training.partner_packs import FamilyData, Pack, Partner, pack_checksum, write_pack

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


def test_a_gain_within_its_error_does_not_count() -> None:
    noisy = result("noisy", [2.0, 2.0]) | {"references_stderr": 0.7}
    sure = result("sure", [2.0, 2.0]) | {"references_stderr": 0.6}
    found = summarise_companies([noisy, sure], ["rules", "rules"])
    assert found["left_out"] == ["noisy"] and found["all"]["companies"] == 1


def test_families_that_a_player_knows_stand_apart() -> None:
    names = ["rules", "diverse", "mixed"]
    results = [result(name, [2.0 + number]) for number, name in enumerate(names)]
    found = summarise_companies(results, names, known=Known(frozenset({"rules"})))
    assert found["sides"] == {"in_family": ["rules"], "out_of_family": ["diverse"]}
    assert (found["in_family"]["mean"], found["out_of_family"]["mean"]) == (0.5, 1.0)


def test_partners_of_the_training_are_recognised(tmp_path: Path) -> None:
    config = StagHuntConfig(height=3, width=3, players=2, hares=2)
    packs = {}
    for name, seed in (("train", 0), ("other", 1)):
        drawn = draw_rules(coplay.make_game("stag-hunt"), 2, seed)
        arrays = RuleParameters(*(np.asarray(x, np.float32) for x in drawn))
        data = {"rules": FamilyData(arrays, [{}, {}])}
        packs[name] = write_pack(tmp_path / name, "stag-hunt", config, seed, data)
    run = tmp_path / "run"
    run.mkdir()
    sets = [pack.entry(0) for pack in packs.values()]

    def says(**stated: Any) -> list[bool]:
        (run / "config.json").write_text(json.dumps({"player": "ppo"} | stated))
        return were_met(sets, known_to(str(run)))

    path = str(packs["train"].folder)
    right = {"path": path, "checksum": pack_checksum(Path(path))}
    assert says(partners=right) == [True, False]
    assert known_to(f"{run}@best").families == {"rules"}
    # A pack that was changed since, and runs that say nothing.
    assert says(partners=right | {"checksum": "0"}) == says() == [False, False]
    assert known_to(str(run)).families == {"rules", "selfplay"}
    says(player="hop")
    assert "rewards" in known_to(str(run)).families and known_to("ns").partners == frozenset()
    with pytest.raises(UserError, match="neither below the current folder"):
        says(partners={"path": "/etc", "checksum": ""})
