"""Starting the server: the address, the token, and the words that tell a user where to look."""

import socket
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from coplay.core.errors import UserError
from coplay.core.reading import reason
from coplay.serve.guard import Guard, token_for

LONGEST_MESSAGE = 1 << 16
"""Bytes of a message from a browser."""


def listening(host: str, port: int) -> socket.socket:
    """A socket on an address; an error if it cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except (OSError, OverflowError) as error:
        made.close()
        raise UserError(
            f"cannot listen on {host}, port {port}: {reason(error)}; choose another --port or "
            "--host"
        ) from error
    return made


def address(host: str, port: int, token: str = "") -> str:
    """What a user opens in a browser."""
    name = "localhost" if host in ("0.0.0.0", "::") else host
    name = f"[{name}]" if ":" in name else name
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")


def server(app: ASGIApp, host: str, token: str) -> uvicorn.Server:
    """The server of an application, guarded."""
    return uvicorn.Server(
        uvicorn.Config(
            Guard(app, host, token),
            log_level="critical",  # whoever presses Ctrl-C twice sees no traceback
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="websockets-sansio",
            ws_max_size=LONGEST_MESSAGE,
            ws_per_message_deflate=False,
            timeout_graceful_shutdown=1,
        )
    )


def serve(
    app: ASGIApp, host: str, port: int, token: str, say: Callable[[str], None] = print
) -> None:
    """Serve until somebody presses Ctrl-C. say: is told the address."""
    token = token_for(host, token)
    bound = listening(host, port)
    say(f"open {address(host, bound.getsockname()[1], token)}   (Ctrl-C stops)")
    if token:
        say("whoever has this address may look and play: give it to nobody else")
    server(app, host, token).run(sockets=[bound])
