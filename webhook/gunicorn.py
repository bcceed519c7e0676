"""The webhook's server: gunicorn with threads, and TLS whose certificate can be renewed without a restart."""

import logging
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from wsgiref.types import WSGIApplication

import orjson
from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]
from gunicorn.glogging import Logger  # type: ignore[import-untyped]

from webhook import ops
from webhook.connections import Worker
from webhook.settings import Settings
from webhook.tls import Certificates, tell_expiry

METRICS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
MEMORY = Path("/dev/shm")  # noqa: S108  a heartbeat file on disk can stall a worker  # nosec B108


def serve(settings: Settings, load: Callable[[], WSGIApplication], kubeconfig: Path | None = None) -> None:
    """Serve until SIGTERM; then answer what is open and raise SystemExit. ``load`` makes the app, once in each worker.

    The live caBundle is read from the cluster of ``kubeconfig``, or from the one this process runs in.

    SettingError when the certificate and key cannot be used, or a listener's address is taken.
    """
    log_to_stderr(settings.log_level)
    certificates = Certificates(settings.tls_files) if settings.tls_files else None
    own_directory = prepare_metrics()
    listeners = ops.start(settings, kubeconfig)

    def on_exit(_arbiter: object) -> None:  # the arbiter's alone; code after run() would be executed by workers too
        listeners.terminate()
        if own_directory:
            wipe(own_directory)
            own_directory.rmdir()

    Application(
        {**options(settings, certificates), "on_exit": on_exit},
        load,
    ).run()


def options(settings: Settings, certificates: Certificates | None) -> dict[str, Any]:
    """gunicorn's settings for ``settings``."""
    return tls_options(settings, certificates) | {
        "bind": str(settings.bind),
        "worker_class": Worker,
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
        "post_worker_init": lambda _worker: tell_expiry(certificates),
        "child_exit": lambda _arbiter, worker: forget_metrics(worker.pid),
    }


def tls_options(settings: Settings, certificates: Certificates | None) -> dict[str, Any]:
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
