import http.client
import json
import os
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from kube.listeners import Address, SettingError
from signalbox.run_webhook import webhook
from webhook import ops
from webhook.settings import checked

OPTIONS = {
    "bind": "127.0.0.1:9443",
    "no_tls": True,
    "cert_file": None,
    "key_file": None,
    "health_bind": "127.0.0.1:8081",
    "metrics_bind": "[::1]:8080",
    "workers": 2,
    "threads": 8,
    "log_level": "info",
}


def test_settings():
    settings = checked(**OPTIONS)
    assert settings.metrics_bind == Address("::1", 8080)
    assert str(settings.metrics_bind) == "[::1]:8080"
    assert settings.tls_files is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"bind": "0.0.0.0:9443"},
            '--no-tls: is for development and allowed only with --bind on a loopback address (got "0.0.0.0:9443")',
        ),
        (
            {"bind": "9443"},
            '--bind: must be HOST:PORT, an IP address or localhost and a port from 1 to 65535 (got "9443")',
        ),
        ({"bind": "example.org:9443"}, "--bind: must be HOST:PORT"),
        ({"health_bind": "127.0.0.1:0"}, "--health-bind: must be HOST:PORT"),
        ({"health_bind": "127.0.0.1:65536"}, '(got "127.0.0.1:65536")'),
        ({"metrics_bind": "127.0.0.1:٣"}, "--metrics-bind: must be HOST:PORT"),
        ({"metrics_bind": "127.0.0.1:8081"}, "--bind: must have another port than --health-bind and --metrics-bind"),
        ({"no_tls": False}, "--cert-file: must be an existing PEM file"),
        ({"no_tls": False, "cert_file": Path(__file__)}, "--key-file: must be an existing PEM file"),
        ({"workers": 0}, '--workers: must be from 1 to 32 (got "0")'),
        ({"threads": 1000}, '--threads: must be from 1 to 256 (got "1000")'),
        ({"log_level": "loud"}, '--log-level: must be one of debug, info, warning, error (got "loud")'),
    ],
)
def test_wrong_setting_is_named(options, message):
    with pytest.raises(SettingError) as caught:
        checked(**{**OPTIONS, **options})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "env", "message"),
    [
        (["--no-tls"], {}, "--no-tls: is for development and allowed only with --bind on a loopback address"),
        (["--no-tls", "--bind", "127.0.0.1:1", "--workers", "99"], {}, '--workers: must be from 1 to 32 (got "99")'),
        (["--no-tls", "--bind", "127.0.0.1:1"], {"SIGNALBOX_WEBHOOK_LOG_LEVEL": "loud"}, "--log-level: must be one of"),
    ],
)
def test_command_stops_on_a_wrong_value(arguments, env, message):
    result = CliRunner().invoke(webhook, arguments, env=env, auto_envvar_prefix="SIGNALBOX_WEBHOOK")
    assert result.exit_code == 2
    assert message in result.output


def test_webhook_imports_no_kubernetes_client():
    code = "import sys, signalbox.run_webhook, webhook.gunicorn, webhook.ops; print('kubernetes' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


def test_metrics_are_imported_only_in_the_workers():
    """prometheus_client decides when imported whether it is in multiprocess mode."""
    code = "import sys, signalbox.run_webhook, webhook.gunicorn; print('prometheus_client' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


class Serving(BaseHTTPRequestHandler):
    """Stands for the webhook's own port."""

    status = 200

    def do_GET(self):
        self.send_response(self.status if self.path == "/healthz" else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


@pytest.fixture
def serving():
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Serving", (Serving,), {}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def task(serving):
    return ops.Task(os.getpid(), 0, 0, *serving.server_address)


def body(answer):
    return answer.status, json.loads(answer.body)


def test_ready_while_the_port_answers(task):
    assert body(ops.ready(task)) == (200, {"ready": True, "reason": "serving"})


def test_not_ready_when_the_app_is_not(task, serving):
    serving.RequestHandlerClass.status = 500
    assert body(ops.ready(task)) == (503, {"ready": False, "reason": "the serving port answers /healthz with 500"})


def test_not_ready_when_nothing_listens():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    status, content = body(ops.ready(ops.Task(os.getpid(), 0, 0, "127.0.0.1", port)))
    assert status == 503
    assert content["reason"].startswith("the serving port does not answer: ")


def test_listeners_run_beside_their_parent_and_end_when_told(tmp_path, monkeypatch):
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    ports = []
    for _ in range(3):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            ports.append(probe.getsockname()[1])
    binds = dict(zip(("bind", "health_bind", "metrics_bind"), (f"127.0.0.1:{port}" for port in ports), strict=True))
    process = ops.start(checked(**{**OPTIONS, **binds}))
    try:
        assert get(ports[1], "/healthz") == (200, b'{"alive":true}')
        assert get(ports[1], "/readyz")[0] == 503
        assert get(ports[2], "/metrics") == (200, b"")
        assert get(ports[2], "/elsewhere") == (404, b'{"paths":["/metrics"]}')
    finally:
        process.terminate()
        process.wait(5)


def get(port, path):
    """The socket is bound before the process runs, so the first call waits for it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()
