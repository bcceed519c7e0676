"""The webhook's server: gunicorn with threads, and TLS whose certificate can be renewed without a restart."""

import logging
import os
import ssl
import tempfile
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from wsgiref.types import WSGIApplication

import orjson
from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]
from gunicorn.glogging import Logger  # type: ignore[import-untyped]

from kube.listeners import SettingError
from webhook import ops
from webhook.settings import Settings

if TYPE_CHECKING:
    from prometheus_client import Counter

METRICS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
MEMORY = Path("/dev/shm")  # noqa: S108  a heartbeat file on disk can stall a worker
LOOK_SECONDS = 1.0
"""How often at most the certificate files are looked at."""

Stamp = tuple[int, ...]
log = logging.getLogger("signalbox.webhook")


def serve(settings: Settings, load: Callable[[], WSGIApplication]) -> None:
    """Serve until SIGTERM; then answer what is open and raise SystemExit. ``load`` makes the app, once in each worker.

    SettingError when the certificate and key cannot be used, or a listener's address is taken.
    """
    log_to_stderr(settings.log_level)
    certificates = Certificates(*settings.tls_files) if settings.tls_files else None
    own_directory = prepare_metrics()
    listeners = ops.start(settings)

    def on_exit(_arbiter: object) -> None:  # the arbiter's alone; code after run() would be executed by workers too
        listeners.terminate()
        if own_directory:
            wipe(own_directory)
            own_directory.rmdir()

    Application(
        {**options(settings), **tls_options(settings, certificates), "on_exit": on_exit},
        load,
    ).run()


def options(settings: Settings) -> dict[str, Any]:
    """gunicorn's settings for ``settings``, without TLS."""
    return {
        "bind": str(settings.bind),
        "worker_class": "gthread",
        "workers": settings.workers,
        "threads": settings.threads,
        "keepalive": 120,  # the API server's client drops idle connections after 90 s, so it is never we who do
        "max_requests": 0,  # resets connections that are in use: gunicorn#3038
        "graceful_timeout": 25,
        "control_socket_disable": True,
        "worker_tmp_dir": str(MEMORY) if MEMORY.is_dir() else None,
        "proc_name": "signalbox-webhook",
        "loglevel": settings.log_level,
        "logger_class": JsonLogger,
        "accesslog": None,  # the app writes one line for each review
        "post_worker_init": lambda _worker: reload_failures(),
        "child_exit": lambda _arbiter, worker: forget_metrics(worker.pid),
    }


def tls_options(settings: Settings, certificates: "Certificates | None") -> dict[str, Any]:
    if certificates is None:
        return {}
    return {
        "certfile": str(settings.cert_file),
        "keyfile": str(settings.key_file),
        "ssl_context": lambda _config, _default: certificates.context(),
    }


class Application(BaseApplication):  # type: ignore[misc]
    """gunicorn configured by us alone: no command line, no file, no GUNICORN_CMD_ARGS."""

    def __init__(self, configuration: dict[str, Any], load: Callable[[], WSGIApplication]) -> None:
        self._configuration = configuration
        self._load = load
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._configuration.items():
            self.cfg.set(name, value)

    def load(self) -> WSGIApplication:
        return self._load()


class Certificates:
    """The TLS context of this process, exchanged when both files have changed and belong together.

    gunicorn by itself reads the files anew for every connection: dear, and while the pair is half written no handshake
    succeeds. Here the pair in use stays until another one has been loaded whole. A context in use is never changed.
    """

    def __init__(self, cert_file: Path, key_file: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """SettingError when the files do not hold a certificate and its key. ``clock`` counts seconds."""
        self._files = (cert_file, key_file)
        self._clock = clock
        self._lock = threading.Lock()
        self._looked = clock()
        self._stamp = self._refused = stamp(*self._files)
        try:
            self._context = server_context(*self._files)
        except OSError as error:
            raise SettingError(
                "cert-file", f"must be a certificate that fits --key-file: {error}", cert_file
            ) from error

    def context(self) -> ssl.SSLContext:
        """The context for the next handshake."""
        with self._lock:
            if self._clock() - self._looked >= LOOK_SECONDS:
                self._look()
                self._looked = self._clock()
            return self._context

    def _look(self) -> None:
        seen = stamp(*self._files)  # before reading: a file that changes meanwhile is seen again next time
        if seen == self._stamp:
            return
        try:
            self._context = server_context(*self._files)
        except OSError as error:
            self._keep_old(seen, error)
        else:
            self._stamp = seen
            log.info("certificate renewed", extra={"cert_file": str(self._files[0])})

    def _keep_old(self, seen: Stamp, error: OSError) -> None:
        if seen != self._refused:
            self._refused = seen
            reload_failures().inc()
            log.warning(
                "certificate unusable, keeping the old one",
                extra={
                    "cert_file": str(self._files[0]),
                    "error": str(error),
                },
            )


def server_context(cert_file: Path, key_file: Path) -> ssl.SSLContext:
    """TLS 1.2 or newer with this pair. OSError (SSLError is one) when a file is missing, broken or of another pair."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(cert_file, key_file, password="")
    return context


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


def prepare_metrics() -> Path | None:
    """Make and empty the directory the workers keep their metrics in; returns it when it is of our own making."""
    given = os.environ.get(METRICS_VARIABLE)
    own = (
        None if given else Path(tempfile.mkdtemp(prefix="signalbox-metrics-", dir=MEMORY if MEMORY.is_dir() else None))
    )
    directory = own or Path(given or "")
    directory.mkdir(parents=True, exist_ok=True)
    wipe(directory)
    os.environ[METRICS_VARIABLE] = str(directory)
    return own


def wipe(directory: Path) -> None:
    """Remove the metrics of processes that are gone; nothing else, whatever directory was named."""
    for file in directory.glob("*.db"):
        file.unlink(missing_ok=True)


def forget_metrics(pid: int) -> None:
    from prometheus_client.multiprocess import mark_process_dead

    mark_process_dead(pid)  # type: ignore[no-untyped-call]


def log_to_stderr(level: str) -> None:
    """One JSON object per line on stderr for everything logged under ``signalbox``."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLine())
    logger = logging.getLogger("signalbox")
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False


class JsonLine(logging.Formatter):
    """A constant message plus the fields given as ``extra``."""

    STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "pid": record.process,
            "message": record.getMessage(),
        }
        line.update({name: value for name, value in vars(record).items() if name not in self.STANDARD})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


class JsonLogger(Logger):  # type: ignore[misc]
    """gunicorn's own messages in the same form."""

    def setup(self, cfg: object) -> None:
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(JsonLine())
