"""Starting the server."""

import importlib.util
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from coplay.cli.main import run
from coplay.core.errors import UserError
from coplay.serve.server import address, listening
from tests.processes import coplay_process


def test_a_port_that_is_taken_is_said() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(UserError, match=f"port {port}: .* choose another --port"):
            listening("127.0.0.1", port)
    with pytest.raises(UserError, match="cannot listen on nowhere"):
        listening("nowhere.invalid", 0)


def test_the_address_is_one_to_open() -> None:
    assert address("127.0.0.1", 8642) == "http://127.0.0.1:8642/"
    assert address("0.0.0.0", 80, "abc") == "http://localhost:80/?token=abc"
    assert address("::1", 80) == "http://[::1]:80/"


def test_wrong_arguments_are_said_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, said in (
        ([f"{tmp_path}/nothing"], "there is no folder"),
        ([str(tmp_path), "--port", "70000"], "a port is a number from 0 to 65535"),
        ([str(tmp_path), "--seat", "1"], "holds no run"),
        ([str(tmp_path), "--seat", "1", "--seating", "human,ns"], "not both"),
        (["--seating", "ns,ns,ns,ns"], "write human for each seat of a person"),
        (["--seating", "human,ns"], "has 4 seats"),
        (["--game", "hidden-kind", "--seating", "human,x"], "unknown player 'x'"),
        ([str(tmp_path), "--host", "0.0.0.0", "--token", "short"], "at least 16"),
    ):
        assert run(["serve", *words]) == 2, words
        assert said in capsys.readouterr().err


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    found = importlib.util.find_spec

    def missing(name: str) -> object:
        return None if name == "uvicorn" else found(name)

    monkeypatch.setattr(importlib.util, "find_spec", missing)
    assert run(["serve", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "needs uvicorn, which is not installed: pip install -e '.[web]'" in said


@pytest.mark.slow
@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_ends_it_without_a_traceback(presses: int, tmp_path: Path) -> None:
    command = coplay_process("serve", str(tmp_path), "--port", "0")
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None and "http" in process.stderr.readline()
    time.sleep(1)  # the address is said before the server is ready
    for _ in range(presses):
        process.send_signal(signal.SIGINT)
        time.sleep(0.03)  # signals that come at once are one
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and "Traceback" not in said and "stopped" in said
