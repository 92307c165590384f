"""What a folder holds, by kind."""

import json
from pathlib import Path
from typing import Any

import pytest

from coplay.cli.main import run as cli
from coplay.reports.listing import overviews
from tests.reports.test_run_page import make_run

FILES: dict[str, dict[str, Any]] = {
    "data/about.json": {"game_name": "stag-hunt", "samples": 1200, "mix": ["ns", "nh"]},
    "goals/config.json": {"part": "goals", "game_name": "stag-hunt", "data": "data"},
    "pack/pack.json": {"game_name": "harvest", "partners": [{"family": "rules"}] * 3},
    "audit/audit.json": {"verdict": "pass", "words": "all alike"},
    "adapt/settings.json": {"focal": "run", "sets": ["nh,nh,nh"], "game_name": "stag-hunt"},
    "compare/comparison.json": {"games": {"stag-hunt": {}}},
    "torn/audit.json": {"words": 3},
    "notes/other.json": {},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, data in FILES.items():
        path = tmp_path / name
        path.parent.mkdir()
        path.write_text(json.dumps(data))
    run = make_run(tmp_path / "run", seeds=1, updates=2)
    make_run(run.path / "began_with", updates=2)
    make_run(tmp_path / "pack" / "run", updates=2)
    return tmp_path


def test_every_kind_is_named(folder: Path) -> None:
    found = overviews(folder)
    runs = [row["run"] for row in found if row["kind"] == "run"]
    assert runs == [str(folder / "pack" / "run"), str(folder / "run")]
    others = {Path(row["folder"]).name: row for row in found if row["kind"] != "run"}
    assert {name: row["kind"] for name, row in others.items()} == {
        "data": "dataset",
        "goals": "model",
        "pack": "pack of partners",
        "audit": "audit",
        "adapt": "adaptation",
        "compare": "comparison",
        "torn": "audit",
    }
    assert others["data"]["words"] == "1,200 samples of ns, nh"
    assert others["pack"]["words"] == "3 partners: rules" and others["pack"]["game"] == "harvest"
    assert others["adapt"]["words"] == "run among nh,nh,nh, not finished"
    assert [name for name, row in others.items() if row["damaged"]] == ["torn"]


def test_the_command_shows_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli(["list", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "2 runs in" in shown and "pass: all alike" in shown and "damaged: " in shown
    assert cli(["list", str(folder / "data")]) == 0
    assert "0 runs" not in capsys.readouterr().out
    assert cli(["list", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == overviews(folder)
