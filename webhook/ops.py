"""Health and metrics of the webhook on plain-HTTP ports of their own, in a process of their own.

Not a thread of gunicorn's master: a lock it holds while the master forks stays held in the worker for ever. Not a
multiprocessing child either: every worker that ends would end it too, since workers inherit the list of children. So it
is a fresh interpreter which gets the bound sockets, and ends by itself when the master is gone.
"""

import http.client
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import orjson

from webhook.settings import Address, SettingError, Settings

PROBE_SECONDS = 2.0
REQUEST_SECONDS = 5.0
PARENT_CHECK_SECONDS = 0.5
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Task:
    """What the process is started with: inherited sockets, and the server to look after."""

    parent: int
    """Process id; when it is no longer our parent, we end."""
    health_fd: int
    metrics_fd: int
    host: str
    port: int
    tls: bool = False
    """Whether the server speaks TLS."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: HTTPStatus
    content_type: str
    body: bytes


def start(settings: Settings) -> subprocess.Popen[bytes]:
    """Start the listeners beside the webhook this process is about to serve. SettingError when an address is taken."""
    with (
        listen("health-bind", settings.health_bind) as health,
        listen("metrics-bind", settings.metrics_bind) as metrics,
    ):
        fds = health.fileno(), metrics.fileno()
        task = Task(os.getpid(), *fds, settings.bind.reachable_host, settings.bind.port, settings.tls_files is not None)
        command = [sys.executable, "-P", "-m", "webhook.ops", orjson.dumps(task).decode()]
        return subprocess.Popen(command, pass_fds=fds)


def listen(option: str, address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family)
    except OSError as error:
        raise SettingError(option, f"must be free to listen on: {error.strerror}", address) from error


def main(argument: str) -> None:
    """Answer until the parent is gone. ``argument`` is a Task as JSON."""
    task = Task(**orjson.loads(argument))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C means the master, which still drains
    serve(task.health_fd, {"/healthz": alive, "/readyz": lambda: ready(task)})
    serve(task.metrics_fd, {"/metrics": metrics})
    while os.getppid() == task.parent:
        time.sleep(PARENT_CHECK_SECONDS)


def alive() -> Answer:
    return Answer(HTTPStatus.OK, JSON, orjson.dumps({"alive": True}))


def ready(task: Task) -> Answer:
    """Whether requests can be sent here: the serving port answers. A broken pair on disk is no reason to leave: the
    old one still serves, and every replica would leave at once.
    """
    fault = serving_fault(task)
    status = HTTPStatus.SERVICE_UNAVAILABLE if fault else HTTPStatus.OK
    return Answer(status, JSON, orjson.dumps({"ready": not fault, "reason": fault or "serving"}))


def serving_fault(task: Task) -> str:
    """Why the webhook's own /healthz cannot be had, or an empty text."""
    connection = connect(task)
    try:
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"the serving port does not answer: {error}"
    finally:
        connection.close()
    return "" if status == HTTPStatus.OK else f"the serving port answers /healthz with {status}"


def connect(task: Task) -> http.client.HTTPConnection:
    if not task.tls:
        return http.client.HTTPConnection(task.host, task.port, timeout=PROBE_SECONDS)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # a call to ourselves: whether others trust the certificate is not asked here
    context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(task.host, task.port, timeout=PROBE_SECONDS, context=context)


def metrics() -> Answer:
    """The metrics of all workers together. A registry for each scrape, as prometheus_client asks for."""
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
    from prometheus_client.multiprocess import MultiProcessCollector

    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return Answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest(registry))


def serve(fd: int, routes: Mapping[str, Callable[[], Answer]]) -> None:
    """Answer GET on the inherited socket in threads that end with the process."""
    server = ThreadingHTTPServer(("", 0), handler(routes), bind_and_activate=False)
    server.socket.close()
    server.socket = socket.socket(fileno=fd)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def handler(routes: Mapping[str, Callable[[], Answer]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = REQUEST_SECONDS

        def do_GET(self) -> None:
            route = routes.get(self.path.partition("?")[0])
            answer = route() if route else Answer(HTTPStatus.NOT_FOUND, JSON, orjson.dumps({"paths": list(routes)}))
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def version_string(self) -> str:
            return "signalbox"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  probes come every few seconds
            pass

    return Handler


if __name__ == "__main__":
    main(sys.argv[1])
