"""``signalbox history serve``: the pages and the REST interface, and with --ingest-token-file the records of others."""

from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Any

import click
from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]

from history.api.auth import Access
from kube.listeners import Address, Answer, SettingError, address, as_json, listen
from kube.listeners import serve as answer
from signalbox import history_options
from signalbox.history_options import FILE, Keeping
from webhook.settings import LOG_LEVELS

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

    from history.reader import Reader

THREADS = 8
REQUEST_SECONDS = 30
DRAIN_SECONDS = 10
USER_HEADER = "X-Forwarded-User"


class Server(BaseApplication):  # type: ignore[misc]
    """One process with threads: SQLite has one writer, and the queries wait for the database, not for Python."""

    def __init__(self, bind: Address, make: "Callable[[], WSGIApplication]", on_exit: Callable[[], None]) -> None:
        self._bind, self._make, self._on_exit = bind, make, on_exit
        super().__init__()

    def load_config(self) -> None:
        options = {
            "bind": [str(self._bind)],
            "worker_class": "gthread",
            "workers": 1,
            "threads": THREADS,
            "timeout": REQUEST_SECONDS,
            "graceful_timeout": DRAIN_SECONDS,
            "worker_exit": lambda _server, _worker: self._on_exit(),
            "control_socket_disable": True,
            "accesslog": None,
        }
        for name, value in options.items():
            self.cfg.set(name, value)

    def load(self) -> "WSGIApplication":
        return self._make()


@click.command("serve", context_settings={"show_default": True})
@click.option("--bind", default="127.0.0.1:8090", metavar="HOST:PORT", help="Where to serve pages and REST.")
@click.option("--history-url", default="", help="SQLAlchemy URL  [default: the local cluster's]")
@click.option("--history-url-file", type=FILE, help="File with that URL, as of a mounted Secret.")
@click.option(
    "--auth", type=click.Choice(["token", "proxy-header", "none"]), help="Who may read; none on loopback only."
)
@click.option("--token-file", type=FILE, help="The token that readers send.")
@click.option("--user-header", default=USER_HEADER, help="With proxy-header: the header that names the user.")
@click.option("--ingest-token-file", type=FILE, help="Take records from processes that send this token.")
@click.option("--health-bind", metavar="HOST:PORT", help="Where to serve /healthz and /readyz beside --bind.")
@click.option("--metrics-bind", metavar="HOST:PORT", help="Where to serve /metrics; absent: nowhere.")
@click.option("--log-level", default="info", type=click.Choice(LOG_LEVELS))
@history_options.keeping
def serve(**options: Any) -> None:
    """Serve what ran, read-only, until SIGTERM."""
    keeping = history_options.taken(options)
    try:
        bind = address("bind", options["bind"])
        access = checked_access(
            bind, options["auth"], options["token_file"], options["user_header"], options["ingest_token_file"]
        )
        process = Process(
            database(options["history_url"], options["history_url_file"]), access, bind, keeping, options["log_level"]
        )
        process.listen(options["health_bind"], options["metrics_bind"])
        Server(bind, process.application, process.close).run()
    except (SettingError, ValueError) as error:
        raise click.UsageError(str(error)) from error


def database(url: str, file: Path | None) -> str:
    """The URL that is given, or in the file. Raises SettingError when there is none where it should be."""
    if file is None:
        return url or history_options.local_history()
    if url:
        raise SettingError("history-url-file", "must not be given together with --history-url", file)
    if not (file.is_file() and (found := file.read_text().strip())):
        raise SettingError("history-url-file", "must be an existing file that holds a URL", file)
    return found


def checked_access(
    bind: Address, auth: str | None, token_file: Path | None, user_header: str, ingest_token_file: Path | None
) -> Access:
    """Who may do what. Raises SettingError where everybody in the network could read, or a token is missing."""
    auth = auth or ("token" if token_file else "none")
    if auth == "none" and not bind.is_loopback:
        raise SettingError("auth", "must be token or proxy-header where --bind is no loopback address", auth)
    if (auth == "token") != (token_file is not None):
        raise SettingError("token-file", "must be given with --auth token, and only with it", token_file or "")
    for name, file in (("token-file", token_file), ("ingest-token-file", ingest_token_file)):
        if file is not None and not (file.is_file() and file.read_text().strip()):
            raise SettingError(name, "must be an existing file that holds a token", file)
    return Access(token_file, user_header if auth == "proxy-header" else "", ingest_token_file)


class Process:
    """What the worker has: made after the fork, since it has threads and connections."""

    def __init__(self, url: str, access: Access, bind: Address, keeping: Keeping, log_level: str) -> None:
        from history.engine import parse

        parse(url)  # a wrong URL stops the start
        self._url, self._access, self._bind, self._keeping, self._log_level = url, access, bind, keeping, log_level
        self._closing: list[Callable[[], None]] = []
        self._health: socket | None = None
        self._metrics: socket | None = None

    def listen(self, health_bind: str | None, metrics_bind: str | None) -> None:
        """Take the addresses before the fork: what is wrong stops the start, a worker that is replaced keeps them."""
        self._health = listen("health-bind", address("health-bind", health_bind)) if health_bind else None
        self._metrics = listen("metrics-bind", address("metrics-bind", metrics_bind)) if metrics_bind else None

    def application(self) -> "WSGIApplication":
        from history.api.app import LOOPBACK_HOSTS, create_app
        from history.reader import Reader
        from history.store import Store
        from signalbox.logs import configure

        configure(self._log_level)
        store = None
        if self._access.ingest_token_file:
            store = Store(self._url, notify=bool(self._keeping.notify_url))
            store.upgrade()
            chores = history_options.open_chores(Store(self._url), self._keeping)
            self._closing += [chores.close, store.close]
        reader = Reader(self._url)
        self._closing.append(reader.close)
        self._answer_probes(reader)
        is_open = self._access.token_file is None and not self._access.user_header
        return create_app(reader, self._access, store, LOOPBACK_HOSTS if is_open else None)

    def _answer_probes(self, reader: "Reader") -> None:
        """In threads of the worker, which has the counts."""
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        from history.api.counted import Counted

        def ready() -> Answer:
            good = reader.answers()
            return as_json(good, ready=good)

        if self._health:
            answer(self._health, {"/healthz": lambda: as_json(True, alive=True), "/readyz": ready})
        counted = Counted(reader)

        def metrics() -> Answer:
            counted.refresh()
            return Answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest())

        if self._metrics:
            answer(self._metrics, {"/metrics": metrics})

    def close(self) -> None:
        for close in self._closing:
            close()
