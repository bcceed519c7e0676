"""``signalbox webhook``: run the admission webhook. Imports no Kubernetes client: 2-3 s and 142 MB."""

import atexit
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kube.config import ConfigError, Connection, connect, in_cluster, is_in_cluster
from kube.listeners import SettingError
from signalbox import history_options
from webhook.settings import LOG_LEVELS, checked

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

    from policy.model import PolicySet
    from schemas.records import Recorder
    from webhook.policies import Book

FILE = click.Path(path_type=Path)
MOST_RECORDS = 5_000
"""Records that may wait in one worker while the history cannot be had: some 50 MB."""
FLUSH_SECONDS = 5.0
DIRECTORY = click.Path(path_type=Path, exists=True, file_okay=False)


@click.command(context_settings={"show_default": True})
@click.option("--bind", default="0.0.0.0:9443", metavar="HOST:PORT", help="Where to serve reviews.")
@click.option("--no-tls", is_flag=True, help="Plain HTTP, for development; only on a loopback address.")
@click.option("--cert-file", type=FILE, help="PEM certificate; read again whenever it changes.")
@click.option("--key-file", type=FILE, help="PEM private key of the certificate.")
@click.option("--client-ca", type=FILE, help="PEM: let in only clients (API servers) with a certificate of this CA.")
@click.option("--client-name", multiple=True, help="And only with this common or DNS name; repeatable.")
@click.option("--health-bind", default="0.0.0.0:8081", metavar="HOST:PORT", help="Where to serve /healthz and /readyz.")
@click.option("--metrics-bind", default="0.0.0.0:8080", metavar="HOST:PORT", help="Where to serve /metrics.")
@click.option("--workers", type=int, default=2, help="Processes.")
@click.option("--threads", type=int, default=8, help="Threads of each process.")
@click.option("--kubeconfig", type=FILE, help="To read policies, scaled jobs, the caBundle; not needed in a cluster.")
@click.option("--policy-dir", type=DIRECTORY, help="Policies in files, instead of those of the cluster.")
@click.option("--log-level", default="info", metavar="|".join(LOG_LEVELS), help="What to log at least.")
@history_options.sink
def webhook(kubeconfig: Path | None, policy_dir: Path | None, **options: Any) -> None:
    """Serve the admission webhook until SIGTERM, then answer what is open and end.

    Every option can also be given in the environment, as SIGNALBOX_WEBHOOK_BIND and so on.
    """
    try:
        record = _recording(options)
        settings = checked(**options)
        connection = _connection(kubeconfig)
        from webhook.gunicorn import serve

        application = partial(_application, settings.log_level, connection, _policies(policy_dir), record)
        serve(settings, application, kubeconfig)
    except (SettingError, ConfigError, ValueError) as error:
        raise click.UsageError(str(error)) from error


def _recording(options: dict[str, Any]) -> "Callable[[], Recorder]":
    """Takes the options of the history; what starts the recorder in a worker. ValueError for what can never work."""
    names = ("history_url", "history_url_file", "history_token_file", "region")
    url, file, token_file, region = (options.pop(name) for name in names)
    if url := history_options.url_of(url, file):
        from history import address

        address.check(url)
    return partial(_recorder, url, token_file, region)


def _recorder(url: str, token_file: Path | None, region: str | None) -> "Recorder":
    """Started in each worker: it has a thread, which no fork takes along."""
    from schemas.records import NoRecorder

    if not url:
        return NoRecorder()
    from history.sink import recorder
    from webhook.recording import Recording

    writer = recorder(url, token_file, region=region, max_keys=MOST_RECORDS)
    atexit.register(writer.close, FLUSH_SECONDS)
    return Recording(writer)


def _connection(kubeconfig: Path | None) -> Connection | None:
    """Where jobs that are scaled are read; None where no cluster is known, for development."""
    if kubeconfig is not None:
        return connect(str(kubeconfig))
    return in_cluster() if is_in_cluster() else None


def _policies(directory: Path | None) -> "PolicySet | None":
    """Read before the workers start: a policy that is wrong stops the start."""
    if directory is None:
        return None
    from signalbox.policy_files import read_policies

    return read_policies([str(directory)])


def _application(
    log_level: str, connection: Connection | None, policies: "PolicySet | None", record: "Callable[[], Recorder]"
) -> "WSGIApplication":
    """The app, imported in each worker: the master stays small and starts at once."""
    from signalbox.logs import configure
    from webhook.app import create_app
    from webhook.jobs import reader

    configure(log_level)
    return create_app(reader(connection) if connection else None, _book(connection, policies), record())


def _book(connection: Connection | None, policies: "PolicySet | None") -> "Book | None":
    from datetime import UTC, datetime

    from webhook.policies import Bound, Watched

    if policies is not None:
        return Bound(policies, lambda: datetime.now(UTC))
    if connection is None:
        return None
    book = Watched(connection)
    book.start()
    atexit.register(book.stop)
    return book
