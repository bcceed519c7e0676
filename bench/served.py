"""What the served webhook does: reviews a second over TLS on four kept connections, and how long each takes.

    python bench/served.py [--seconds 10] [--paced 50 200] [--cpu 0]

Both servers run in one go, one after the other: a floor (the same gunicorn and Flask, which reads the review and allows
it) and Signalbox's webhook, whole, under one policy. The review is a TrainingJob of about 5 KB. ``--cpu`` ties the
server to one CPU.
"""

import argparse
import http.client
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
from flask import Flask, Response, request

from certs.issue import Names, new_ca, new_leaf
from webhook.gunicorn import serve
from webhook.settings import checked

JSON = dict[str, Any]
CONNECTIONS = 4
HOST = "127.0.0.1"
ROOT = Path(__file__).resolve().parents[1]


def review() -> bytes:
    container = {
        "name": "main",
        "image": "registry.example/team/train:1.2.3",
        "args": [f"--flag-{n}=value-{n}" for n in range(20)],
        "env": [{"name": f"VARIABLE_{n}", "value": f"value-{n}"} for n in range(20)],
        "resources": {"limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": 1}},
    }
    sidecar = {**container, "name": "log-shipper"}
    template = {"spec": {"containers": [container, sidecar]}}
    types = {name: {"replicas": 1 if name == "Master" else 4, "template": template} for name in ("Master", "Worker")}
    obj = {"metadata": {"name": "bench", "namespace": "team-a"}, "spec": {"replicaSpecs": types}}
    kind = {"group": "signalbox.dev", "version": "v1", "kind": "TrainingJob"}
    asked = {"uid": "u", "operation": "CREATE", "kind": kind, "object": obj}
    return orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked})


def floor_app() -> Flask:
    app = Flask("floor")

    @app.post("/validate")
    def validate() -> Response:
        uid = orjson.loads(request.get_data())["request"]["uid"]
        answer = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return Response(
            orjson.dumps({**answer, "response": {"uid": uid, "allowed": True}}), mimetype="application/json"
        )

    return app


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind((HOST, 0))
        port: int = sock.getsockname()[1]
        return port


def serve_floor(port: int, directory: Path) -> None:
    settings = checked(
        bind=f"{HOST}:{port}",
        no_tls=False,
        cert_file=directory / "tls.crt",
        key_file=directory / "tls.key",
        health_bind=f"{HOST}:{free_port()}",
        metrics_bind=f"{HOST}:{free_port()}",
        workers=2,
        threads=8,
        log_level="error",
    )
    serve(settings, floor_app)


@contextmanager
def served(name: str, directory: Path, cpu: int | None) -> Iterator[int]:
    """The port of a server that runs meanwhile."""
    port = free_port()
    bench = [sys.executable, str(Path(__file__)), "--floor-at", str(port), "--directory", str(directory)]
    addresses = [f"--health-bind={HOST}:{free_port()}", f"--metrics-bind={HOST}:{free_port()}"]
    files = [f"--cert-file={directory / 'tls.crt'}", f"--key-file={directory / 'tls.key'}"]
    real = [sys.executable, "-m", "signalbox", "webhook", f"--bind={HOST}:{port}", *addresses, *files]
    real += ["--policy-dir", str(directory / "policies"), "--log-level", "error"]
    tied = ["taskset", "--cpu-list", str(cpu)] if cpu is not None else []
    process = subprocess.Popen([*tied, *(bench if name == "floor" else real)])
    try:
        wait_for(port)
        yield port
    finally:
        process.terminate()
        process.wait(40)


def wait_for(port: int) -> None:
    for _ in range(300):
        try:
            socket.create_connection((HOST, port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server does not come up")


class Client:
    """One kept connection."""

    def __init__(self, port: int) -> None:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self._connection = http.client.HTTPSConnection(HOST, port, context=context, timeout=10)
        self._body = review()

    def ask(self) -> float:
        """Milliseconds for one review."""
        begun = time.perf_counter()
        self._connection.request("POST", "/validate", self._body, {"Content-Type": "application/json"})
        answer = orjson.loads(self._connection.getresponse().read())
        assert answer["response"]["allowed"], answer
        return (time.perf_counter() - begun) * 1000


def closed(port: int, seconds: float) -> list[float]:
    """Each connection asks again as soon as it is answered."""

    def ask(client: Client) -> list[float]:
        end, taken = time.monotonic() + seconds, []
        while time.monotonic() < end:
            taken.append(client.ask())
        return taken

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        return [one for some in pool.map(ask, [Client(port) for _ in range(CONNECTIONS)]) for one in some]


def paced(port: int, seconds: float, rate: int) -> list[float]:
    """``rate`` reviews a second; what waits for a connection counts as waiting for the answer."""
    clients, local = [Client(port) for _ in range(CONNECTIONS)], threading.local()

    def ask(due: float) -> float:
        if not hasattr(local, "client"):
            local.client = clients.pop()
        begun = max(time.monotonic(), due)
        local.client.ask()
        return (time.monotonic() - min(begun, due)) * 1000

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        begun, asked = time.monotonic(), []
        for number in range(int(rate * seconds)):
            due = begun + number / rate
            time.sleep(max(due - time.monotonic(), 0))
            asked.append(pool.submit(ask, due))
        return [one.result() for one in asked]


def tell(name: str, what: str, taken: list[float], seconds: float) -> None:
    taken = sorted(taken)
    marks = {"p50": taken[len(taken) // 2], "p99": taken[int(len(taken) * 0.99)], "max": taken[-1]}
    said = "  ".join(f"{mark} {value:6.1f} ms" for mark, value in marks.items())
    print(f"{name:10} {what:10} {len(taken) / seconds:7.0f}/s  {said}", flush=True)


def measure(options: argparse.Namespace, directory: Path) -> None:
    authority = new_ca(datetime.now(UTC))
    leaf = new_leaf(authority, Names("signalbox-webhook", "signalbox-system"), datetime.now(UTC))
    (directory / "tls.crt").write_bytes(leaf.certificate)
    (directory / "tls.key").write_bytes(leaf.key)
    (directory / "policies").mkdir()
    shutil.copy(ROOT / "deploy" / "examples" / "policies" / "gpu-cap.yaml", directory / "policies")
    print(f"load {os.getloadavg()[0]:.1f}, a review of {len(review())} bytes")
    for name in ("floor", "signalbox"):
        with served(name, directory, options.cpu) as port:
            closed(port, 2.0)
            tell(name, "as it can", closed(port, options.seconds), options.seconds)
            for rate in options.paced:
                tell(name, f"{rate}/s", paced(port, options.seconds, rate), options.seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--paced", type=int, nargs="*", default=[50, 200])
    parser.add_argument("--cpu", type=int, help="the one CPU that the server may use")
    parser.add_argument("--floor-at", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.floor_at:
        serve_floor(options.floor_at, options.directory)
    with tempfile.TemporaryDirectory() as directory:
        measure(options, Path(directory))


if __name__ == "__main__":
    main()
