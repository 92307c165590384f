"""The server in a real browser: live curves, a person's moves, two people, a stranger's page."""

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import coplay
from coplay.matches.dataset import load_dataset
from coplay.serve.start import game_app
from coplay.serve.watching import watching_app
from tests.reports.thinker import Thinker
from tests.serve.browser import CHROMIUM, browsing, opened, serving
from tests.serve.folders import append, make_run

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="needs a browser: the Debian package chromium"),
    pytest.mark.skipif(
        importlib.util.find_spec("playwright") is None, reason="needs the package playwright"
    ),
]

NAME = "<script>alert(1)<"
STRANGER = """<p id="told">nothing</p><script>
const told = [];
const say = (words) => {
  told.push(words);
  document.getElementById("told").textContent = told.sort().join(" ");
};
fetch("/").then(() => say("fetched"), () => say("no-fetch"));
try {
  const socket = new WebSocket(location.href.replace("http", "ws").replace(/run.*/, "live"));
  socket.onopen = () => say("socket");
  socket.onerror = () => say("no-socket");
} catch { say("no-socket"); }
try { sessionStorage.a = 1; say("storage"); } catch { say("no-storage"); }
</script>"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing() as started:
        yield started


def test_curves_grow_while_they_are_watched(browser: Any, tmp_path: Path) -> None:
    runs = make_run(tmp_path / "first"), make_run(tmp_path / NAME)
    for run in runs:
        append(run, 10, 1.0, 2.0, **{"reward/seat_0": 1.0})
        append(run, 20, 2.0, 3.0, **{"reward/seat_0": 1.5})
    (tmp_path / "stranger.html").write_text(STRANGER)
    with serving(watching_app(tmp_path)) as where:
        page = opened(browser, where)
        page.wait_for_selector(".runs tbody tr >> nth=1")
        assert NAME in page.inner_text(".runs")
        for number in range(2):
            page.locator(".runs input").nth(number).press("Space")
        legend = page.locator("#compared .legend")
        legend.get_by_text("first").wait_for()
        assert "step 20" in legend.inner_text() and NAME in legend.inner_text()
        append(runs[0], 200, 4.0, 5.0, **{"reward/seat_0": 2.0})
        legend.get_by_text("step 200").wait_for()
        assert "4.5 (4 to 5)" in legend.inner_text()
        page.get_by_text("200 of 1,000").wait_for()
        page.select_option("#metric", "reward/seat_0")
        legend.get_by_text("2 (2 to 2)").wait_for()
        page.fill("#filter", "script")
        page.get_by_text("1 of 2 runs").wait_for()
        assert page.locator(".runs tbody tr").count() == 1

        page.click(".runs a")
        page.get_by_text("20 of 1,000 steps").wait_for()
        append(runs[1], 300, 4.0, 5.0, **{"reward/seat_0": 2.0})
        page.get_by_text("300 of 1,000 steps").wait_for()
        assert page.locator("h1").inner_text() == NAME and page.locator("canvas").count() > 0
        assert page.wrong == []

        page.goto(f"{where}run/stranger.html")
        page.get_by_text("no-fetch no-socket no-storage").wait_for()


def game(players: int) -> Any:
    return coplay.make_game("stag-hunt", height=3, width=3, players=players, hares=2, horizon=3)


def test_a_person_plays_and_is_recorded(browser: Any, tmp_path: Path) -> None:
    played, out = game(2), tmp_path / "data" / "human"
    coplay.register_player("browser-thinker", Thinker())
    entries = ["browser-thinker", "human"]
    app = game_app(played, played.name, played.config, entries, 3, out)
    with serving(app) as where:
        page = opened(browser, where, viewport={"width": 400, "height": 900})
        page.get_by_text("The game is recorded").wait_for()
        assert str(out) in page.inner_text(".recorded")
        page.get_by_role("button", name="take seat 1").press("Enter")
        page.get_by_text("Your move.").wait_for()
        assert page.locator("#beliefs").count() == 0
        page.get_by_label("show what the others think").check()
        page.locator("#beliefs").wait_for()
        assert page.locator("#imagined .pair").count() > 0
        assert page.locator(".board .arrow").count() > 0
        chosen = []
        while page.locator("#end").count() == 0:
            button = page.locator(".actions button:not([disabled])").first
            chosen.append(int(button.get_attribute("data-action")))
            # The first move by its key, the others by the mouse.
            if len(chosen) == 1:
                name = button.locator("kbd").inner_text()
                keys = {"→": "ArrowRight", "←": "ArrowLeft", "↓": "ArrowDown", "↑": "ArrowUp"}
                page.keyboard.press(keys.get(name, "Space" if name == "space" else name))
            else:
                button.click()
            page.locator("#end, #status:text-is('Your move.')").first.wait_for()
        page.locator("#beside").wait_for()
        page.get_by_text("In your seat, with the same co-players").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        page.keyboard.press("Enter")
        page.get_by_text("Your move.").wait_for()
        assert page.wrong == []
    dataset = load_dataset(out)
    assert dataset.kinds == ("browser-thinker", "human")
    length = int(dataset.episodes.length[0])
    assert dataset.episodes.action[0, :length, 1].tolist()[: len(chosen)] == chosen


@pytest.mark.slow
def test_two_people_in_two_seats(browser: Any) -> None:
    played = game(3)
    entries = ["human", "random", "human"]
    app = game_app(played, played.name, played.config, entries, 0, None)
    with serving(app) as where:
        one, two = opened(browser, where), opened(browser, where)
        one.get_by_text("Nothing of the game is recorded.").wait_for()
        one.click("text=take seat 0")
        one.get_by_text("Waiting for a person in seat 2.").wait_for()
        two.get_by_text("seat 0 is taken").wait_for()
        two.click("text=take seat 2")
        for page in (one, two):
            page.get_by_text("Your move.").wait_for()
        one.locator(".actions button:not([disabled])").first.click()
        one.get_by_text("Waiting for seat 2.").wait_for()
        assert "so far" in two.inner_text(".seats") and "Your move." in two.inner_text("#status")
        two.locator(".actions button:not([disabled])").first.click()
        for page in (one, two):
            did = page.locator(".seats tr").nth(2).locator("td").nth(1)
            did.filter(has_text=re.compile(r"\w")).wait_for()
        one.reload()
        one.get_by_text("Your move.").wait_for()
        assert one.locator("text=take seat").count() == 0, "the seat is kept over a reload"
        assert one.wrong == [] and two.wrong == []
