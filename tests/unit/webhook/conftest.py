"""The real server in a process of its own, spoken to over TLS on loopback."""

import http.client
import json
import os
import socket
import ssl
import subprocess
import sys
import time
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from cryptography import x509

from certs.files import write_pair
from certs.issue import Issued, Names, new_ca, new_leaf

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

bind, health, metrics, directory, *client_ca = sys.argv[1:]
serve(checked(bind=bind, no_tls=False, cert_file=Path(directory, "tls.crt"), key_file=Path(directory, "tls.key"),
              client_ca=Path(client_ca[0]) if client_ca else None, client_name=("kube-apiserver",) if client_ca else (),
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

    @property
    def files(self):
        return self.directory / "tls.crt", self.directory / "tls.key"

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

    def lines(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def messages(self):
        return [line["message"] for line in self.lines()]


def answer(connection, path):
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read().decode()
    finally:
        connection.close()


@pytest.fixture(scope="session", name="eventually")
def _eventually():
    return eventually


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
def started(directory, *arguments):
    """A server with a pair of its own; ended, with all its children, on leaving."""
    authority, ports, log = Authority(directory / "tls"), free_ports(3), directory / "log"
    authority.renew()
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(directory / "metrics")}
    command = [
        sys.executable,
        "-c",
        SERVER,
        *(f"127.0.0.1:{port}" for port in ports),
        str(authority.directory),
        *arguments,
    ]
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


@pytest.fixture(scope="session", name="started")
def _started():
    """``with started(directory, *arguments) as server``."""
    return started


@pytest.fixture
def authority(tmp_path):
    authority = Authority(tmp_path / "tls")
    authority.renew()
    return authority
