"""The tokens of the history's process, in a Secret that the leading controller makes: nobody has to think of one."""

import base64
import secrets
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import structlog

from kube.errors import AlreadyExists, KubeError, NotFound
from kube.resources import SECRETS

if TYPE_CHECKING:
    from kube.raw import RawKube

KEYS = ("ingest", "page")
"""What those send that write, and those that read."""
BYTES = 32
EVERY = 10.0
"""Seconds between two looks: a Secret that is deleted, to change the tokens, is made anew."""
RETRY, SLICE = 2.0, 0.25

log = structlog.get_logger(__name__)


def ensure(kube: "RawKube", namespace: str, name: str) -> bool:
    """Make the Secret where there is none; whether it was made. One that is there stays as it is. Raises KubeError."""
    try:
        kube.get(SECRETS.path(namespace, name))
    except NotFound:
        return _made(kube, namespace, name)
    return False


def secret(namespace: str, name: str) -> dict[str, Any]:
    """A Secret with a new token under each of ``KEYS``."""
    labels = {"app.kubernetes.io/name": "signalbox", "app.kubernetes.io/component": "history"}
    data = {key: base64.b64encode(secrets.token_urlsafe(BYTES).encode()).decode() for key in KEYS}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data}


def start(kube: "RawKube", namespace: str, name: str, leading: Callable[[], bool], stop: threading.Event) -> None:
    """Keep the Secret while ``leading()``, in a thread of its own, until ``stop``; an empty ``name`` means none."""
    if name:
        arguments = (kube, namespace, name, leading, stop)
        threading.Thread(target=_keep, args=arguments, name="tokens", daemon=True).start()


def _keep(kube: "RawKube", namespace: str, name: str, leading: Callable[[], bool], stop: threading.Event) -> None:
    while not stop.is_set():
        stop.wait(_look(kube, namespace, name) if leading() else SLICE)


def _look(kube: "RawKube", namespace: str, name: str) -> float:
    """Seconds until the next one."""
    try:
        if ensure(kube, namespace, name):
            log.info("tokens made", secret=name, namespace=namespace)
    except KubeError as error:
        log.warning("tokens cannot be kept", secret=name, namespace=namespace, error=error.message)
        return RETRY
    return EVERY


def _made(kube: "RawKube", namespace: str, name: str) -> bool:
    try:
        kube.create(SECRETS.path(namespace), secret(namespace, name))
    except AlreadyExists:
        return False
    return True
