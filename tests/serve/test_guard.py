"""Who may ask the server."""

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from coplay.core.errors import UserError
from coplay.serve.guard import COOKIE, PAGE_POLICY, Guard, token_for

TOKEN = "a-token-of-some-length"
HERE = "http://127.0.0.1:8642"


def client(host: str = "127.0.0.1", token: str = "") -> TestClient:
    async def page(request: Request) -> PlainTextResponse:
        return PlainTextResponse("page")

    async def talk(socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_text("hello")
        await socket.close()

    app = Starlette(routes=[Route("/page", page), WebSocketRoute("/talk", talk)])
    return TestClient(Guard(app, host, token), base_url=HERE, follow_redirects=False)


def talks(client: TestClient, **headers: str) -> bool:
    """Whether a WebSocket with these headers is let in."""
    try:
        with client.websocket_connect("/talk", headers=headers) as socket:
            return socket.receive_text() == "hello"
    except WebSocketDisconnect:
        return False


def test_pages_have_a_policy() -> None:
    answer = client().get("/page")
    assert answer.text == "page" and answer.headers["content-security-policy"] == PAGE_POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("127.0.0.1:8642", 200),
        ("localhost:9000", 200),  # a tunnel
        ("[::1]:8642", 200),
        ("evil.example:8642", 403),  # a name that somebody lets lead here
        ("127.0.0.1.evil.example", 403),
        ("192.168.0.7:8642", 403),
        ("", 403),
    ],
)
def test_the_host_must_be_our_own(host: str, code: int) -> None:
    assert client().get("/page", headers={"host": host}).status_code == code


def test_on_all_addresses_numbers_and_the_own_name_are_ours() -> None:
    everywhere = client("0.0.0.0")
    for host, code in (("192.168.0.7:1", 200), ("evil.example", 403), ("localhost", 200)):
        assert everywhere.get("/page", headers={"host": host}).status_code == code


@pytest.mark.parametrize(
    ("origin", "fine"),
    [
        (HERE, True),
        ("https://evil.example", False),
        ("http://127.0.0.1:3000", False),
        ("null", False),  # a page from the folder, which has no origin
    ],
)
def test_other_origins_are_refused(origin: str, fine: bool) -> None:
    answer = client().get("/page", headers={"origin": origin})
    assert answer.status_code == (200 if fine else 403)
    assert talks(client(), origin=origin, host="127.0.0.1:8642") == fine


def test_a_websocket_must_name_its_origin_and_our_host() -> None:
    assert not talks(client(), host="127.0.0.1:8642")
    assert not talks(client(), origin="http://evil.example", host="evil.example")


def test_a_token_is_asked_for_and_leaves_the_address() -> None:
    asking = client("127.0.0.1", TOKEN)
    assert asking.get("/page").status_code == 401
    assert asking.get("/page?token=wrong").status_code == 401
    assert not talks(asking, origin=HERE, host="127.0.0.1:8642")
    given = asking.get(f"/page?a=1&token={TOKEN}")
    assert given.status_code == 303 and given.headers["location"] == "/page?a=1"
    assert "httponly" in given.headers["set-cookie"].lower()
    assert asking.cookies[COOKIE] == TOKEN
    assert asking.get("/page").status_code == 200
    scope = {"type": "http", "path": "//evil.example/", "query_string": f"token={TOKEN}".encode()}
    answer = Guard(None, "127.0.0.1", TOKEN).refusal(scope | {"headers": [(b"host", b"127.0.0.1")]})
    assert answer is not None and answer.headers["location"] == "/evil.example/"


def test_other_addresses_have_a_token() -> None:
    assert token_for("127.0.0.1") == "" and token_for("localhost", TOKEN) == TOKEN
    assert len(token_for("0.0.0.0")) > 20 and token_for("0.0.0.0") != token_for("0.0.0.0")
    with pytest.raises(UserError, match="at least 16"):
        token_for("0.0.0.0", "short")
