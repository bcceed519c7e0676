import socket
import struct
import threading
import time

import pytest

from kube.listeners import Address, SettingError, address, as_json, listen, serve


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


def test_who_hangs_up_before_the_answer_leaves_no_stack_in_the_log(capfd):
    gone, listening = threading.Event(), listen("health-bind", Address("127.0.0.1", 0))

    def late():
        assert gone.wait(10)
        return as_json(True, text="x" * 10_000_000)

    serve(listening, {"/readyz": late, "/healthz": lambda: as_json(True)})
    with socket.create_connection(listening.getsockname()) as impatient:
        impatient.sendall(b"GET /readyz HTTP/1.1\r\n\r\n")
        impatient.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, at once
    gone.set()
    for thread in threading.enumerate():
        if "process_request" in thread.name:
            while thread.ident is None:  # listed, and not started yet
                time.sleep(0.01)
            thread.join(10)
    assert "Traceback" not in capfd.readouterr().err
