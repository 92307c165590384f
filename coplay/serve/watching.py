"""The pages on which people watch runs: the list, a run's page, and the news for both."""

import html
import json
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from coplay.core.reading import shown_in_line
from coplay.reports.page import web_text
from coplay.serve.folder import address_of, file_response, inside
from coplay.serve.hub import Hub, Watching

MOST_WATCHERS = 200
CHARTS = ("vendor/uPlot.iife.min.js", "dom.js", "plots.js")
STYLES = ("vendor/uPlot.min.css", "frame.css", "run.css")


def watching_app(root: Path) -> Starlette:
    """The server of a folder of runs."""
    hub = Hub(root)
    served = {
        "list.js": script(CHARTS, ("live.js", "list.js")),
        "run.js": script((*CHARTS, "run.js"), ("live.js", "live_run.js")),
        "style.css": style(STYLES, ("serve.css",)),
    }

    async def front(request: Request) -> Response:
        return shell(f"Runs in {root.name}", "list", {"folder": root.name})

    async def run(request: Request) -> Response:
        name = request.path_params["name"]
        if name and not name.endswith("/"):
            if (inside(root, name) / "config.json").is_file():
                return RedirectResponse(f"{address_of(name)}/", 307)
            return file_response(root, name)
        folder = inside(root, name[:-1]) if name else root
        if not (folder / "config.json").is_file():
            raise HTTPException(404)
        return shell(folder.resolve().name, "run", {"name": name[:-1]})

    async def live(socket: WebSocket) -> None:
        if len(hub.watchers) >= MOST_WATCHERS:
            await socket.close(1013)
            return
        await socket.accept()
        watcher = Watching()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_send, socket, watcher, tasks.cancel_scope)
                await hub.add(watcher)
                with suppress(WebSocketDisconnect):
                    while True:
                        await hub.ask(watcher, received(await socket.receive_text()))
                tasks.cancel_scope.cancel()
        finally:
            hub.remove(watcher)

    return Starlette(
        routes=[
            Route("/", front),
            Route("/run/{name:path}", run),
            Route("/static/{name}", static(served)),
            WebSocketRoute("/live", live),
        ]
    )


async def _send(socket: WebSocket, watcher: Watching, scope: anyio.CancelScope) -> None:
    """Send what a watcher is told, until it goes or is sent away."""
    with suppress(WebSocketDisconnect, RuntimeError):
        while (text := await watcher.news.get()) is not None:
            await socket.send_text(text)
        await socket.close(1013)
    scope.cancel()


# --- what pages are made of --------------------------------------------------------------------


def received(text: str) -> dict[str, Any]:
    """What a browser sent; an empty object for what is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def own_text(name: str) -> str:
    """A file of `coplay/serve/web`."""
    return (files("coplay.serve") / "web" / name).read_text(encoding="utf-8")


def script(shared: tuple[str, ...], own: tuple[str, ...]) -> str:
    """Scripts of `coplay/reports/web` and of the server as one, whose names nobody else sees."""
    parts = [*map(web_text, shared), *map(own_text, own)]
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "\n})();\n"


def style(shared: tuple[str, ...], own: tuple[str, ...]) -> str:
    return "\n".join([*map(web_text, shared), *map(own_text, own)])


def static(served: dict[str, str]) -> Any:
    """Answers with the scripts and styles of the server, by name."""

    async def answer(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in served:
            raise HTTPException(404)
        kind = "text/javascript" if name.endswith(".js") else "text/css"
        return Response(served[name], media_type=kind)

    return answer


def shell(title: str, page: str, about: dict[str, str]) -> Response:
    """A page without content: its script fetches and draws it. about: what the script is told."""
    told = "".join(f' data-{name}="{html.escape(value)}"' for name, value in about.items())
    template = Template(own_text("shell.html"))
    words = html.escape(shown_in_line(title))
    return HTMLResponse(template.substitute(title=words, page=page, told=told))
