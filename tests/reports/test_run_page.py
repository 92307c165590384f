"""The page of a run: its data, its text, and the page in a real browser."""

import html
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from coplay.api import training
from coplay.api.checking import check
from coplay.api.training import make_config
from coplay.cli import train
from coplay.core import files
from coplay.core.errors import UserError
from coplay.reports.run_data import command_of
from coplay.reports.run_page import KeptPage, page_of, run_data, run_page
from coplay.training.config import TrainConfig
from coplay.training.opened import OpenedRun
from coplay.training.run import RunFolder
from tests.faults.disks import FailingDisk

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
            row: dict[str, Any] = {
                "step": 8192 * update,
                "seed": seed,
                "seconds": 1.0,
                "team_mean": update + seed,
            }
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


@pytest.mark.parametrize(
    ("player", "fields"),
    [
        (
            "ppo",
            {"network.hidden": (32, 16), "value_clip": 0.3, "steps": 7, "seating": "ppo,ns,ns,nh"},
        ),
        ("ppo", {"switch": ("5:0=ns", "9:1=nh"), "game.end_after_first_hunt": 3}),
        ("hop", {"search.simulations": 4, "learn_policy": False, "goals.source": "none"}),
    ],
)
def test_the_command_trains_the_same_run(
    player: str, fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Caught(Exception):
        pass

    def catch(config: TrainConfig, *rest: Any, **more: Any) -> None:
        raise Caught(config)

    monkeypatch.setattr(training, "run_training", catch)
    config = make_config(player, "stag-hunt", {}, fields)
    _, command, *words = shlex.split(command_of(config, Path("runs/a b"), []))
    with pytest.raises(Caught) as caught:
        train.run(words)
    assert command == "train" and caught.value.args == (config,)


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
    assert len(page_of(data)) < 500_000


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


def test_a_disk_that_fails_leaves_a_whole_folder(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", updates=2)
    opened = OpenedRun(run.path)
    disk = FailingDisk()
    with files.using(disk):
        KeptPage(run, print)()
    for number in range(disk.count):
        said: list[str] = []
        with files.using(FailingDisk(number)):
            KeptPage(run, said.append)()
        assert len(said) == 1, disk.kinds[number]
        assert check(run.path)[0].whole, disk.kinds[number]
    KeptPage(run, said.append)()
    opened.close()
    assert len(said) == 1 and check(run.path)[0].whole


# --- in a browser ------------------------------------------------------------------------------

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = Path(__file__).with_name("drive_run.js")


@pytest.mark.slow
@pytest.mark.parametrize("size", ["1600,1000", "500,900"])
@pytest.mark.skipif(BROWSER is None, reason="needs a browser: the Debian package chromium")
def test_in_a_browser(tmp_path: Path, size: str) -> None:
    run = make_run(tmp_path / NAME, updates=10)
    page = run_page(run.path)
    assert page.count("})();\n</script>") == 1
    driven = page.replace("})();\n</script>", f"{DRIVER.read_text()}}})();\n</script>")
    (tmp_path / "page.html").write_text(driven)
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={size}"]
    command += [f"--user-data-dir={tmp_path / 'browser'}", "--virtual-time-budget=20000"]
    command += ["--dump-dom", f"file://{tmp_path / 'page.html'}"]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=300).stdout
    found = re.search(r'<pre id="result" hidden="">(.*?)</pre>', dom, re.S)
    assert found is not None, dom[-2000:]
    told = json.loads(html.unescape(found[1]))
    assert told["title"] == NAME and told["scripts"] == 2 and told["wide"] <= 0
    assert (told["first"], told["second"], told["last"]) == (
        "step 8.19k",
        "step 16.38k",
        "step 81.92k",
    )
    assert (told["begun"], told["final"]) == ("1.5 (1 to 2)", "10.5 (10 to 11)")
    assert (told["newest"], told["grown"]) == ("step 163.84k", "77 (77 to 77)")
    assert "999 of 81,920 steps" in told["header"] and told["redrawn"] == told["charts"] + 1
    assert (told["before"], told["after"], told["seeds"]) == ("false", "true", "true")
    assert (told["closed"], told["opened"]) == (0, 1) and told["words"].startswith("KL(old policy")
    assert told["still"], "an unfolded group stays unfolded"
    assert told["everything"] == 1 + 5 + 1 and told["nameless"] == 0
    assert set(told["links"]) == {"config.json", "metrics.jsonl"}
