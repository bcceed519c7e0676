"""What the kubelet and Prometheus ask of a process: ``/healthz``, ``/readyz``, ``/metrics``, over plain HTTP."""

import contextlib
import ipaddress
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import orjson

LOCALHOST = "127.0.0.1"
REQUEST_SECONDS = 5.0
JSON = "application/json"


class SettingError(ValueError):
    """An option with a value that is not allowed; the text says what is."""

    def __init__(self, option: str, allowed: str, got: object) -> None:
        super().__init__(f'--{option}: {allowed} (got "{got}")')


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen: an IP address and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        return ipaddress.ip_address(self.host).is_loopback

    @property
    def reachable_host(self) -> str:
        """The host to call to reach a listener here from this machine."""
        ip = ipaddress.ip_address(self.host)
        if not ip.is_unspecified:
            return self.host
        return LOCALHOST if ip.version == 4 else "::1"


@dataclass(frozen=True, slots=True)
class Answer:
    status: HTTPStatus
    content_type: str
    body: bytes


def address(option: str, text: str) -> Address:
    """``HOST:PORT`` (IPv6 in brackets, localhost for 127.0.0.1). SettingError otherwise."""
    host, _, port = text.rpartition(":")
    host = LOCALHOST if host == "localhost" else host.removeprefix("[").removesuffix("]")
    try:
        ipaddress.ip_address(host)
        number = int(port) if port.isascii() and port.isdigit() else 0
    except ValueError:
        number = 0
    if not 0 < number < 2**16:
        raise SettingError(option, "must be HOST:PORT, an IP address or localhost and a port from 1 to 65535", text)
    return Address(host, number)


def listen(option: str, address: Address) -> socket.socket:
    """A listening socket; SettingError when the address is taken."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family)
    except OSError as error:
        raise SettingError(option, f"must be free to listen on: {error.strerror}", address) from error


def serve(listening: socket.socket, routes: Mapping[str, Callable[[], Answer]]) -> None:
    """Answer GET on a listening socket in threads that end with the process."""
    server = ThreadingHTTPServer(("", 0), _handler(routes), bind_and_activate=False)
    server.socket.close()
    server.socket = listening
    threading.Thread(target=server.serve_forever, daemon=True).start()


def as_json(good: bool, **content: object) -> Answer:
    """200 or 503, with ``content``."""
    return Answer(HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE, JSON, orjson.dumps(content))


def _handler(routes: Mapping[str, Callable[[], Answer]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = REQUEST_SECONDS

        def do_GET(self) -> None:
            route = routes.get(self.path.partition("?")[0])
            answer = route() if route else Answer(HTTPStatus.NOT_FOUND, JSON, orjson.dumps({"paths": list(routes)}))
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body)))
            with contextlib.suppress(ConnectionError):  # a probe that waits no longer: no stack in the log for that
                self.end_headers()
                self.wfile.write(answer.body)

        def version_string(self) -> str:
            return "signalbox"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  probes come every few seconds
            pass

    return Handler
