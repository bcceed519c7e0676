"""The real server in a process of its own, spoken to over TLS on loopback."""

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509

from certs.files import write_pair
from certs.issue import Issued, Names, new_ca, new_leaf
from kube.listeners import SettingError
from webhook.gunicorn import Certificates, prepare_metrics

SERVER = """
import sys, time
from pathlib import Path
from flask import Flask
from webhook.gunicorn import serve
from webhook.settings import checked

def load():
    app = Flask("test")
    app.add_url_rule("/healthz", view_func=lambda: "ok", endpoint="healthz")
    app.add_url_rule("/slow", view_func=lambda: time.sleep(1.5) or "done", endpoint="slow")
    return app

bind, health, metrics, directory = sys.argv[1:]
serve(checked(bind=bind, no_tls=False, cert_file=Path(directory, "tls.crt"), key_file=Path(directory, "tls.key"),
              health_bind=health, metrics_bind=metrics, workers=2, threads=2, log_level="info"), load)
"""
RENEWAL_SECONDS = 10


class Authority:
    """Issues pairs for 127.0.0.1 and writes them where the server looks."""

    def __init__(self, directory):
        self.directory = directory
        self._ca = new_ca(datetime.now(UTC))

    def issue(self):
        leaf = new_leaf(self._ca, Names("webhook", "test", ("127.0.0.1",)), datetime.now(UTC))
        return Issued(self._ca.certificate, leaf.certificate, leaf.key)

    def renew(self):
        issued = self.issue()
        write_pair(self.directory, issued)
        return serial(issued.cert_pem)

    def client(self):
        return ssl.create_default_context(cadata=self._ca.certificate.decode())


def serial(pem):
    return x509.load_pem_x509_certificate(pem).serial_number


class Server:
    def __init__(self, process, ports, authority, log):
        self.process, self.authority, self.log = process, authority, log
        self.port, self.health, self.metrics = ports
        self.failures_before = 0

    def get(self, path="/healthz"):
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10, context=self.authority.client())
        return answer(connection, path)

    def plain(self, port, path):
        return answer(http.client.HTTPConnection("127.0.0.1", port, timeout=10), path)

    def serial(self):
        """Serial number of the certificate a new handshake shows; raises when the handshake fails."""
        with (
            socket.create_connection(("127.0.0.1", self.port), timeout=5) as plain,
            self.authority.client().wrap_socket(plain, server_hostname="127.0.0.1") as tls,
        ):
            return x509.load_der_x509_certificate(tls.getpeercert(binary_form=True)).serial_number

    def failures(self):
        """Refused pairs since the test began, in both workers."""
        _, _, body = self.plain(self.metrics, "/metrics")
        [line] = [
            line for line in body.splitlines() if line.startswith("signalbox_webhook_certificate_reload_failures_total")
        ]
        return float(line.split()[1]) - self.failures_before

    def messages(self):
        return [json.loads(line)["message"] for line in self.log.read_text().splitlines()]


def answer(connection, path):
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read().decode()
    finally:
        connection.close()


def eventually(holds, seconds=RENEWAL_SECONDS):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.1)


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@contextmanager
def started(directory):
    """A server with a pair of its own; ended, with all its children, on leaving."""
    authority, ports, log = Authority(directory / "tls"), free_ports(3), directory / "log"
    authority.renew()
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(directory / "metrics")}
    command = [sys.executable, "-c", SERVER, *(f"127.0.0.1:{port}" for port in ports), str(authority.directory)]
    with log.open("wb") as stderr:
        process = subprocess.Popen(command, stderr=stderr, env=environment)
    running = Server(process, ports, authority, log)
    try:
        eventually(lambda: ready(running), seconds=30)
        yield running
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with started(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def server(shared):
    """The shared server, serving a good pair in both workers; for tests that leave it running."""
    renewed = shared.authority.renew()
    eventually(lambda: {shared.serial() for _ in range(20)} == {renewed})
    shared.failures_before += shared.failures()
    return shared


@pytest.fixture
def mortal(tmp_path):
    """A server for a test that ends it."""
    with started(tmp_path) as running:
        yield running


def ready(server):
    assert server.process.poll() is None, server.log.read_text()
    try:
        return server.plain(server.health, "/readyz")[0] == 200
    except OSError:
        return False


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


def test_renewed_pair_is_served_without_restart(server):
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


def test_half_written_pair_keeps_the_old(server):
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
    eventually(lambda: server.serial() == serial(fresh.cert_pem))
    assert server.plain(server.health, "/readyz")[0] == 200
    assert server.failures() <= 2  # once a change in each worker
    assert "certificate unusable, keeping the old one" in server.messages()


@pytest.mark.parametrize("broken", ["removed", "empty", "garbage"])
def test_broken_pair_keeps_the_old(server, broken):
    before = server.serial()
    key = (server.authority.directory / "tls.key").resolve()
    if broken == "removed":
        key.unlink()
    else:
        key.write_bytes({"empty": b"", "garbage": b"-----BEGIN PRIVATE KEY-----\n\xff"}[broken])
    eventually(lambda: server.serial() == before and server.failures() > 0)
    assert server.serial() == before


def test_open_request_finishes_on_sigterm(mortal):
    found = []
    thread = threading.Thread(target=lambda: found.append(mortal.get("/slow")))
    thread.start()
    time.sleep(0.5)
    mortal.process.send_signal(signal.SIGTERM)
    thread.join(10)
    assert [(status, body) for status, _, body in found] == [(200, "done")]
    assert mortal.process.wait(10) == 0
    eventually(lambda: not listening(mortal.health), seconds=5)


def test_listeners_outlive_a_worker_and_end_with_the_master(mortal):
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


class TestCertificates:
    """The exchange by itself, with a clock that stands still unless it is moved."""

    @pytest.fixture
    def authority(self, tmp_path):
        authority = Authority(tmp_path / "tls")
        authority.renew()
        return authority

    @pytest.fixture
    def clock(self):
        return [0.0]

    @pytest.fixture
    def certificates(self, authority, clock):
        return Certificates(authority.directory / "tls.crt", authority.directory / "tls.key", lambda: clock[0])

    def test_one_context_until_the_files_change(self, certificates, authority, clock):
        first = certificates.context()
        clock[0] += 5
        assert certificates.context() is first
        authority.renew()
        clock[0] += 5
        assert certificates.context() is not first

    def test_looks_once_a_second(self, certificates, authority, clock):
        first = certificates.context()
        authority.renew()
        clock[0] += 0.9
        assert certificates.context() is first
        clock[0] += 0.2
        assert certificates.context() is not first

    def test_warns_once_per_change(self, certificates, authority, clock, caplog):
        (authority.directory / "tls.key").write_bytes(b"first fault")
        for _ in range(5):
            clock[0] += 1
            certificates.context()
        assert len(caplog.records) == 1
        (authority.directory / "tls.key").write_bytes(b"a second fault")
        clock[0] += 1
        certificates.context()
        assert len(caplog.records) == 2

    def test_start_needs_a_pair(self, authority):
        (authority.directory / "tls.key").write_bytes(authority.issue().key_pem)
        with pytest.raises(SettingError, match="--cert-file: must be a certificate that fits --key-file"):
            Certificates(authority.directory / "tls.crt", authority.directory / "tls.key")


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
