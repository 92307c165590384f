"""People at a game: who sits where, whose move is awaited, and what everybody is told.

The game itself is computed in a thread, so that the server answers meanwhile.
"""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any, Protocol

from coplay.core.errors import UserError
from coplay.serve.outbox import Outbox

HELD = 30.0
"""Seconds for which the seat of somebody who is gone is kept free for them."""
PAUSE = 0.4
"""Seconds between two steps when nobody is left to choose."""


class PeoplesGame(Protocol):
    """What a sitting needs of a game; `coplay.serve.table` has it."""

    people: tuple[int, ...]

    @property
    def about(self) -> dict[str, Any]: ...
    def begin(self) -> dict[str, Any]: ...
    def awaited(self) -> set[int]: ...
    def legal(self, seat: int) -> list[int]: ...
    def step(self, chosen: dict[int, int]) -> dict[str, Any]: ...
    def end(self) -> dict[str, Any]: ...
    def told(self, news: dict[str, Any], seat: int, thinking: bool) -> dict[str, Any]: ...


class Chair:
    """A seat for a person. key: the browser that holds it; empty: nobody. there: it is connected.
    since: when it went. thinking: the person sees what the others think. ready: for a new game."""

    def __init__(self, seat: int) -> None:
        self.seat = seat
        self.key = ""
        self.there = False
        self.since = 0.0
        self.thinking = False
        self.ready = False
        self.news = Outbox()

    def is_free(self, key: str) -> bool:
        """Whether a browser may sit here: nobody does, it has the seat itself, or whoever had it
        has been gone for long."""
        if not self.key or self.key == key:
            return True
        return not self.there and time.monotonic() - self.since > HELD


class Sitting:
    """One game after the other with the same people.

    allow_thinking: people may see what the others think. after_game: is called after each game.
    """

    def __init__(self, game: PeoplesGame, allow_thinking: bool = True):
        self.game, self.allow_thinking = game, allow_thinking
        self.chairs = {seat: Chair(seat) for seat in game.people}
        self.visitors: set[Callable[[dict[str, Any]], None]] = set()
        self.chosen: dict[int, int] = {}
        self.news: list[dict[str, Any]] = []  # of the present game, for who comes back
        self.lasting: dict[str, dict[str, Any]] = {}
        self.playing = False
        self.after_game: Callable[[], None] = lambda: None
        self._moved = asyncio.Event()
        self._restart = False

    # --- who sits where ------------------------------------------------------------------------

    def sit(self, seat: Any, key: str) -> Chair:
        """Take a seat; an error if somebody else has it."""
        chair = self.chairs.get(seat) if isinstance(seat, int) else None
        if chair is None:
            raise UserError("that is no seat for a person")
        if not chair.is_free(key):
            raise UserError(f"seat {seat} is taken")
        if chair.key != key:
            self._restart = bool(chair.key)  # the game of somebody else is not gone on with
            chair.thinking, chair.ready = False, True
        if chair.there:
            chair.news.send(json.dumps({"kind": "elsewhere"}))
            chair.news.send(None)
        chair.key, chair.there = key, True
        chair.news = Outbox()
        for news in (*self.news, *self.lasting.values()):
            self._tell(chair, news)
        self.tell_who()
        self._moved.set()
        return chair

    def leave(self, chair: Chair, news: Any) -> None:
        """A connection is gone. news: what it was told by; another one may have taken over."""
        if chair.news is not news:
            return
        chair.there, chair.since = False, time.monotonic()
        self.tell_who()
        self._moved.set()

    def who(self) -> dict[str, Any]:
        """The seats for people, and whose choice is awaited."""
        awaited = sorted(self.game.awaited() - set(self.chosen)) if self.playing else []
        return {
            "kind": "who",
            "seats": [
                {"seat": chair.seat, "taken": chair.there, "ready": chair.ready}
                for chair in self.chairs.values()
            ],
            "awaited": awaited,
        }

    def tell_who(self) -> None:
        for chair in self.chairs.values():
            self._tell(chair, self.who())
        for visitor in self.visitors:
            visitor(self.who())

    # --- what people say -----------------------------------------------------------------------

    def hear(self, chair: Chair, said: dict[str, Any]) -> None:
        """A choice, a wish to see thoughts, or a wish for a new game."""
        kind = said.get("kind")
        if kind == "choose" and self.playing and said.get("step") == self._step():
            action, seat = said.get("action"), chair.seat
            may = seat in self.game.awaited() and action in self.game.legal(seat)
            if may and type(action) is int:
                self.chosen[seat] = action
                self.tell_who()
                self._moved.set()
        elif kind == "thinking" and self.allow_thinking:
            chair.thinking = said.get("show") is True
            for news in self.news:
                self._tell(chair, news)
        elif kind == "again" and not self.playing:
            chair.ready = True
            self.tell_who()
            self._moved.set()

    def _step(self) -> int:
        return sum(news["kind"] == "step" for news in self.news)

    def _tell(self, chair: Chair, news: dict[str, Any]) -> None:
        if not chair.there:
            return
        told = self.game.told(news, chair.seat, chair.thinking and self.allow_thinking)
        chair.news.send(json.dumps(told))

    def _tell_all(self, news: dict[str, Any]) -> None:
        self.news.append(news)
        for chair in self.chairs.values():
            self._tell(chair, news)

    # --- the game ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Play one game after the other, for ever."""
        while True:
            await self._until(lambda: all(c.there and c.ready for c in self.chairs.values()))
            await self._one_game()

    async def _one_game(self) -> None:
        self._restart, self.chosen, self.news = False, {}, []
        begun = await asyncio.to_thread(self.game.begin)
        self.playing = True
        self._tell_all(begun)
        self.tell_who()
        over = False
        while not over:
            await self._until(lambda: self._restart or self.game.awaited() <= set(self.chosen))
            if self._restart:
                self.playing = False
                return
            if not self.game.awaited():
                await asyncio.sleep(PAUSE)
            chosen, self.chosen = self.chosen, {}
            self.playing = False  # what is chosen now would be for a step that is being played
            news = await asyncio.to_thread(self.game.step, chosen)
            over = news["over"]
            self.playing = not over
            self._tell_all(news)
            if not over:
                self.tell_who()
        for chair in self.chairs.values():
            chair.ready = False
        self._tell_all(await asyncio.to_thread(self.game.end))
        self.tell_who()
        self.after_game()

    async def _until(self, met: Callable[[], bool]) -> None:
        while not met():
            self._moved.clear()
            await self._moved.wait()

    def tell_lasting(self, news: dict[str, Any]) -> None:
        """Something that is true of all games, such as what other players get. It replaces what
        was told of its kind."""
        self.lasting[news["kind"]] = news
        for chair in self.chairs.values():
            self._tell(chair, news)
