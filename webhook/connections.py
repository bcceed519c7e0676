"""How long a client may take: gunicorn's thread worker, in which no client that dawdles holds a thread for long.

By itself gunicorn gives a new connection a thread for 5 s before it has said anything, and then for as long as the
handshake or the request takes: sixteen silent clients would hold up every review.
"""

import errno
import logging
import selectors
import ssl
import time
from functools import partial
from typing import Any

from gunicorn import util  # type: ignore[import-untyped]
from gunicorn.workers.gthread import TConn, ThreadWorker  # type: ignore[import-untyped]

from webhook.settings import PROBE_NAME

FIRST_BYTE_SECONDS = 5.0
HANDSHAKE_SECONDS = 3.0
REQUEST_SECONDS = 5.0
"""For a whole request; the API server itself waits 3 s at most for the answer."""
LINGER_SECONDS = 0.2
"""For a client to read the end of an answer; the worker's main loop stands still meanwhile."""

NO_CERTIFICATE = "PEER_DID_NOT_RETURN_A_CERTIFICATE"
"""As OpenSSL calls it."""

log = logging.getLogger("signalbox.webhook")


class TimedSocket(ssl.SSLSocket):
    """The server's end of a TLS connection. "Blocking" means: at most until the deadline of the request.

    gunicorn makes the socket blocking when it begins to read a request, which sets the deadline.
    """

    _deadline = 0.0
    asked_name: str | None = None
    """The server name that the client sent."""

    def do_handshake(self, block: bool = False) -> None:
        self.settimeout(HANDSHAKE_SECONDS)
        try:
            super().do_handshake(block)
        except TimeoutError as late:
            raise _gave_up("handshake") from late
        except ssl.SSLError as error:
            if reason := _refusal(error):
                raise _refused(self, reason) from error
            raise
        _check_name(self)
        self.setblocking(True)

    def setblocking(self, flag: bool) -> None:
        if flag:
            self._deadline = time.monotonic() + REQUEST_SECONDS
        self.settimeout(REQUEST_SECONDS if flag else 0.0)

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise _gave_up("request")
        timeout = self.gettimeout()
        if timeout is None or timeout > left:
            self.settimeout(left)
        try:
            return super().recv(buflen, flags)
        except TimeoutError as late:
            raise _gave_up("request") from late

    def sendall(self, data: Any, flags: int = 0) -> None:
        self.settimeout(REQUEST_SECONDS)
        try:
            super().sendall(data, flags)
        except TimeoutError as late:
            raise _gave_up("answer") from late


class ServerContext(ssl.SSLContext):
    """TLS 1.2 or newer. ``client_names``: whose client certificates are welcome; empty: all that verify."""

    sslsocket_class = TimedSocket
    client_names: frozenset[str] = frozenset()


class Connection(TConn):  # type: ignore[misc]
    def close(self, graceful: bool = False) -> None:
        if graceful:
            util.close_graceful(self.sock, timeout=LINGER_SECONDS)
        else:
            util.close(self.sock)


class Worker(ThreadWorker):  # type: ignore[misc]
    """A new connection waits with the poller, not in a thread, until its client has said something."""

    def accept(self, listener: Any) -> None:
        try:
            client, address = listener.accept()
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK):
                raise
            return
        self.nr_conns += 1
        connection = Connection(self.cfg, client, address, listener.getsockname())
        connection.timeout = time.monotonic() + FIRST_BYTE_SECONDS
        self.pending_conns.append(connection)
        self.poller.register(client, selectors.EVENT_READ, partial(self.on_pending_socket_readable, connection))


def names_of(certificate: Any) -> set[str]:
    """Common names and DNS names in what ``getpeercert`` gives."""
    found = certificate or {}
    common = {value for part in found.get("subject", ()) for key, value in part if key == "commonName"}
    return common | {value for key, value in found.get("subjectAltName", ()) if key == "DNS"}


def remember_name(sock: ssl.SSLObject | ssl.SSLSocket, name: str | None, _context: ssl.SSLContext) -> None:
    """To be a context's ``sni_callback``."""
    if isinstance(sock, TimedSocket):
        sock.asked_name = name


def _check_name(sock: TimedSocket) -> None:
    wanted: frozenset[str] = getattr(sock.context, "client_names", frozenset())
    found = names_of(sock.getpeercert())
    if wanted and not wanted & found:
        reason = f"its certificate is for {', '.join(sorted(found))}, not for {', '.join(sorted(wanted))}"
        raise _refused(sock, reason)


def _refusal(error: ssl.SSLError) -> str:
    """Why a client is not let in; empty for other faults of a handshake, which are the client's affair."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not of --client-ca: {error.verify_message}"
    return "it shows no certificate" if error.reason == NO_CERTIFICATE else ""


def _refused(sock: TimedSocket, reason: str) -> ConnectionResetError:
    """As gunicorn expects of a client that went away: one line tells of it, and none of our own probe."""
    if not _is_own_probe(sock):
        log.warning("client refused", extra={"client": sock.getpeername()[0], "reason": reason})
    return ConnectionResetError(errno.ECONNRESET, reason)


def _is_own_probe(sock: TimedSocket) -> bool:
    """The name alone proves nothing: it must also come from the address it goes to."""
    return sock.asked_name == PROBE_NAME and sock.getpeername()[0] == sock.getsockname()[0]


def _gave_up(what: str) -> ConnectionResetError:
    """As gunicorn expects of a client that went away; it would log a stack for anything else."""
    return ConnectionResetError(errno.ECONNRESET, f"the client took too long for its {what}")
