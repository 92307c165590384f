"""News of runs: made once for all watchers, and only while somebody watches."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from coplay.serve import hub as hub_module
from coplay.serve.hub import Hub, Watching
from coplay.serve.outbox import WAITING
from tests.serve.folders import append, make_run


def told(watcher: Watching) -> list[dict[str, Any]]:
    found = []
    while not watcher.news.empty():
        text = watcher.news.get_nowait()
        assert text is not None
        found.append(json.loads(text))
    return found


async def until(watcher: Watching, kinds: set[str]) -> dict[str, Any]:
    """The last news of each kind, once there are all of them."""
    found: dict[str, Any] = {}
    while not kinds <= set(found):
        text = await asyncio.wait_for(watcher.news.get(), 60)
        assert text is not None
        news = json.loads(text)
        found[news["kind"]] = news
    return found


def test_watchers_share_one_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "INTERVAL", 0.01)
    monkeypatch.setattr(hub_module, "LEAST", 0.0)
    run = make_run(tmp_path / "a")
    append(run, 10, 1.0)
    made: list[Path] = []

    def data(folder: Path) -> dict[str, Any]:
        made.append(folder)
        return {"rows": len((folder / "metrics.jsonl").read_text().splitlines())}

    async def watch() -> None:
        hub = Hub(tmp_path, data)
        watchers = [Watching() for _ in range(5)]
        for one in watchers:
            await hub.add(one)
            await hub.ask(one, {"ticked": ["a", "../b", 3], "metric": "team_mean", "page": "a"})
        for one in watchers:
            assert [news["kind"] for news in told(one)] == ["runs", "curve", "page"]
            assert one.ticked == ["a"]
        assert made == [tmp_path / "a"]
        append(run, 20, 2.0)
        found = [await until(one, {"runs", "curve", "page"}) for one in watchers]
        assert found[0]["curve"]["steps"] == [10, 20] and found[0]["page"]["data"] == {"rows": 2}
        assert found[0]["runs"]["runs"][0]["step"] == 20
        assert all(one == found[0] for one in found) and len(made) <= 3, "made once for all"
        for one in watchers:
            hub.remove(one)
        assert hub._task is not None
        await asyncio.wait_for(hub._task, 60)

    asyncio.run(watch())


def test_who_does_not_keep_up_is_sent_away() -> None:
    watcher = Watching()
    for number in range(WAITING + 1):
        watcher.news.send(str(number))
    assert watcher.news.get_nowait() is None and watcher.news.empty()
