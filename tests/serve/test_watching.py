"""The pages of a folder of runs, as a browser asks for them."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from coplay.serve.guard import Guard
from coplay.serve.watching import watching_app
from tests.serve.folders import append, make_run

HERE = "http://127.0.0.1:8642"
NAME = "<script>alert(1)<"


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    root = tmp_path / "runs"
    append(make_run(root / NAME), 10, 1.0, 2.0)
    (root / NAME / "replay.html").write_text("<p>a replay")
    (tmp_path / "secret.html").write_text("secret")
    return TestClient(Guard(watching_app(root), "127.0.0.1"), base_url=HERE)


def test_pages_and_files(client: TestClient) -> None:
    for address in ("/", "/run/%3Cscript%3Ealert(1)%3C/"):
        page = client.get(address)
        assert page.status_code == 200 and "<script>alert" not in page.text
        assert "script-src 'self';" in page.headers["content-security-policy"]
    typed = client.get("/run/%3Cscript%3Ealert(1)%3C", follow_redirects=False)
    assert typed.headers["location"] == "/run/%3Cscript%3Ealert%281%29%3C/"
    replay = client.get("/run/%3Cscript%3Ealert(1)%3C/replay.html")
    assert replay.text == "<p>a replay"
    assert replay.headers["content-security-policy"].startswith("sandbox allow-scripts;")
    for name in ("list.js", "run.js", "style.css"):
        assert client.get(f"/static/{name}").status_code == 200
    assert "class Plot" in client.get("/static/list.js").text


@pytest.mark.parametrize(
    "address",
    [
        "/run/../secret.html",
        "/run/%2e%2e/secret.html",
        "/run/%2e%2e%2fsecret.html",
        "/run/%252e%252e%252fsecret.html",
        "/run/..%5csecret.html",
        "/run//etc/hostname",
        "/run/",
        "/run/nothing/",
        "/static/../shell.html",
        "/static/%2e%2e%2fshell.html",
    ],
)
def test_no_address_leads_out(client: TestClient, address: str) -> None:
    assert client.get(address).status_code == 404


def test_a_browser_gets_news(client: TestClient) -> None:
    headers = {"origin": HERE, "host": "127.0.0.1:8642"}
    with client.websocket_connect("/live", headers=headers) as socket:
        news = socket.receive_json()
        assert news["kind"] == "runs" and news["runs"][0]["name"] == NAME
        assert [page["name"] for page in news["pages"]] == [f"{NAME}/replay.html"]
        socket.send_text("nonsense")
        socket.send_json({"ticked": [NAME], "page": NAME})
        curve = socket.receive_json()
        assert curve["run"] == NAME and curve["mean"] == [1.5]
        page = socket.receive_json()
        assert page["kind"] == "page" and page["data"]["name"] == NAME
