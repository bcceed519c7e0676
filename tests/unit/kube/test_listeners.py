import socket

import pytest

from kube.listeners import Address, SettingError, address, listen


@pytest.mark.parametrize(
    ("text", "host", "reachable", "loopback"),
    [
        ("0.0.0.0:1", "0.0.0.0", "127.0.0.1", False),
        ("[::]:1", "::", "::1", False),
        ("localhost:1", "127.0.0.1", "127.0.0.1", True),
        ("127.0.0.7:1", "127.0.0.7", "127.0.0.7", True),
        ("10.1.2.3:1", "10.1.2.3", "10.1.2.3", False),
    ],
)
def test_address(text, host, reachable, loopback):
    found = address("bind", text)
    assert (found.host, found.reachable_host, found.is_loopback) == (host, reachable, loopback)


def test_taken_address_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingError, match=f"--health-bind: must be free to listen on: .*127.0.0.1:{port}"):
            listen("health-bind", Address("127.0.0.1", port))
