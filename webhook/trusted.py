"""Whether the live caBundle of our webhook configurations vouches for the certificate we serve."""

import base64
import threading
import time
from collections.abc import Callable, Mapping

from kube.config import ConfigError, Connection, connect, in_cluster, is_in_cluster
from kube.errors import KubeError
from kube.handshake import Trust, trust
from kube.raw import RawKube
from kube.resources import OWN_CONFIGURATIONS
from webhook.settings import PROBE_NAME

FRESH_SECONDS = 10.0
READ_SECONDS = 0.5
HANDSHAKE_SECONDS = 1.0

Bundles = Mapping[str, frozenset[bytes]]
"""By configuration the bundles (PEM) of its webhooks, without empty ones: nothing is proven by those."""
Read = Callable[[], Bundles]


class Trusted:
    """Asked by every readiness probe; reads the configurations at most every ``FRESH_SECONDS``, and on suspicion."""

    def __init__(
        self, host: str, port: int, read: Read | None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """``read`` raises KubeError; without it nothing is ever proven."""
        self._host, self._port, self._read = host, port, read
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._bundles: Bundles = {}
        self._read_at: float | None = None

    def fault(self) -> str:
        """What is proven to be wrong, or an empty text."""
        with self._lock:
            if self._read_at is None or self._monotonic() - self._read_at >= FRESH_SECONDS:
                self._refresh()
            if not self._mistrusting():
                return ""
            self._refresh()  # what is held may be older than the certificate
            names = self._mistrusting()
        return f"caBundle of {', '.join(names)} does not vouch for the served certificate" if names else ""

    def _refresh(self) -> None:
        self._bundles = {}
        self._read_at = self._monotonic()
        try:
            self._bundles = self._read() if self._read else {}
        except KubeError:
            return  # nothing is proven by an API server that cannot be read

    def _mistrusting(self) -> list[str]:
        return [name for name, bundles in self._bundles.items() if any(map(self._is_mistrusted, bundles))]

    def _is_mistrusted(self, bundle: bytes) -> bool:
        seen = trust(self._host, self._port, bundle, asked_name=PROBE_NAME, seconds=HANDSHAKE_SECONDS)
        return seen is Trust.UNTRUSTED


def bundles_reader(kubeconfig: str | None) -> Read | None:
    """Reads the live bundles; None where no cluster is known, for development."""
    try:
        connection = _connection(kubeconfig)
    except ConfigError:
        return None
    return None if connection is None else _reader(RawKube(connection, timeout=READ_SECONDS))


def _connection(kubeconfig: str | None) -> Connection | None:
    if kubeconfig is not None:
        return connect(kubeconfig)
    return in_cluster() if is_in_cluster() else None


def _reader(kube: RawKube) -> Read:
    def read() -> Bundles:
        found = {name: kube.get(resource.path(name=name)) for name, resource in OWN_CONFIGURATIONS.items()}
        return {name: _bundles(configuration) for name, configuration in found.items()}

    return read


def _bundles(configuration: Mapping[str, object]) -> frozenset[bytes]:
    webhooks = configuration.get("webhooks")
    clients = [each["clientConfig"] for each in webhooks] if isinstance(webhooks, list) else []
    return frozenset(base64.b64decode(client["caBundle"]) for client in clients if client.get("caBundle"))
