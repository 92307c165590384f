"""Players on a hub: the installed `huggingface_hub` talks to a small server in this process."""

import base64
import json
import re
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from coplay.api import hub
from coplay.api.hub import HubPlace, parse_place
from coplay.cli.main import run as command
from coplay.core.errors import UserError
from tests.trust.strangers import make_run

COMMIT = "c" * 40


class SmallHub(BaseHTTPRequestHandler):
    """As much of the hub as one file in one commit needs. files: path -> content, of the server."""

    files: dict[str, bytes]

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def answer(self, code: int, data: Any = None, **headers: str) -> None:
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        home = f"http://{self.headers['Host']}/me/hunter"
        if self.headers.get("Authorization") != "Bearer hf_good":
            self.answer(401, {"error": "who are you?"})
        elif self.path == "/api/repos/create":
            self.answer(200, {"url": home, "id": "me/hunter"})
        elif self.path == "/api/validate-yaml":
            self.answer(200, {"errors": [], "warnings": []})
        elif self.path == "/api/models/me/hunter/preupload/main":
            asked = [one["path"] for one in json.loads(body)["files"]]
            plain = {"uploadMode": "regular", "shouldIgnore": False}
            self.answer(200, {"files": [{"path": path} | plain for path in asked]})
        elif self.path == "/api/models/me/hunter/commit/main":
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    value = line["value"]
                    self.files[value["path"]] = base64.b64decode(value["content"])
            self.answer(200, {"commitUrl": f"{home}/commit/{COMMIT}", "commitOid": COMMIT})
        else:
            self.answer(404, {"error": self.path})

    def do_GET(self) -> None:
        if self.path.startswith("/api/models/me/hunter/revision/main"):  # older clients ask
            self.answer(200, {"id": "me/hunter", "sha": COMMIT, "xetEnabled": False})
            return
        found = re.fullmatch(r"/me/hunter/resolve/main/(.+)", self.path)
        if found is None or found[1] not in self.files:
            self.answer(404, {"error": "no"}, X_Error_Code="RepoNotFound")
            return
        content = self.files[found[1]]
        self.answer(200, content, ETag='"e"', X_Repo_Commit=COMMIT)

    do_HEAD = do_GET


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[dict[str, bytes]]:
    """The files of a hub that runs here."""
    pytest.importorskip("huggingface_hub")
    files: dict[str, bytes] = {}
    SmallHub.files = files
    with ThreadingHTTPServer(("127.0.0.1", 0), SmallHub) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{running.server_port}")
        monkeypatch.setenv("HF_TOKEN", "hf_good")
        monkeypatch.chdir(tmp_path)
        yield files
        running.shutdown()


def test_a_file_comes_back_as_it_was(server: dict[str, bytes], tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_bytes(b"arrays")
    address = hub.upload(tmp_path / "x.npz", "a page", HubPlace("me/hunter"), False)
    assert address.endswith(f"/me/hunter/commit/{COMMIT}")
    assert server == {"player.npz": b"arrays", "README.md": b"a page"}
    got = hub.download(HubPlace("me/hunter"), tmp_path / "got")
    assert got.read_bytes() == b"arrays" and not got.is_symlink()


@pytest.mark.slow
def test_a_player_to_the_hub_and_back(
    server: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path / "run")
    assert command(["export", "run", "--to", "hf:me/hunter"]) == 0
    words = capsys.readouterr().out
    assert f"/me/hunter/commit/{COMMIT}" in words and "coplay import hf:me/hunter" in words
    assert sorted(server) == ["README.md", "player.npz"]
    page = server["README.md"].decode()
    assert page.startswith('---\nlibrary_name: "coplay"\n') and "# ppo on stag-hunt" in page
    assert not list(tmp_path.glob("*.npz")), "nothing is left beside the run"
    assert command(["import", "hf:me/hunter"]) == 0
    assert (tmp_path / "runs" / "hunter" / "card.json").exists()
    server["player.npz"] = server["player.npz"][:-100]
    assert command(["import", "hf:me/hunter", "--out", "again"]) == 2
    assert "no exported player" in capsys.readouterr().err


def test_what_the_hub_refuses_is_a_sentence(
    server: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match=r"hf:me/nobody: the hub says: .* such a repository"):
        hub.download(HubPlace("me/nobody"), tmp_path)
    server["player.npz"] = b"x" * 99
    monkeypatch.setattr(hub, "MOST_BYTES", 98)
    with pytest.raises(UserError, match="has 99 bytes; at most 98 are read"):
        hub.download(HubPlace("me/hunter"), tmp_path)
    monkeypatch.setenv("HF_TOKEN", "hf_bad")
    with pytest.raises(UserError, match="log in with"):
        hub.upload(tmp_path / "x.npz", "", HubPlace("me/hunter"), False)


def test_places_and_a_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse_place("hf:me/hunter@v1") == HubPlace("me/hunter", "v1")
    for text in ("hf:me", "hf:/x", "hf:me/..", "hf:a/b/c", "me/hunter", "hf:me/x@"):
        with pytest.raises(UserError, match="a place on the hub is"):
            parse_place(text)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UserError, match=r"not installed: .*\[hub\]"):
        hub.download(HubPlace("me/hunter"), Path())
