"""Two people at a game, each by a connection of its own."""

from typing import Any

from starlette.testclient import TestClient

from coplay.serve.guard import Guard
from coplay.serve.playing import playing_app
from tests.serve.test_sitting import Counting

HERE = "http://127.0.0.1:8642"
HEADERS = {"origin": HERE, "host": "127.0.0.1:8642"}


def until(socket: Any, kind: str) -> dict[str, Any]:
    while (news := socket.receive_json())["kind"] != kind:
        pass
    return news


def test_two_people_play() -> None:
    game = Counting()

    def measure(tell: Any, stopped: Any) -> None:
        tell({"kind": "references", "players": []})

    app = Guard(playing_app(game, {1: "<p>replay"}, True, measure), "127.0.0.1")
    with TestClient(app, base_url=HERE) as client:
        with client.websocket_connect("/seat", headers=HEADERS) as one:
            assert until(one, "about")["game"] == "counting"
            one.send_json({"kind": "sit", "seat": 0, "key": "short"})
            one.send_json({"kind": "sit", "seat": 1, "key": "first-browser"})
            assert "no seat for a person" in until(one, "refused")["words"]
            one.send_json({"kind": "sit", "seat": 0, "key": "first-browser"})
            assert until(one, "sat")["seat"] == 0
            with client.websocket_connect("/seat", headers=HEADERS) as two:
                taken = {seat["seat"]: seat["taken"] for seat in until(two, "who")["seats"]}
                assert taken == {0: True, 2: False}
                two.send_json({"kind": "sit", "seat": 2, "key": "second-browser"})
                until(one, "begin")
                until(two, "begin")
                one.send_json({"kind": "choose", "step": 0, "action": 1})
                two.send_json({"kind": "choose", "step": 0, "action": 0})
                until(one, "step")
                until(two, "step")
            while all(seat["taken"] for seat in until(one, "who")["seats"]):
                pass
        assert game.played == [{0: 1, 2: 0}]
        page = client.get("/replay/1")
        assert page.headers["content-security-policy"].startswith("sandbox")
        assert client.get("/replay/2").status_code == 404
        assert "function panels" in client.get("/static/play.js").text
    hidden = TestClient(playing_app(game, {1: "<p>replay"}, allow_thinking=False))
    assert hidden.get("/replay/1").status_code == 404
