"""Whom the API server calls as the webhook, and whether they all show a certificate of one CA."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

from certs.bundles import Published
from certs.secrets import Object
from kube.handshake import Trust, trust
from kube.raw import Listing
from kube.resources import ENDPOINT_SLICES

OF_SERVICE = "kubernetes.io/service-name"

log = logging.getLogger("signalbox.certs")


class Lists(Protocol):
    """The part of ``kube.raw.RawKube`` that is used here."""

    def list(self, path: str, *, label_selector: str = "") -> Listing: ...


@dataclass(frozen=True, slots=True, order=True)
class Server:
    """One that answers calls, and the name that its certificate must have."""

    host: str
    port: int
    name: str


Find = Callable[[Mapping[str, Published | None]], list[Server]]


def finder(kube: Lists) -> Find:
    """Finds all that are called now: ready endpoints of Services, and servers behind URLs. Raises KubeError."""

    def find(published: Mapping[str, Published | None]) -> list[Server]:
        clients = [client for each in published.values() if each is not None for client in each.servers]
        services = {(c["service"]["namespace"], c["service"]["name"]) for c in clients if c.get("service")}
        behind = [server for key in sorted(services) for server in _endpoints(kube, *key)]
        return sorted({*behind, *(_by_url(client["url"]) for client in clients if client.get("url"))})

    return find


def all_show(servers: Iterable[Server], authority: bytes) -> bool | None:
    """Whether all servers show leaves of ``authority`` (PEM). None: one cannot be asked, or there is none; nothing
    speaks against it.
    """
    seen = {server: trust(server.host, server.port, authority, name=server.name) for server in servers}
    for server, found in seen.items():
        if found is not Trust.TRUSTED:
            log.info("a webhook does not show the new certificate", extra={"host": server.host, "trust": found.value})
    if Trust.UNTRUSTED in seen.values():
        return False
    return True if seen and Trust.UNKNOWN not in seen.values() else None


def _endpoints(kube: Lists, namespace: str, service: str) -> list[Server]:
    slices = kube.list(ENDPOINT_SLICES.path(namespace), label_selector=f"{OF_SERVICE}={service}").items
    name = f"{service}.{namespace}.svc"
    return [Server(host, port, name) for each in slices for port in _ports(each) for host in _ready(each)]


def _ready(endpoint_slice: Object) -> list[str]:
    """Addresses of the endpoints that get calls; unknown readiness counts as ready, as the API says."""
    endpoints: list[dict[str, Any]] = endpoint_slice.get("endpoints") or []
    ready = [each for each in endpoints if (each.get("conditions") or {}).get("ready") is not False]
    return [address for each in ready for address in each.get("addresses") or ()]


def _ports(endpoint_slice: Object) -> list[int]:
    return [port["port"] for port in endpoint_slice.get("ports") or () if port.get("port")]


def _by_url(url: str) -> Server:
    parts = urlsplit(url)
    host = parts.hostname or ""
    return Server(host, parts.port or 443, host)
