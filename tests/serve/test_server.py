"""Starting the server."""

import socket

import pytest

from coplay.core.errors import UserError
from coplay.serve.server import address, listening


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
