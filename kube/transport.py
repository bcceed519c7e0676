"""The HTTP client of all calls but watches: TLS, keep-alive, proxies; whatever goes wrong is ``Unreachable``.

pyreqwest (Rust) takes 0.7 of the CPU of ``http.client`` per call and a third of urllib3's. HTTP/2 cost the same with
8 threads and 15 % more with one.
"""

import ipaddress
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from urllib.parse import urlsplit

from pyreqwest.client import SyncClient, SyncClientBuilder
from pyreqwest.exceptions import BuilderError, PyreqwestError

from kube.config import ConfigError, Connection
from kube.errors import Unreachable

SYSTEM_CAS = ("SSL_CERT_FILE", "SSL_CERT_DIR")
BUILDING = threading.Lock()
IDLE = timedelta(seconds=60)
"""Idle connections are dropped before the API server drops them (after 90 s), under a write that cannot be repeated."""


def http_client(connection: Connection, *, user_agent: str, connect_timeout: float) -> SyncClient:
    """A pool of HTTP/1.1 connections to ``connection``, for any number of threads; ConfigError for unusable PEM data.

    Proxies come from the environment as for kubectl, but never for a server on loopback. The system's CAs are trusted
    only when the connection names none.
    """
    builder = (
        SyncClientBuilder()
        .user_agent(user_agent)
        .follow_redirects(False)  # a redirect would carry the token elsewhere
        .connect_timeout(timedelta(seconds=connect_timeout))
        .pool_idle_timeout(IDLE)
        .gzip(False)  # compressing lists costs more CPU on both sides than a cluster's network does
        .brotli(False)
        .zstd(False)
        .deflate(False)
        .danger_accept_invalid_certs(connection.insecure)
    )
    if is_loopback(urlsplit(connection.server).hostname or ""):
        builder = builder.no_proxy()
    try:
        with _system_cas(trusted=not connection.ca_pem):
            return _trusting(builder, connection).build()
    except BuilderError as error:
        raise ConfigError(f"{connection.server}: certificates: {_explained(error)}") from error
    except ValueError as error:
        raise ConfigError(f"{connection.server}: certificates: {error}") from error


def _trusting(builder: SyncClientBuilder, connection: Connection) -> SyncClientBuilder:
    if connection.ca_pem:
        builder = builder.add_root_certificate_pem(connection.ca_pem)
    if connection.client_cert_pem and connection.client_key_pem:
        builder = builder.identity_pem(connection.client_cert_pem + b"\n" + connection.client_key_pem)
    return builder


@contextmanager
def _system_cas(*, trusted: bool) -> Iterator[None]:
    """While a client is built: whether it finds the system's CAs. pyreqwest has no option for it, but reads these."""
    if trusted:
        yield
        return
    with BUILDING:
        before = {name: os.environ.pop(name, None) for name in SYSTEM_CAS}
        os.environ["SSL_CERT_FILE"] = os.devnull
        try:
            yield
        finally:
            del os.environ["SSL_CERT_FILE"]
            os.environ.update({name: value for name, value in before.items() if value is not None})


def is_loopback(host: str) -> bool:
    """Whether ``host``, an address or a name, is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Answering:
    """Within it every failure of the transport becomes Unreachable, with the innermost cause in the message.

    A class, since a generator would take a third of what a call costs in Python.
    """

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, PyreqwestError):
            reason = "Timeout" if isinstance(error, TimeoutError) else "Transport"
            raise Unreachable(_explained(error), reason=reason) from error


def _explained(error: PyreqwestError) -> str:
    causes = (getattr(error, "details", None) or {}).get("causes") or []
    return f"{error.message}: {causes[-1]['message']}" if causes else error.message
