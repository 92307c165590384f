"""The list of runs."""

import json
import os
import socket
from pathlib import Path

from coplay.serve.shelf import Shelf
from tests.serve.folders import append, make_run


def rows(shelf: Shelf) -> dict[str, dict]:
    shelf._scanned = -1e9
    shelf.refresh()
    return {row["name"]: row for row in shelf.rows}


def test_runs_have_a_state_and_nothing_is_written(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    going = make_run(root / "going")
    make_run(root / "deep" / "<script>")
    append(going, 40, 1.0, 2.0)
    (root / "broken").mkdir()
    (root / "broken" / "config.json").write_text("{")
    (root / "link").symlink_to(make_run(tmp_path / "elsewhere"))
    lock = {"pid": os.getpid(), "host": socket.gethostname()}
    (going / ".lock").write_text(json.dumps(lock))
    before = sorted(root.glob("**/*"))

    shelf = Shelf(root)
    found = rows(shelf)
    assert {name: row["state"] for name, row in found.items()} == {
        "broken": "damaged",
        "deep/<script>": "stopped",
        "going": "running",
    }
    assert found["going"]["step"] == 40 and found["going"]["team_mean"] == 1.5
    assert found["deep/<script>"]["address"] == "/run/deep/%3Cscript%3E/"
    assert not shelf.refresh(), "nothing is different"
    append(going, 80, 3.0, 3.0)
    assert shelf.refresh() and rows(shelf)["going"]["step"] == 80
    assert sorted(root.glob("**/*")) == before

    for pid in (2**22 + 1, "x", -1, 1e400):
        (going / ".lock").write_text(json.dumps(lock | {"pid": pid}))
        assert rows(shelf)["going"]["state"] == "stopped"


def test_the_folder_may_be_a_run(tmp_path: Path) -> None:
    (row,) = rows(Shelf(make_run(tmp_path / "alone"))).values()
    assert (row["name"], row["run"], row["address"]) == ("", "alone", "/run/")
