"""News of runs for everybody who watches: one task looks at the folder, whoever asks."""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coplay.core.errors import UserError
from coplay.reports.run_page import run_data
from coplay.serve.outbox import Outbox
from coplay.serve.shelf import Shelf
from coplay.serve.tail import Tail

INTERVAL = 1.0
"""Seconds between two looks at the folder."""
SHARE = 40
"""The data of a page is made anew only after so many times the time that it takes."""
LEAST = 2.0
"""Seconds between two versions of a page, at least."""
MOST_TICKED = 12
"""Runs that one watcher compares."""


class Watching:
    """Somebody who watches. ticked: runs whose curves of `metric` it compares. page: the run whose
    page it has open, or None. news: texts to be sent; None: it is to go."""

    def __init__(self) -> None:
        self.ticked: list[str] = []
        self.metric = "team_mean"
        self.page: str | None = None
        self.news = Outbox()


class Hub:
    """Looks at a folder as long as anybody watches.

    data: makes the data of a run's page. What all watchers get is made once.
    """

    def __init__(self, root: Path, data: Callable[[Path], dict[str, Any]] = run_data):
        self.root, self.shelf, self._data = root, Shelf(root), data
        self.watchers: set[Watching] = set()
        self._tails: dict[str, Tail] = {}
        self._pages: dict[str, tuple[float, str]] = {}  # run -> when to make it anew, and its text
        self._stale: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    async def add(self, watcher: Watching) -> None:
        """Somebody begins to watch, and is told what there is."""
        self.watchers.add(watcher)
        async with self._lock:
            await asyncio.to_thread(self.shelf.refresh)
            watcher.news.send(self._runs())
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look())

    def remove(self, watcher: Watching) -> None:
        self.watchers.discard(watcher)

    async def ask(self, watcher: Watching, asked: dict[str, Any]) -> None:
        """What a watcher wants to see from now on."""
        known = {row["name"] for row in self.shelf.rows if row["address"]}
        ticked = asked.get("ticked")
        if isinstance(ticked, list):
            names = [name for name in ticked if isinstance(name, str) and name in known]
            watcher.ticked = names[:MOST_TICKED]
        metric = asked.get("metric")
        if isinstance(metric, str):
            watcher.metric = metric
        page = asked.get("page")
        if page is None or (isinstance(page, str) and page in known):
            watcher.page = page
        async with self._lock:
            for name in watcher.ticked:
                await self._read(name)
                watcher.news.send(self._curve(name, watcher.metric))
            if watcher.page is not None:
                watcher.news.send(await self._page(watcher.page))

    async def _look(self) -> None:
        while self.watchers:
            await asyncio.sleep(INTERVAL)
            async with self._lock:
                before = {row["name"]: row for row in self.shelf.rows}
                if await asyncio.to_thread(self.shelf.refresh):
                    rows = self.shelf.rows
                    self._stale |= {row["name"] for row in rows if row != before.get(row["name"])}
                    self._tell_all(self._runs())
                await self._look_at_watched()

    async def _look_at_watched(self) -> None:
        ticked = {name for one in self.watchers for name in one.ticked}
        opened = {one.page for one in self.watchers if one.page is not None}
        self._tails = {name: self._tails[name] for name in self._tails if name in ticked | opened}
        self._pages = {name: self._pages[name] for name in self._pages if name in opened}
        for name in ticked | opened:
            if not await self._read(name):
                continue
            self._stale.add(name)
            texts: dict[str, str] = {}
            for one in self.watchers:
                if name in one.ticked:
                    if one.metric not in texts:
                        texts[one.metric] = self._curve(name, one.metric)
                    one.news.send(texts[one.metric])
        for name in opened & self._stale:
            if self._pages.get(name, (0.0, ""))[0] <= time.monotonic():
                text = await self._page(name, anew=True)
                for one in self.watchers:
                    if one.page == name:
                        one.news.send(text)

    async def _read(self, name: str) -> bool:
        if name not in self._tails:
            self._tails[name] = Tail(self.root / name / "metrics.jsonl")
        return await asyncio.to_thread(self._tails[name].read)

    def _runs(self) -> str:
        return json.dumps({"kind": "runs", "runs": self.shelf.rows, "pages": self.shelf.pages})

    def _curve(self, name: str, metric: str) -> str:
        tail = self._tails[name]
        about = {"kind": "curve", "run": name, "metric": metric, "metrics": tail.metrics}
        return json.dumps(about | tail.curve(metric))

    async def _page(self, name: str, anew: bool = False) -> str:
        """The news with the data of a run's page."""
        if not anew and name in self._pages:
            return self._pages[name][1]
        begun = time.monotonic()
        text = await asyncio.to_thread(self._page_text, name)
        now = time.monotonic()
        self._pages[name] = (now + max(LEAST, SHARE * (now - begun)), text)
        self._stale.discard(name)
        return text

    def _page_text(self, name: str) -> str:
        try:
            found: dict[str, Any] = {"data": self._data(self.root / name)}
        except UserError as error:
            found = {"wrong": str(error)}
        return json.dumps({"kind": "page", "run": name} | found)

    def _tell_all(self, text: str) -> None:
        for one in self.watchers:
            one.news.send(text)
