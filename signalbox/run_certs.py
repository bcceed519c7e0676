"""``signalbox certs``: issue, renew and show the webhook's certificates."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import click
import orjson

from certs.bundles import published_bundles
from certs.files import write_pair
from certs.issue import Names
from certs.report import Report, Shown, report
from certs.rotate import Renewal
from certs.rotate import ensure as ensure_certificates
from certs.secrets import read_secrets
from certs.servers import finder
from kube.config import ConfigError, connect
from kube.errors import KubeError
from kube.raw import RawKube
from signalbox.keeping import BUNDLE_WAIT, SERVICE, SYSTEM_NAMESPACE, valid_names

F = TypeVar("F", bound=Callable[..., Any])


@click.group()
def certs() -> None:
    """The webhook's CA and server certificate, kept in two Secrets and two webhook configurations."""


def cluster_options(command: F) -> F:
    file = click.Path(path_type=Path, exists=True, dir_okay=False)
    kubeconfig = click.option(
        "--kubeconfig", type=file, help="Without it: in a pod its ServiceAccount, else $KUBECONFIG."
    )
    namespace = click.option("--namespace", default=SYSTEM_NAMESPACE, show_default=True, help="Where the Secrets are.")
    return kubeconfig(namespace(command))


@certs.command()
@cluster_options
@click.option("--service", default=SERVICE, show_default=True, help="The webhook's Service.")
@click.option("--extra-name", multiple=True, callback=valid_names, help="Another DNS name or IP address; repeatable.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Also write tls.crt, tls.key, ca.crt here."
)
@click.option("--renew", type=click.Choice(["ca", "server"]), help="Make a new one before its time.")
@click.option(
    "--bundle-wait",
    type=click.FloatRange(min=0),
    default=BUNDLE_WAIT,
    show_default=True,
    help="Seconds API servers get to notice a new CA before the webhook shows it.",
)
def ensure(
    kubeconfig: Path | None,
    namespace: str,
    service: str,
    extra_name: tuple[str, ...],
    out: Path | None,
    renew: Renewal | None,
    bundle_wait: float,
) -> None:
    """Issue what is missing or due, store it, publish the CA. Changes nothing when all is in place.

    A change of the CA has waits in it: the controller goes on from there, or this command when it is run again.
    """
    names, now = Names(service, namespace, extra_name), datetime.now(UTC)
    with api(kubeconfig) as kube:
        issued = ensure_certificates(
            kube,
            namespace=namespace,
            names=names,
            now=now,
            overlap=timedelta(seconds=bundle_wait),
            find=finder(kube),
            renew=renew,
        )
    for line in issued.done or ("everything is in place",):
        click.echo(line)
    if issued.again and issued.again - now < timedelta(hours=1):
        click.echo(f"to be continued at {issued.again:%H:%M:%S}Z")
    if out and write_pair(out, issued):
        click.echo(f"wrote {out}")


@certs.command()
@cluster_options
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to print.")
@click.pass_context
def show(context: click.Context, kubeconfig: Path | None, namespace: str, output: str) -> None:
    """Show both certificates and who trusts them; exit code 1 when something is missing."""
    with api(kubeconfig) as kube:
        stored = read_secrets(kube, namespace).stored
        found = report(stored.ca, stored.leaf, published_bundles(kube))
    click.echo(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode() if output == "json" else as_text(found))
    context.exit(0 if found.complete else 1)


@contextmanager
def api(kubeconfig: Path | None) -> Iterator[RawKube]:
    """The API server; what it refuses ends the command with its own message."""
    try:
        yield RawKube(connect(str(kubeconfig) if kubeconfig else None))
    except KubeError as error:
        raise click.ClickException(error.message) from error
    except ConfigError as error:
        raise click.ClickException(str(error)) from error


def as_text(found: Report) -> str:
    lines = [*_certificate("CA", found.ca), *_certificate("server certificate", found.server)]
    lines.append(f"issued by this CA: {_word(found.issued_by_ca)}")
    lines += [f"trusted by {name}: {_word(holds)}" for name, holds in found.trusted_by.items()]
    return "\n".join(lines)


def _certificate(title: str, shown: Shown | None) -> list[str]:
    if shown is None:
        return [f"{title}: missing"]
    lines = [
        f"{title}: {shown.subject}",
        f"  not after  {_time(shown.not_after)}",
        f"  renewed at {_time(shown.renew_at)}",
    ]
    return [*lines, *(f"  name       {name}" for name in shown.names)]


def _word(holds: bool | None) -> str:
    return {True: "yes", False: "no", None: "no such configuration"}[holds]


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}Z"
