"""The verdict of an audit."""

from coplay.evaluation.audits.checks import Audit, Check

STAGES = {"game": "the rules", "update": "new parameters"}


def audit(*checks: Check) -> Audit:
    return Audit("ppo on stag-hunt", STAGES, checks)


def test_an_audit_passes_if_all_checks_do() -> None:
    done = audit(Check("a", "game", True, ""), Check("b", "update", True, ""))
    assert done.passed and done.first_fault is None
    assert done.words == "ppo on stag-hunt: all 2 checks passed"
    assert done.as_json()["verdict"] == "pass" and done.as_json()["stage"] is None


def test_the_earliest_stage_is_at_fault_and_exact_checks_come_first() -> None:
    seen = Check("statistics", "game", False, "seats differ", exact=False)
    late = Check("exact", "update", False, "parameters differ")
    early = Check("rules", "game", False, "rules differ")
    assert audit(seen, late).first_fault is late
    assert audit(seen, late, early).first_fault is early
    words = audit(seen).words
    assert "the stage 'game' (the rules)" in words and "seats differ" in words
    assert audit(seen).as_json()["checks"][0]["passed"] is False
