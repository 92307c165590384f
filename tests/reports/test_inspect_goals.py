"""Pictures of goals also where a kind of player is never recognised."""

from pathlib import Path

from coplay.reports.inspect_goals import _draw_probe


def test_kinds_that_are_never_known_have_no_bar(tmp_path: Path) -> None:
    rows = [{"step": step, "samples": 100, "probe": 0.5, "filter": 0.6} for step in range(3)]
    never = {"steps": None, "share": 0.0}
    known = {"ns": {"probe": never, "filter": never}, "nh": {"probe": never, "filter": None}}
    _draw_probe(tmp_path / "probe.png", rows, known)
    assert (tmp_path / "probe.png").stat().st_size > 1000
