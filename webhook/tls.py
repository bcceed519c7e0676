"""The TLS context of the webhook, whose certificate can be renewed without a restart."""

import logging
import ssl
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kube.listeners import SettingError
from webhook.connections import ServerContext, remember_name
from webhook.settings import TlsFiles

if TYPE_CHECKING:
    from prometheus_client import Counter, Gauge

LOOK_SECONDS = 1.0
"""How often at most the certificate files are looked at."""

Stamp = tuple[int, ...]
log = logging.getLogger("signalbox.webhook")


class Certificates:
    """The TLS context of this process, exchanged when both files have changed and belong together.

    gunicorn by itself reads the files anew for every connection: dear, and while the pair is half written no handshake
    succeeds. Here the pair in use stays until another one has been loaded whole. A context in use is never changed.
    """

    def __init__(self, files: TlsFiles, clock: Callable[[], float] = time.monotonic) -> None:
        """SettingError when the files do not hold a certificate and its key. ``clock`` counts seconds."""
        self._files = files
        self._clock = clock
        self._lock = threading.Lock()
        self._looked = clock()
        self._stamp = self._refused = stamp(*files.paths)
        try:
            self._context, self._expires = server_context(files), expiry(files.cert)
        except OSError as error:
            allowed = f"must be a certificate that fits --key-file: {error}"
            raise SettingError("cert-file", allowed, files.cert) from error

    def context(self) -> ServerContext:
        """The context for the next handshake."""
        with self._lock:
            if self._clock() - self._looked >= LOOK_SECONDS:
                self._look()
                self._looked = self._clock()
            return self._context

    def _look(self) -> None:
        seen = stamp(*self._files.paths)  # before reading: a file that changes meanwhile is seen again next time
        if seen == self._stamp:
            return
        try:
            context, expires = server_context(self._files), expiry(self._files.cert)
        except OSError as error:
            self._keep_old(seen, error)
        else:
            self._context, self._expires = context, expires
            self._stamp = seen
            tell_expiry(self)
            log.info("certificate renewed", extra={"cert_file": str(self._files.cert)})

    def expires(self) -> float:
        """When the pair in use expires, in seconds since 1970."""
        return self._expires

    def _keep_old(self, seen: Stamp, error: OSError) -> None:
        if seen != self._refused:
            self._refused = seen
            reload_failures().inc()
            log.warning(
                "certificate unusable, keeping the old one",
                extra={"cert_file": str(self._files.cert), "error": str(error)},
            )


def server_context(files: TlsFiles) -> ServerContext:
    """TLS 1.2 or newer with this pair. OSError (SSLError is one) when a file is missing, broken or of another pair."""
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(files.cert, files.key, password="")
    if files.client_ca is not None:
        context.load_verify_locations(files.client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
        context.client_names = files.client_names
        context.sni_callback = remember_name
    return context


def expiry(cert_file: Path) -> float:
    """When the first certificate in the file expires, in seconds since 1970. OSError when it cannot be read."""
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(cert_file.read_bytes()).not_valid_after_utc.timestamp()
    except ValueError as error:
        raise OSError(f"{cert_file}: {error}") from error


def stamp(*files: Path) -> Stamp:
    """What tells one content of the files from another without reading them; a missing file counts as empty."""
    return tuple(number for file in files for number in _stamp_of(file))


def _stamp_of(file: Path) -> Stamp:
    try:
        seen = file.stat()
    except OSError:
        return (0, 0, 0)
    return seen.st_mtime_ns, seen.st_ino, seen.st_size


@cache
def reload_failures() -> "Counter":
    """Made in a worker, because prometheus_client looks for PROMETHEUS_MULTIPROC_DIR when it is imported.

    Each worker that meets a broken pair counts it.
    """
    from prometheus_client import Counter

    return Counter(
        "signalbox_webhook_certificate_reload_failures",
        "Changes of the certificate files that could not be loaded; the pair before stayed in use.",
    )


@cache
def expiry_gauge() -> "Gauge":
    from prometheus_client import Gauge

    return Gauge(
        "signalbox_webhook_certificate_expiry_timestamp_seconds",
        "When the served certificate expires; the earliest of all workers.",
        multiprocess_mode="livemin",
    )


def tell_expiry(certificates: "Certificates | None") -> None:
    """Sets the worker's gauge; also makes the counter, so that it is there before anything has failed."""
    reload_failures()
    if certificates is not None:
        expiry_gauge().set(certificates.expires())
