"""A loopback HTTP server that plays the API server, with all its faults, from a script."""

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

import pytest

from kube.config import Connection
from kube.raw import RawKube


@dataclass
class Seen:
    """One request as the server got it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "FakeServer"

    def play(self) -> None:
        url = urlsplit(self.path)
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        seen = Seen(self.command, url.path, dict(parse_qsl(url.query)), dict(self.headers.items()), body)
        self.server.seen.append(seen)
        script = self.server.watches if "watch" in seen.query else self.server.answers
        (script.popleft() if script else self.server.otherwise)(self)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = play  # noqa: N815

    def log_message(self, *arguments: object) -> None:
        """Silence."""

    def cut(self) -> None:
        self.close_connection = True
        self.connection.shutdown(SHUT_RDWR)


Step = Callable[[Handler], None]


@dataclass
class FakeServer(ThreadingHTTPServer):
    """``answers`` and ``watches`` are played in order, then ``otherwise``: a silent connection that never ends."""

    answers: deque[Step] = field(default_factory=deque)
    watches: deque[Step] = field(default_factory=deque)
    seen: list[Seen] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.daemon_threads = True
        self.block_on_close = False

    __hash__ = object.__hash__

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the play."""

    @property
    def connection(self) -> Connection:
        return Connection(
            server=f"http://127.0.0.1:{self.server_address[1]}",
            ca_pem=None,
            token=lambda: "secret",
            client_cert_pem=None,
            client_key_pem=None,
        )

    def otherwise(self, handler: Handler) -> None:
        self.stream()(handler)

    def reply(self, body: Any = None, *, status: int = 200, **headers: str) -> Step:
        """One answer with a JSON (or str: plain) body; header names are written with underscores."""
        data = body.encode() if isinstance(body, str) else json.dumps(body or {}).encode()

        def step(handler: Handler) -> None:
            handler.send_response(status)
            for name, value in headers.items():
                handler.send_header(name.replace("_", "-"), value)
            handler.send_header("content-length", str(len(data)))
            handler.end_headers()
            handler.wfile.write(data)

        return step

    def refuse(self, status: int, reason: str = "", **headers: str) -> Step:
        """An error as the API server sends it."""
        body = {"kind": "Status", "code": status, "reason": reason, "message": f"{reason} it is"}
        return self.reply(body, status=status, **headers)

    def page(self, *items: Any, version: str = "10", more: str = "") -> Step:
        """A page of a ConfigMapList."""
        metadata = {"resourceVersion": version} | ({"continue": more} if more else {})
        return self.reply({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": list(items)})

    def stream(self, *events: Any, then: Literal["end", "cut", "silence"] = "silence") -> Step:
        """A watch: one JSON line per event (bytes go out as they are), then what ``then`` says."""

        def step(handler: Handler) -> None:
            handler.send_response(200)
            handler.send_header("transfer-encoding", "chunked")
            handler.end_headers()
            for event in events:
                line = event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n"
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            if then == "silence":
                self.over.wait(30)
            handler.wfile.write(b"0\r\n\r\n") if then == "end" else handler.cut()

        return step

    def hang_up(self) -> Step:
        """Close without an answer, as a server does with a kept-alive connection it no longer wants."""
        return Handler.cut

    def slow(self, seconds: float = 30) -> Step:
        """Headers at once, the body never."""

        def step(handler: Handler) -> None:
            handler.send_response(200)
            handler.send_header("content-length", "100")
            handler.end_headers()
            self.over.wait(seconds)

        return step


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.over.set()
        running.shutdown()
        thread.join()


@pytest.fixture
def kube(server: FakeServer) -> Iterator[RawKube]:
    client = RawKube(server.connection, timeout=5)
    yield client
    client.close()


@pytest.fixture
def make_object() -> Callable[..., dict[str, Any]]:
    """A ConfigMap as the API server would return it."""

    def make(name: str = "a", version: int = 1, *, namespace: str = "ns", owner: str = "", **metadata: Any) -> Any:
        if owner:
            metadata["ownerReferences"] = [{"uid": "someone"}, {"uid": owner, "controller": True}]
        inner = {"name": name, "namespace": namespace, "resourceVersion": str(version), "uid": f"uid-{name}"}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": inner | metadata}

    return make
