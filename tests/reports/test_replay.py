"""Replays: the page, the JSON lines, and the page in a real browser."""

import base64
import gzip
import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import coplay
from coplay.matches.recording import EpisodeRecord
from coplay.reports import replay as replays
from coplay.reports.replay import Replay, ending_of
from tests.reports.thinker import Thinker

GAME = coplay.make_game("stag-hunt", height=3, width=3, players=3, hares=2, horizon=8)
NAME = "</script><script>alert(1)</script>"


@pytest.fixture(scope="module")
def replay() -> Replay:
    made = coplay.replay(GAME, [Thinker(), "ns", "nh"], episodes=2, seed=5)
    made.about["seats"][1]["player"] = NAME
    made.labels[1] = NAME
    return made


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script id="data"[^>]*>(.*?)</script>', page, re.S)
    assert found is not None
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


def test_a_page_holds_the_records_and_fetches_nothing(replay: Replay, tmp_path: Path) -> None:
    replay.write(tmp_path / "replay.html")
    page = (tmp_path / "replay.html").read_text()
    data = data_of(page)
    shown = [step["seats"] for episode in data["episodes"] for step in episode["steps"]]
    recorded = [step["seats"] for episode in replay.episodes for step in episode.steps]
    assert shown == recorded
    assert set(data["icons"]) == {"stag_icon", "hare_icon"}
    assert not re.search(r"(src|href)=|@import|url\(|fetch\(|https?://(?!www\.w3\.org/)", page)
    assert NAME not in page and html.escape(NAME) in page
    assert page.count("<script") == 2
    assert html.escape(page, quote=True) in replay._repr_html_()


def test_lines_are_what_is_the_same_then_steps_then_ends(replay: Replay, tmp_path: Path) -> None:
    replay.write(tmp_path / "replay.jsonl")
    about, *rest = map(json.loads, (tmp_path / "replay.jsonl").read_text().splitlines())
    assert about["kind"] == "replay" and about["seats"][1]["player"] == NAME
    first = replay.episodes[0]
    kinds = ["step"] * len(first.steps) + ["end"]
    assert [line["kind"] for line in rest[: len(kinds)]] == kinds
    assert len(rest[0]["board"]["players"]) == GAME.seats
    assert rest[len(first.steps)]["rewards"] == first.rewards.sum(0).tolist()


def test_surprising_episodes_come_first(replay: Replay) -> None:
    surprises = [episode.surprise for episode in replay.ordered("surprising").episodes]
    assert surprises == sorted(surprises, reverse=True)  # type: ignore
    assert [episode.number for episode in replay.ordered("played").episodes] == [0, 1]
    quiet = [episode._replace(surprise=None) for episode in replay.episodes]
    with pytest.raises(coplay.UserError, match="no player of this seating predicts"):
        Replay(GAME, replay.labels, replay.about, quiet).ordered("surprising")


def test_without_predictions_no_surprising_episode_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replays, "record_episodes", lambda *_: pytest.fail("it was played"))
    with pytest.raises(coplay.UserError, match="no player of this seating predicts"):
        coplay.replay(GAME, ["ns", "ns", "nh"], order="surprising")


def test_other_endings_are_refused() -> None:
    with pytest.raises(coplay.UserError, match=r"--out film\.avi: a replay is written as \.html"):
        ending_of(Path("film.avi"))


# --- in a browser ------------------------------------------------------------------------------

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = Path(__file__).with_name("drive_replay.js")


@pytest.mark.skipif(BROWSER is None, reason="needs a browser: the Debian package chromium")
def test_in_a_browser(replay: Replay, tmp_path: Path) -> None:
    episodes = sorted(replay.episodes, key=lambda one: not one.steps[1]["seats"][0]["alive"])
    page = Replay(GAME, replay.labels, replay.about, episodes).page()
    (tmp_path / "page.html").write_text(
        page.replace("</body>", f"<script>{DRIVER.read_text()}</script></body>")
    )
    command = [
        str(BROWSER),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--window-size=1600,1000",
    ]
    command += [f"--user-data-dir={tmp_path / 'browser'}", "--virtual-time-budget=20000"]
    command += ["--dump-dom", f"file://{tmp_path / 'page.html'}"]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
    found = re.search(r'<pre id="result">(.*?)</pre>', dom, re.S)
    assert found is not None, dom[-2000:]
    _check_told(json.loads(html.unescape(found[1])), episodes)


def _check_told(told: dict[str, Any], episodes: list[EpisodeRecord]) -> None:
    first, second = (episodes[0].steps[at]["seats"][0]["belief"][0][0] for at in (0, 1))
    assert f"{first:.2f}" in told["first"] and f"{second:.2f}" in told["second"]
    assert told["first"] != told["second"] and first != second
    assert NAME in told["title"] and told["scripts"] == 3 and told["names"] == 0
    assert told["icons"] == 3 and told["arrows"] > 0 and told["variation"] == 1
    assert told["clock"].startswith("step 1 of")
    assert (
        told["open"] and "down 8 visits · Q 1.50" in told["tree"] and "up 4 visits" in told["tree"]
    )
    everything = ["who", "beliefs", "predictions", "plan", "imagined", "world"]
    everything += ["policy", "context", "own-view"]
    assert told["thinker"] == everything and told["scripted"] == ["who", "policy", "own-view"]
    # Its plan has two actions, and it imagines that everything stays as it is.
    assert told["imagined"] == 2 and f"in 1: {GAME.action_names[1]}" in told["plans"]
    assert told["predicted"] >= told["came"] > 2, "half of everything, where it was"
    assert "0.25 predicted" in told["facts"] and 0 < told["context"] <= 2 * told["columns"]
    assert told["kept"], "an unfolded tree stays unfolded"
    assert told["end"].startswith("the end, after") and told["episode"].startswith("step 0 of")
    assert told["wide"] <= 1600
    assert told["clipped"] == 0, "numbers below a curve stand whole"
    assert told["broken"] == 0, "no action is broken within a word"
