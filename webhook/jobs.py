"""Reads the job behind a ``/scale`` request from the API server."""

from typing import Any

from kube.config import Connection
from kube.errors import KubeError
from kube.raw import RawKube
from kube.resources import Resource
from schemas.kinds import JobKind
from webhook.scale import Fetch, Unreadable

SECONDS = 0.5  # the API server waits 3 s for the whole answer


def reader(connection: Connection) -> Fetch:
    """A ``Fetch`` over ``connection``; made in the worker, since connections do not survive a fork."""
    kube = RawKube(connection, timeout=SECONDS)

    def fetch(kind: JobKind, namespace: str, name: str) -> dict[str, Any]:
        try:
            return kube.get(Resource(kind.group, kind.version, kind.plural, kind.kind).path(namespace, name))
        except KubeError as error:
            raise Unreadable(error.message) from error

    return fetch
