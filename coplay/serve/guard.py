"""Who may ask the server, and what browsers may do with its answers.

A page of somebody else can make a browser send requests to this machine. So every request and
every WebSocket must name this server (`Host`), and must not come from another page (`Origin`).
"""

import hmac
import ipaddress
import secrets
import socket
from collections.abc import MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from coplay.core.errors import UserError

LOCAL = ("localhost", "127.0.0.1", "::1")
EVERYWHERE = ("0.0.0.0", "::")
SHORTEST_TOKEN = 16
COOKIE = "coplay-token"

PAGE_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
"""What a page of the server may load: its own scripts and data, nothing from elsewhere."""

HEADERS = {
    "Content-Security-Policy": PAGE_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Lets a request through to `app` if it names this server, comes from no other page, and has
    the token where there is one.

    host: the address that the server listens on. token: empty: none is asked for.
    """

    def __init__(self, app: ASGIApp, host: str, token: str = ""):
        self.app, self.host, self.token = app, host, token
        self.names = own_names(host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        answer = self.refusal(scope)
        if answer is None:
            await self.app(scope, receive, _with_headers(send))
        elif scope["type"] == "http":
            await answer(scope, receive, _with_headers(send))
        else:
            # Closed before it is accepted: the browser gets status 403.
            await send({"type": "websocket.close", "code": 1008})

    def refusal(self, scope: Scope) -> Response | None:
        """The answer to a request that is not let through; None: it is."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or not self.is_own(host):
            return _refused("this server does not go by that name (Host)")
        origin = headers.get("origin")
        if origin is None:
            # Browsers always send it with a WebSocket.
            if scope["type"] == "websocket":
                return _refused("a WebSocket must say where it comes from (Origin)")
        elif origin not in (f"http://{host}", f"https://{host}"):
            return _refused("another page may not ask this server (Origin)")
        return self._without_token(scope, headers) if self.token else None

    def is_own(self, host: str) -> bool:
        """Whether a `Host` header names this server. Any port is fine: a tunnel has another one."""
        name = _name_of(host)
        if name in self.names:
            return True
        # A name of somebody else may lead to this machine. A number cannot be led elsewhere.
        return self.host in EVERYWHERE and _is_number(name)

    def _without_token(self, scope: Scope, headers: Headers) -> Response | None:
        given = parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
        in_address = [value for name, value in given if name == "token"]
        if scope["type"] == "http" and in_address and _same(in_address[0], self.token):
            # The token does not stay in the address, where it would be copied along.
            rest = urlencode([(name, value) for name, value in given if name != "token"])
            # One slash: an address that begins with two would lead to another server.
            path = "/" + scope["path"].lstrip("/\\")
            answer = RedirectResponse(path + (f"?{rest}" if rest else ""), 303)
            answer.set_cookie(COOKIE, self.token, httponly=True, samesite="lax")
            return answer
        if _same(_cookie(headers.get("cookie", "")), self.token):
            return None
        return PlainTextResponse("open the address with ?token=… that coplay serve printed", 401)


def own_names(host: str) -> set[str]:
    """The names that a server on an address goes by."""
    names = {host.lower()}
    if host in LOCAL or host in EVERYWHERE:
        names |= set(LOCAL)
    if host in EVERYWHERE:
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    return names


def token_for(host: str, given: str = "") -> str:
    """The token that a server on an address asks for: the given one, or on other addresses than
    this machine's own a fresh one; empty: none."""
    if given and (len(given) < SHORTEST_TOKEN or not given.isascii() or not given.isprintable()):
        raise UserError(
            f"--token needs at least {SHORTEST_TOKEN} letters and digits; leave it out, and one "
            "is made"
        )
    if given or host in LOCAL:
        return given
    return secrets.token_urlsafe(24)


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=_raw(message))
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending


def _raw(message: Message) -> MutableMapping[str, Any]:
    message.setdefault("headers", [])
    return message


def _refused(words: str) -> Response:
    return PlainTextResponse(words, 403)


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())


def _cookie(text: str) -> str:
    try:
        found = SimpleCookie(text).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def _name_of(host: str) -> str:
    """The name in `name:port` or `[number]:port`."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
