"""The page on which people play: its routes, and the connection of each person."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from coplay.core.errors import UserError
from coplay.serve.folder import SCRIPTED_POLICY
from coplay.serve.sitting import Chair, PeoplesGame, Sitting
from coplay.serve.watching import received, script, shell, static, style

MOST_VISITORS = 100
SHARED = ("dom.js", "charts.js", "board.js", "panels.js")
Measure = Callable[[Callable[[dict[str, Any]], None], Callable[[], bool]], None]
"""(tell, stopped): measures what other players get and tells it, until it is to stop."""


def playing_app(
    game: PeoplesGame,
    replays: dict[int, str],
    allow_thinking: bool = True,
    measure: Measure | None = None,
) -> Starlette:
    """The server of a game with people. replays: pages of the games that were played, by number.
    measure: finds out what other players get, in a thread."""
    sitting = Sitting(game, allow_thinking)
    served = {
        "play.js": script(SHARED, ("live.js", "play.js")),
        "style.css": style(("replay.css",), ("play.css",)),
    }

    async def front(request: Request) -> Response:
        return shell(f"Play {game.about['game']}", "play", {})

    async def replay(request: Request) -> Response:
        page = replays.get(request.path_params["number"])
        if page is None or not allow_thinking:
            raise HTTPException(404)
        return HTMLResponse(page, headers={"Content-Security-Policy": SCRIPTED_POLICY})

    async def person(socket: WebSocket) -> None:
        if len(sitting.visitors) >= MOST_VISITORS:
            await socket.close(1013)
            return
        await socket.accept()
        await socket.send_json(game.about | {"kind": "about", "thinking": allow_thinking})
        with suppress(WebSocketDisconnect, RuntimeError):
            chair = await _seated(socket, sitting)
            if chair is not None:
                await _play(socket, sitting, chair)

    @asynccontextmanager
    async def living(app: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(_run(sitting))
        loop, stopped = asyncio.get_running_loop(), threading.Event()

        def tell(news: dict[str, Any]) -> None:
            if not stopped.is_set():
                loop.call_soon_threadsafe(sitting.tell_lasting, news)

        def begin() -> None:
            # Once, and not before the first game is over: it would slow the players down.
            sitting.after_game = lambda: None
            threading.Thread(target=measure, args=(tell, stopped.is_set), daemon=True).start()

        if measure is not None:
            sitting.after_game = begin
        yield
        stopped.set()
        task.cancel()

    return Starlette(
        routes=[
            Route("/", front),
            Route("/replay/{number:int}", replay),
            Route("/static/{name}", static(served)),
            WebSocketRoute("/seat", person),
        ],
        lifespan=living,
    )


async def _run(sitting: Sitting) -> None:
    """Play, and tell everybody if that fails."""
    try:
        await sitting.run()
    except Exception as error:
        words = f"the game stopped: {error or type(error).__name__}"
        sitting.tell_lasting({"kind": "failed", "words": words})
        raise


async def _seated(socket: WebSocket, sitting: Sitting) -> Chair | None:
    """Tell a visitor which seats are free, until it has taken one."""
    news: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    sitting.visitors.add(news.put_nowait)
    found: Chair | None = None

    async def tell() -> None:
        while True:
            await socket.send_json(await news.get())

    try:
        async with anyio.create_task_group() as tasks:
            news.put_nowait(sitting.who())
            tasks.start_soon(tell)
            while found is None:
                said = received(await socket.receive_text())
                key = said.get("key")
                if said.get("kind") != "sit" or not isinstance(key, str) or not 8 < len(key) < 80:
                    continue
                try:
                    found = sitting.sit(said.get("seat"), key)
                except UserError as error:
                    news.put_nowait({"kind": "refused", "words": str(error)})
            tasks.cancel_scope.cancel()
    except* (WebSocketDisconnect, RuntimeError):
        if found is not None:
            sitting.leave(found, found.news)
        found = None
    finally:
        sitting.visitors.discard(news.put_nowait)
    return found


async def _play(socket: WebSocket, sitting: Sitting, chair: Chair) -> None:
    """A person in a seat: what it says is heard, and what it is told is sent."""
    news = chair.news

    async def tell(scope: anyio.CancelScope) -> None:
        with suppress(WebSocketDisconnect, RuntimeError):
            await socket.send_text(json.dumps({"kind": "sat", "seat": chair.seat}))
            while (text := await news.get()) is not None:
                await socket.send_text(text)
            await socket.close(1013)
        scope.cancel()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tell, tasks.cancel_scope)
            with suppress(WebSocketDisconnect):
                while True:
                    sitting.hear(chair, received(await socket.receive_text()))
            tasks.cancel_scope.cancel()
    finally:
        sitting.leave(chair, news)
