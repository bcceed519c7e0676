"""Watch connections, on the standard library's HTTP client.

Calls go through pyreqwest, watches do not: nothing can end its blocked read from another thread, not even closing the
client (0.15, tried), and a shutdown would have to wait for the watch's own end, up to ten minutes.
"""

import select
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

from kube.config import ConfigError, Connection
from kube.errors import Unreachable
from kube.transport import is_loopback

KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""A dead peer is noticed after a minute, long before the watch's own deadline."""
CHUNK = 1 << 16
CROWD = 0.05
"""Seconds for which a stream is left alone once it is drained: events come in crowds, and a crowd that is read at once
takes half the CPU of events that each wake their thread (bench/README.md)."""


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer without an end, and the socket it comes through."""

    answer: HTTPResponse
    sock: socket.socket

    @property
    def status(self) -> int:
        return self.answer.status

    def chunks(self) -> Iterator[bytes]:
        """What comes, the first of a crowd at once, the others ``CROWD`` seconds later."""
        ready = select.poll()
        ready.register(self.sock, select.POLLIN)
        while chunk := self.answer.read1(CHUNK):
            yield chunk
            if not (_pending(self.sock) or ready.poll(0)):
                time.sleep(CROWD)


class Streams:
    """Long answers from one API server, one connection each; ``close`` ends all of them at once."""

    def __init__(self, connection: Connection, *, user_agent: str, timeout: float) -> None:
        """``timeout``: seconds for the connection and the first byte of the answer."""
        self._url = urlsplit(connection.server)
        self._tls = _tls(connection) if self._url.scheme == "https" else None
        self._timeout = timeout
        self._headers = {"accept": "application/json", "user-agent": user_agent}
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._closed = False

    @contextmanager
    def open(self, target: str, token: str | None, *, silence: float) -> Iterator[Stream]:
        """GET ``target``; the answer, whose reads time out after ``silence`` seconds without a byte.

        Whatever goes wrong until the context is left is Unreachable.
        """
        http = self._connection()
        try:
            http.connect()
            with self._registered(http.sock):
                headers = self._headers | ({"authorization": f"Bearer {token}"} if token else {})
                http.request("GET", self._url.path + target, headers=headers)
                sock = http.sock  # an answer that ends with the connection takes it away from ``http``
                with http.getresponse() as response:
                    sock.settimeout(silence)
                    yield Stream(response, sock)
        except (OSError, HTTPException) as error:
            reason = "Timeout" if isinstance(error, TimeoutError) else "Transport"
            raise Unreachable(f"{type(error).__name__}: {error}", reason=reason) from error
        finally:
            http.close()

    def close(self) -> None:
        """End all streams and refuse new ones."""
        with self._lock:
            self._closed = True
            for sock in self._sockets:
                _shut(sock)

    @contextmanager
    def _registered(self, sock: socket.socket) -> Iterator[None]:
        """While it is, ``close`` finds the socket, which cannot be closed (and its number reused) meanwhile."""
        _keep_alive(sock)
        with self._lock:
            if self._closed:
                raise Unreachable("the client was closed", reason="Transport")
            self._sockets.add(sock)
        try:
            yield
        finally:
            with self._lock:
                self._sockets.discard(sock)

    def _connection(self) -> HTTPConnection:
        proxy = _proxy(self._url)
        host, port = (proxy or self._url).hostname or "", (proxy or self._url).port
        if self._tls is None:
            http = HTTPConnection(host, port, timeout=self._timeout)
        else:
            http = HTTPSConnection(host, port or 443, timeout=self._timeout, context=self._tls)
        if proxy:
            http.set_tunnel(self._url.hostname or "", self._url.port or (443 if self._tls else 80))
        return http


def _pending(sock: socket.socket) -> bool:
    """Whether bytes are decrypted already, which the system knows nothing of."""
    return isinstance(sock, ssl.SSLSocket) and sock.pending() > 0


def _proxy(url: SplitResult) -> SplitResult | None:
    """The proxy that the environment names for ``url``, as for other calls; never for loopback."""
    host = url.hostname or ""
    proxy = getproxies().get(url.scheme)
    return urlsplit(proxy) if proxy and not is_loopback(host) and not proxy_bypass(host) else None


def _tls(connection: Connection) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=connection.ca_pem.decode() if connection.ca_pem else None)
        if connection.client_cert_pem and connection.client_key_pem:
            _load_identity(context, connection.client_cert_pem + b"\n" + connection.client_key_pem)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"{connection.server}: certificates: {error}") from error
    context.verify_flags &= (
        ~ssl.VERIFY_X509_STRICT
    )  # EKS CAs lack extensions it asks for: kubernetes-client/python#2394
    if connection.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _load_identity(context: ssl.SSLContext, pem: bytes) -> None:
    """Python's ssl reads certificates from files only; this one is ours alone and gone afterwards."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name)


def _keep_alive(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if hasattr(socket, name):  # not on every system
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _shut(sock: socket.socket) -> None:
    """Wakes the thread that reads; the method of an SSLSocket would take its state away under it."""
    try:
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
    except OSError:
        return  # already gone
