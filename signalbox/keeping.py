"""The options and the thread by which the controller keeps the webhook's certificates."""

import re
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from certs.issue import Names, address

if TYPE_CHECKING:
    from certs.keeper import Keeper
    from kube.raw import RawKube

F = TypeVar("F", bound=Callable[..., Any])
KEEP, OFF = "keep", "off"
SYSTEM_NAMESPACE = "signalbox-system"
SERVICE = "signalbox-webhook"
BUNDLE_WAIT = 60.0
DNS_NAME = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*", re.ASCII
)


def valid_names(_context: click.Context, _option: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if address(name) is None and not DNS_NAME.fullmatch(name):
            raise click.BadParameter(f'must be a lower-case DNS name or an IP address (got "{name}")')
    return names


OPTIONS = (
    click.option(
        "--certificates",
        type=click.Choice([KEEP, OFF]),
        default=KEEP,
        help="Keep the webhook's certificates, or leave them alone (cert-manager's, for example).",
    ),
    click.option(
        "--certificate-namespace",
        default="",
        help=f"Where their Secrets and the Service are; else the pod's own namespace, or {SYSTEM_NAMESPACE}.",
    ),
    click.option("--certificate-service", default=SERVICE, help="The webhook's Service."),
    click.option(
        "--certificate-name", multiple=True, callback=valid_names, help="Another DNS name or IP address; repeatable."
    ),
    click.option(
        "--certificate-dir",
        type=click.Path(path_type=Path, file_okay=False),
        help="Also keep the files here, for a webhook outside the cluster.",
    ),
    click.option(
        "--bundle-wait",
        type=click.FloatRange(min=0),
        default=BUNDLE_WAIT,
        help="Seconds API servers get to notice a new CA before the webhook shows it.",
    ),
)


def certificate_options(command: F) -> F:
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def keeper(kube: "RawKube", options: dict[str, Any], leading: Callable[[], bool]) -> "Keeper | None":
    """What keeps the certificates as ``options`` say; None when nothing does."""
    from certs.keeper import Keeper, Settings

    if options["certificates"] == OFF:
        return None
    namespace = options["certificate_namespace"] or own_namespace()
    names = Names(options["certificate_service"], namespace, options["certificate_name"])
    overlap = timedelta(seconds=options["bundle_wait"])
    return Keeper(kube, Settings(namespace, names, overlap, options["certificate_dir"]), leading=leading)


def own_namespace() -> str:
    """That of the pod we run in; out of a cluster the one that is shipped."""
    from kube.config import in_cluster, is_in_cluster

    return in_cluster().namespace if is_in_cluster() else SYSTEM_NAMESPACE


def start(found: "Keeper | None", stop: threading.Event) -> None:
    """In a thread of its own, until ``stop``."""
    if found is not None:
        threading.Thread(target=found.run, args=(stop,), name="certificates", daemon=True).start()
