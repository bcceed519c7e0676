"""``signalbox webhook``: run the admission webhook. Imports no Kubernetes client: 2-3 s and 142 MB."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kube.config import ConfigError, Connection, connect, in_cluster, is_in_cluster
from kube.listeners import SettingError
from webhook.settings import LOG_LEVELS, checked

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

FILE = click.Path(path_type=Path)


@click.command(context_settings={"show_default": True})
@click.option("--bind", default="0.0.0.0:9443", metavar="HOST:PORT", help="Where to serve /mutate and /validate.")
@click.option("--no-tls", is_flag=True, help="Plain HTTP, for development; only on a loopback address.")
@click.option("--cert-file", type=FILE, help="PEM certificate; read again whenever it changes.")
@click.option("--key-file", type=FILE, help="PEM private key of the certificate.")
@click.option("--client-ca", type=FILE, help="PEM: let in only clients (API servers) with a certificate of this CA.")
@click.option("--client-name", multiple=True, help="And only with this common or DNS name; repeatable.")
@click.option("--health-bind", default="0.0.0.0:8081", metavar="HOST:PORT", help="Where to serve /healthz and /readyz.")
@click.option("--metrics-bind", default="0.0.0.0:8080", metavar="HOST:PORT", help="Where to serve /metrics.")
@click.option("--workers", type=int, default=2, help="Processes.")
@click.option("--threads", type=int, default=8, help="Threads of each process.")
@click.option("--kubeconfig", type=FILE, help="To read scaled jobs and the caBundle; not needed in a cluster.")
@click.option("--log-level", default="info", metavar="|".join(LOG_LEVELS), help="What to log at least.")
def webhook(kubeconfig: Path | None, **options: Any) -> None:
    """Serve the admission webhook until SIGTERM, then answer what is open and end.

    Every option can also be given in the environment, as SIGNALBOX_WEBHOOK_BIND and so on.
    """
    try:
        settings = checked(**options)
        connection = _connection(kubeconfig)
        from webhook.gunicorn import serve

        serve(settings, partial(_application, settings.log_level, connection), kubeconfig)
    except (SettingError, ConfigError) as error:
        raise click.UsageError(str(error)) from error


def _connection(kubeconfig: Path | None) -> Connection | None:
    """Where jobs that are scaled are read; None where no cluster is known, for development."""
    if kubeconfig is not None:
        return connect(str(kubeconfig))
    return in_cluster() if is_in_cluster() else None


def _application(log_level: str, connection: Connection | None) -> "WSGIApplication":
    """The app, imported in each worker: the master stays small and starts at once."""
    from signalbox.logs import configure
    from webhook.app import create_app
    from webhook.jobs import reader

    configure(log_level)
    return create_app(reader(connection) if connection else None)
