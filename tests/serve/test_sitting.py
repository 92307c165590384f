"""People at a game: seats, choices, and what each of them is told. The game is a made-up one."""

import asyncio
import json
from typing import Any

import pytest

from coplay.core.errors import UserError
from coplay.serve import sitting as sitting_module
from coplay.serve.outbox import WAITING
from coplay.serve.sitting import Chair, Sitting


class Counting:
    """Two people and a player; three steps; the person in seat 2 leaves after the first."""

    people = (0, 2)

    def __init__(self) -> None:
        self.about = {"game": "counting", "kind": "replay"}
        self.played: list[dict[int, int]] = []
        self.games = 0

    def begin(self) -> dict[str, Any]:
        self.played, self.games = [], self.games + 1
        return {"kind": "begin", "thoughts": ["secret"]}

    def awaited(self) -> set[int]:
        return {0} if self.played else {0, 2}

    def legal(self, seat: int) -> list[int]:
        return [0, 1]

    def step(self, chosen: dict[int, int]) -> dict[str, Any]:
        self.played.append(chosen)
        return {"kind": "step", "over": len(self.played) == 3}

    def end(self) -> dict[str, Any]:
        return {"kind": "end"}

    def told(self, news: dict[str, Any], seat: int, thinking: bool) -> dict[str, Any]:
        hidden = news if thinking else {k: v for k, v in news.items() if k != "thoughts"}
        return hidden | {"for": seat}


async def next_of(chair: Chair, kind: str) -> dict[str, Any]:
    while True:
        text = await asyncio.wait_for(chair.news.get(), 60)
        assert text is not None
        if (news := json.loads(text))["kind"] == kind:
            return news


def choose(sitting: Sitting, chair: Chair, step: int, action: Any) -> None:
    sitting.hear(chair, {"kind": "choose", "step": step, "action": action})


def test_a_step_waits_for_everybody_who_is_in_the_game() -> None:
    async def play() -> None:
        game = Counting()
        sitting = Sitting(game)
        running = asyncio.create_task(sitting.run())
        one = sitting.sit(0, "first-browser")
        await asyncio.sleep(0)
        assert game.games == 0, "the game waits until all seats are taken"
        two = sitting.sit(2, "second-browser")
        assert (await next_of(one, "begin"))["for"] == 0
        await next_of(two, "begin")
        for wrong in (7, "0", None, True, 1.0):
            choose(sitting, one, 0, wrong)
        choose(sitting, one, 5, 1)
        assert sitting.chosen == {} and sitting.who()["awaited"] == [0, 2]
        choose(sitting, one, 0, 0)
        choose(sitting, one, 0, 1)  # people may change their mind
        assert sitting.who()["awaited"] == [2] and game.played == []
        choose(sitting, two, 0, 0)
        await next_of(one, "step")
        assert game.played == [{0: 1, 2: 0}]
        choose(sitting, two, 1, 0)  # it has left the game
        assert sitting.chosen == {}
        for step in (1, 2):
            choose(sitting, one, step, 0)
            await next_of(one, "step")
        await next_of(two, "end")
        sitting.hear(one, {"kind": "again"})
        assert game.games == 1, "a new game waits for everybody, too"
        sitting.hear(two, {"kind": "again"})
        await next_of(two, "begin")
        assert game.games == 2
        running.cancel()

    asyncio.run(play())


def test_thoughts_are_told_to_who_wants_them_and_may() -> None:
    async def look(allow: bool) -> list[bool]:
        sitting = Sitting(Counting(), allow)
        running = asyncio.create_task(sitting.run())
        chairs = [sitting.sit(0, "first-browser"), sitting.sit(2, "second-browser")]
        seen = ["thoughts" in await next_of(chair, "begin") for chair in chairs]
        sitting.hear(chairs[0], {"kind": "thinking", "show": True})
        if allow:
            seen.append("thoughts" in await next_of(chairs[0], "begin"))
        seen.append(chairs[0].thinking)
        running.cancel()
        return seen

    assert asyncio.run(look(True)) == [False, False, True, True]
    assert asyncio.run(look(False)) == [False, False, False]


def test_seats_are_held_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async def come_and_go() -> None:
        sitting = Sitting(Counting())
        running = asyncio.create_task(sitting.run())
        one, two = sitting.sit(0, "first-browser"), sitting.sit(2, "second-browser")
        await next_of(one, "begin")
        for seat, words in ((0, "seat 0 is taken"), (1, "no seat for"), ("0", "no seat for")):
            with pytest.raises(UserError, match=words):
                sitting.sit(seat, "third-browser")
        sitting.leave(one, one.news)
        with pytest.raises(UserError, match="taken"):
            sitting.sit(0, "third-browser")
        sitting.sit(0, "first-browser")
        assert (await next_of(one, "begin"))["for"] == 0, "who comes back sees the game"
        before = one.news
        sitting.sit(0, "first-browser")  # a second window, or a connection that broke unnoticed
        *_, last, end = [before.get_nowait() for _ in range(before.qsize())]
        assert last == '{"kind": "elsewhere"}' and end is None
        sitting.leave(one, before)
        assert one.there, "the first window cannot give the seat up any more"
        sitting.leave(one, one.news)
        monkeypatch.setattr(sitting_module, "HELD", -1.0)
        sitting.sit(0, "third-browser")
        await next_of(two, "begin")
        await next_of(two, "begin")  # somebody else begins anew
        running.cancel()

    asyncio.run(come_and_go())


def test_who_does_not_keep_up_is_sent_away() -> None:
    async def flood() -> None:
        sitting = Sitting(Counting())
        chair = sitting.sit(0, "first-browser")
        for _ in range(WAITING + 1):
            sitting.tell_who()
        assert None in [chair.news.get_nowait() for _ in range(chair.news.qsize())]

    asyncio.run(flood())
