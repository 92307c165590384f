"""The page of a run: its data, its text, and the page in a real browser."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from coplay.api.training import make_config
from coplay.core.errors import UserError
from coplay.reports.run_page import KeptPage, run_data, run_page, write_run_page
from coplay.training.run import RunFolder

NAME = "<script>alert(1)<"


def make_run(folder: Path, seeds: int = 2, updates: int = 30, **fields: Any) -> RunFolder:
    """A folder as a run of ppo leaves it after some updates."""
    run = RunFolder(folder)
    config = make_config("ppo", "stag-hunt", {}, {"steps": 8192 * updates, "seeds": seeds} | fields)
    run.path.mkdir(parents=True)
    run.write_config(config)
    rows = []
    for update in range(1, updates + 1):
        for seed in range(seeds):
            row = {"step": 8192 * update, "seed": seed, "seconds": 1.0, "team_mean": update + seed}
            row |= {"episodes": 9, "steps_per_second": 5}
            for seat in range(4):
                row |= {f"reward/seat_{seat}": update + seat, f"kl/seat_{seat}": 0.125 * seat}
                row |= {f"action_stay/seat_{seat}": 0.5, f"opponent_top1/seat_{seat}": 0.75}
                row |= {f"mine{NAME}/seat_{seat}": None if update < 3 else 2.0}
            rows.append(json.dumps(row) + "\n")
    run.metrics_file.write_text("".join(rows))
    return run


def data_of(page: str) -> dict[str, Any]:
    (found,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)
    return json.loads(found)


def test_data_holds_curves_groups_and_how_it_was_made(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", **{"optimiser.learning_rate": 0.002, "game.hares": 2})
    data = run_data(run.path)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert (data["step"], data["steps"], data["finished"]) == (245_760, 245_760, False)
    assert (data["seeds"], data["seats"], data["notes"]) == ([0, 1], 4, [])
    curve = data["curve"]
    assert len(curve["steps"]) == 30 and curve["team"]["mean"][:2] == [1.5, 2.5]
    assert (curve["team"]["low"][0], curve["team"]["high"][0]) == (1, 2)
    assert curve["seats"][3]["mean"][-1] == 33 and curve["seeds"][1][0] == 2
    groups = {group["title"]: group for group in data["groups"]}
    assert set(groups) == {
        "Every run",
        "Updates of the policy",
        "Opponent model",
        "Other metrics",
    }
    assert groups["Opponent model"]["model"] and not groups["Every run"]["model"]
    (kl,) = groups["Updates of the policy"]["metrics"]
    assert kl["name"] == "kl" and kl["words"].startswith("KL(old policy")
    assert kl["curves"][2]["mean"] == [0.25] * 30
    (top1,) = groups["Opponent model"]["metrics"]
    assert [curve["label"] for curve in top1["curves"]] == ["all seats"]
    assert "team_mean" not in str(data["groups"])
    changed = {field["path"]: field["value"] for field in data["made"]["fields"]}
    assert changed == {
        "game.hares": 2,
        "optimiser.learning_rate": 0.002,
        "steps": 245_760,
        "seeds": 2,
    }


def test_a_page_fetches_nothing_and_reads_no_text_as_html(tmp_path: Path) -> None:
    run = make_run(tmp_path / NAME)
    page = run_page(run.path)
    assert data_of(page) == run_data(run.path)
    assert page.count("<script") == 2 and NAME not in page
    own = page.replace("https://github.com/leeoniya/uPlot", "")
    assert not re.search(
        r"(src|href)=|@import|url\(|fetch\(|XMLHttp|https?://(?!www\.w3\.org/)", own
    )


def test_a_long_run_makes_a_small_page(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=10, updates=500)
    data = run_data(run.path)
    assert len(data["curve"]["steps"]) == 200 and data["curve"]["rows"] == 5000
    assert len(run_page(run.path)) < 500_000


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no run"):
        run_data(tmp_path)
    run = make_run(tmp_path / "run", seeds=1, updates=2)
    stated = json.loads(run.config_file.read_text())
    run.config_file.write_text(json.dumps(stated | {"player": "mine", "loads": ["mine.py"]}))
    run.summary_file.write_text("{}")
    data = run_data(run.path)
    assert data["player"] == "mine" and data["made"]["command"] is None
    assert any("--load mine.py" in note for note in data["notes"])
    assert any("summary.json" in note for note in data["notes"])
    assert {"path": "steps", "value": 16384, "default": None} in data["made"]["fields"]
    assert data["curve"]["team"]["mean"] == [1, 2]


def test_a_page_that_cannot_be_written_does_not_stop_a_run(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", updates=2)
    said: list[str] = []
    kept = KeptPage(run, said.append)
    kept()
    assert (run.path / "index.html").exists() and not said
    (run.path / "index.html").unlink()
    kept()
    assert not (run.path / "index.html").exists(), "not again so soon"
    kept.next = 0.0
    run.config_file.write_text("{}")
    kept()
    kept()
    assert len(said) == 1 and said[0].startswith("note: no page of the run: ")


def test_a_page_elsewhere(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", updates=2)
    out = tmp_path / "page.html"
    assert write_run_page(run.path, out) == out and out.exists()
    assert not (run.path / "index.html").exists()
