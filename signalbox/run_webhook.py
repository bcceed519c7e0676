"""``signalbox webhook``: run the admission webhook. Imports no Kubernetes client: 2-3 s and 142 MB."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webhook.settings import LOG_LEVELS, SettingError, checked

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

FILE = click.Path(path_type=Path)


@click.command(context_settings={"show_default": True})
@click.option("--bind", default="0.0.0.0:9443", metavar="HOST:PORT", help="Where to serve /mutate and /validate.")
@click.option("--no-tls", is_flag=True, help="Plain HTTP, for development; only on a loopback address.")
@click.option("--cert-file", type=FILE, help="PEM certificate; read again whenever it changes.")
@click.option("--key-file", type=FILE, help="PEM private key of the certificate.")
@click.option("--health-bind", default="0.0.0.0:8081", metavar="HOST:PORT", help="Where to serve /healthz and /readyz.")
@click.option("--metrics-bind", default="0.0.0.0:8080", metavar="HOST:PORT", help="Where to serve /metrics.")
@click.option("--workers", type=int, default=2, help="Processes.")
@click.option("--threads", type=int, default=8, help="Threads of each process.")
@click.option("--log-level", default="info", metavar="|".join(LOG_LEVELS), help="What to log at least.")
def webhook(**options: Any) -> None:
    """Serve the admission webhook until SIGTERM, then answer what is open and end.

    Every option can also be given in the environment, as SIGNALBOX_WEBHOOK_BIND and so on.
    """
    try:
        settings = checked(**options)
        from webhook.gunicorn import serve

        serve(settings, partial(_application, settings.log_level))
    except SettingError as error:
        raise click.UsageError(str(error)) from error


def _application(log_level: str) -> "WSGIApplication":
    """The app, imported in each worker: the master stays small and starts at once."""
    from signalbox.logs import configure
    from webhook.app import create_app

    configure(log_level)
    return create_app()
