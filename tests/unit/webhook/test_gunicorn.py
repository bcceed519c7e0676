"""The real server in a process of its own, spoken to over TLS on loopback."""

import http.client
import json
import os
import signal
import socket
import ssl
import threading
import time
from pathlib import Path

import pytest
from cryptography import x509

from webhook.gunicorn import prepare_metrics


def test_answers_and_says_little_about_itself(server):
    status, headers, body = server.get()
    assert (status, body) == (200, "ok")
    assert "27" not in headers["Server"]  # gunicorn's version
    assert json.loads(server.plain(server.health, "/readyz")[2]) == {"ready": True, "reason": "serving"}
    assert server.plain(server.health, "/healthz")[0] == 200
    assert server.plain(server.health, "/metrics")[0] == 404
    assert all(json.loads(line) for line in server.log.read_text().splitlines())


def test_old_tls_is_refused(server):
    context = server.authority.client()
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as plain, pytest.raises(ssl.SSLError):
        context.wrap_socket(plain, server_hostname="127.0.0.1")


def test_renewed_pair_is_served_without_restart(server, eventually):
    """nolar/kopf#1135: new handshakes show pair 2, a connection that was open goes on."""
    open_connection = http.client.HTTPSConnection(
        "127.0.0.1", server.port, context=server.authority.client(), timeout=10
    )
    open_connection.request("GET", "/healthz")
    open_connection.getresponse().read()
    renewed = server.authority.renew()
    eventually(lambda: server.serial() == renewed)
    eventually(lambda: {server.serial() for _ in range(20)} == {renewed})  # both workers
    open_connection.request("GET", "/healthz")
    assert open_connection.getresponse().read() == b"ok"
    open_connection.close()
    assert server.failures() == 0
    assert server.process.poll() is None


def test_half_written_pair_keeps_the_old(server, eventually):
    """nolar/kopf#1135: the key arrives two seconds after the certificate; no handshake fails, then the new pair is
    served.
    """
    before = server.serial()
    fresh = server.authority.issue()
    (server.authority.directory / "tls.crt").resolve().write_bytes(fresh.cert_pem)
    until = time.monotonic() + 2
    seen = set()
    while time.monotonic() < until:
        seen.add(server.serial())
    assert seen == {before}
    eventually(lambda: server.failures() > 0)
    assert server.plain(server.health, "/readyz")[0] == 200  # the old pair serves: no replica leaves
    (server.authority.directory / "tls.key").resolve().write_bytes(fresh.key_pem)
    eventually(lambda: server.serial() == x509.load_pem_x509_certificate(fresh.cert_pem).serial_number)
    assert server.plain(server.health, "/readyz")[0] == 200
    assert server.failures() <= 2  # once a change in each worker
    assert "certificate unusable, keeping the old one" in server.messages()


@pytest.mark.parametrize("broken", ["removed", "empty", "garbage"])
def test_broken_pair_keeps_the_old(server, broken, eventually):
    before = server.serial()
    key = (server.authority.directory / "tls.key").resolve()
    if broken == "removed":
        key.unlink()
    else:
        key.write_bytes({"empty": b"", "garbage": b"-----BEGIN PRIVATE KEY-----\n\xff"}[broken])
    eventually(lambda: server.serial() == before and server.failures() > 0)
    assert server.serial() == before


def test_open_request_finishes_on_sigterm(mortal, eventually):
    found = []
    thread = threading.Thread(target=lambda: found.append(mortal.get("/slow")))
    thread.start()
    time.sleep(0.5)
    mortal.process.send_signal(signal.SIGTERM)
    thread.join(10)
    assert [(status, body) for status, _, body in found] == [(200, "done")]
    assert mortal.process.wait(10) == 0
    eventually(lambda: not listening(mortal.health), seconds=5)


def test_listeners_outlive_a_worker_and_end_with_the_master(mortal, eventually):
    [worker] = workers(mortal)[:1]
    os.kill(worker, signal.SIGTERM)
    eventually(lambda: worker not in workers(mortal) and len(workers(mortal)) == 2)
    assert mortal.plain(mortal.health, "/readyz")[0] == 200
    mortal.process.kill()
    mortal.process.wait(5)
    eventually(lambda: not listening(mortal.health) and not listening(mortal.metrics), seconds=5)


def workers(server):
    pids = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    return [int(pid) for pid in pids if b"webhook.ops" not in command_of(pid)]


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:  # ended since it was listed
        return b""


def listening(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class TestMetricsDirectory:
    """Where the workers keep their metrics."""

    def test_only_metrics_are_wiped(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
        for name in ("counter_1.db", "notes.txt"):
            (tmp_path / name).touch()
        assert prepare_metrics() is None
        assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]

    def test_one_of_our_own_when_none_is_named(self, monkeypatch):
        monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
        own = prepare_metrics()
        assert os.environ["PROMETHEUS_MULTIPROC_DIR"] == str(own)
        own.rmdir()
