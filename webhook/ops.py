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
import time
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import orjson

from kube.listeners import Answer, as_json, listen, serve
from webhook.settings import PROBE_NAME, Settings
from webhook.trusted import Trusted, bundles_reader

PROBE_SECONDS = 2.0
PARENT_CHECK_SECONDS = 0.5


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
    asks_clients: bool = False
    """Whether it wants a client certificate, which we have not."""
    kubeconfig: str | None = None
    """Where the caBundle is read; None: in the cluster we run in, if we do."""


def start(settings: Settings, kubeconfig: Path | None = None) -> subprocess.Popen[bytes]:
    """Start the listeners beside the webhook this process is about to serve. SettingError when an address is taken."""
    with (
        listen("health-bind", settings.health_bind) as health,
        listen("metrics-bind", settings.metrics_bind) as metrics,
    ):
        fds = health.fileno(), metrics.fileno()
        task = Task(
            os.getpid(),
            *fds,
            settings.bind.reachable_host,
            settings.bind.port,
            tls=settings.tls_files is not None,
            asks_clients=settings.client_ca is not None,
            kubeconfig=str(kubeconfig) if kubeconfig else None,
        )
        command = [sys.executable, "-P", "-m", "webhook.ops", orjson.dumps(task).decode()]
        return subprocess.Popen(command, pass_fds=fds)


def main(argument: str) -> None:
    """Answer until the parent is gone. ``argument`` is a Task as JSON."""
    task = Task(**orjson.loads(argument))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C means the master, which still drains
    trusted = Trusted(task.host, task.port, bundles_reader(task.kubeconfig)) if task.tls else None
    health = {"/healthz": alive, "/readyz": lambda: ready(task, trusted)}
    serve(socket.socket(fileno=task.health_fd), health)
    serve(socket.socket(fileno=task.metrics_fd), {"/metrics": metrics})
    while os.getppid() == task.parent:
        time.sleep(PARENT_CHECK_SECONDS)


def alive() -> Answer:
    return as_json(True, alive=True)


def ready(task: Task, trusted: Trusted | None = None) -> Answer:
    """Whether requests can be sent here: the serving port answers, and no live caBundle is proven not to vouch for it.

    A broken pair on disk is no reason to leave: the old one still serves, and every replica would leave at once. Nor
    is an API server that cannot be read.
    """
    fault = serving_fault(task) or (trusted.fault() if trusted else "")
    return as_json(not fault, ready=not fault, reason=fault or "serving")


def serving_fault(task: Task) -> str:
    """Why the webhook's own /healthz cannot be had, or an empty text."""
    if task.asks_clients:
        return refusal_fault(task)
    connection = connect(task)
    try:
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"the serving port does not answer: {error}"
    finally:
        connection.close()
    return "" if status == HTTPStatus.OK else f"the serving port answers /healthz with {status}"


def refusal_fault(task: Task) -> str:
    """The same where only clients with a certificate get in: a server that works refuses us, after a handshake."""
    try:
        with (
            socket.create_connection((task.host, task.port), timeout=PROBE_SECONDS) as plain,
            unverified().wrap_socket(plain, server_hostname=PROBE_NAME) as tls,
        ):
            tls.recv(1)
    except TimeoutError as error:
        return f"the serving port does not answer: {error}"
    except (ssl.SSLError, ConnectionResetError):
        return ""
    except OSError as error:
        return f"the serving port does not answer: {error}"
    return ""


def connect(task: Task) -> http.client.HTTPConnection:
    if not task.tls:
        return http.client.HTTPConnection(task.host, task.port, timeout=PROBE_SECONDS)
    return http.client.HTTPSConnection(task.host, task.port, timeout=PROBE_SECONDS, context=unverified())


def unverified() -> ssl.SSLContext:
    """For calls to ourselves: whether others trust the certificate is not asked here."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def metrics() -> Answer:
    """The metrics of all workers together. A registry for each scrape, as prometheus_client asks for."""
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
    from prometheus_client.multiprocess import MultiProcessCollector

    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return Answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest(registry))


if __name__ == "__main__":
    main(sys.argv[1])
