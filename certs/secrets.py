"""The two Secrets: one holds the CA and its key, the other what the webhook mounts.

The first also remembers where a change of the CA has got to, so that whoever leads next goes on from there.
"""

import base64
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from certs.issue import Pair
from certs.plan import Stored
from kube.errors import NotFound
from kube.resources import SECRETS

CA_SECRET = "signalbox-webhook-ca"  # noqa: S105  the name of a Secret
TLS_SECRET = "signalbox-webhook-tls"  # noqa: S105
TOLD = "signalbox.dev/bundle-told"
"""Annotation of the CA's Secret: ``<mark> <time>``, when which bundle was first seen in all configurations."""

Object = dict[str, Any]


class Kube(Protocol):
    """The part of ``kube.raw.RawKube`` that is used here."""

    def get(self, path: str) -> Object: ...
    def create(self, path: str, body: Object) -> Object: ...
    def replace(self, path: str, body: Object) -> Object: ...
    def patch(self, path: str, body: list[Any], *, kind: Literal["json"]) -> Object: ...


@dataclass(frozen=True, slots=True)
class Told:
    """Which bundle was published, as ``bundles.mark`` names it, and since when (aware)."""

    mark: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Authority:
    """The CA to sign with, and the certificates of those before it that may still be in use (PEM, often empty)."""

    pair: Pair
    previous: bytes = b""

    @property
    def bundle(self) -> bytes:
        return self.pair.certificate + self.previous


@dataclass(frozen=True, slots=True)
class Secrets:
    """Both Secrets as the API server has them; None where there is none."""

    namespace: str
    ca: Object | None
    tls: Object | None

    @property
    def stored(self) -> Stored:
        return Stored(_pair(self.ca, "ca.crt", "ca.key"), _pair(self.tls, "tls.crt", "tls.key"))

    @property
    def previous(self) -> bytes:
        return _value(self.ca, "previous.crt")

    @property
    def told(self) -> Told | None:
        mark, _, time = ((self.ca or {}).get("metadata", {}).get("annotations") or {}).get(TOLD, "").partition(" ")
        with suppress(ValueError):
            at = datetime.fromisoformat(time)
            return Told(mark, at) if at.tzinfo else None
        return None

    def outgoing(self, now: datetime) -> bytes:
        """Every CA a server certificate that is still served may come from, as PEM."""
        return readable(now, _value(self.ca, "ca.crt"), self.previous, _value(self.tls, "ca.crt"))


def read_secrets(kube: Kube, namespace: str) -> Secrets:
    return Secrets(
        namespace,
        ca=found(kube, SECRETS.path(namespace, CA_SECRET)),
        tls=found(kube, SECRETS.path(namespace, TLS_SECRET)),
    )


def store_authority(kube: Kube, secrets: Secrets, authority: Authority) -> None:
    """Whatever was remembered of a change of the CA is forgotten with it."""
    content = {"ca.crt": authority.pair.certificate, "ca.key": authority.pair.key, "previous.crt": authority.previous}
    _store(kube, secrets.namespace, CA_SECRET, _noted(secrets.ca, None), content, kind="Opaque")


def store_told(kube: Kube, secrets: Secrets, told: Told) -> None:
    assert secrets.ca is not None
    kube.replace(SECRETS.path(secrets.namespace, CA_SECRET), _noted(secrets.ca, told) or {})


def store_leaf(kube: Kube, secrets: Secrets, authority: Authority, leaf: Pair) -> None:
    content = {"tls.crt": leaf.certificate, "tls.key": leaf.key, "ca.crt": authority.pair.certificate}
    _store(kube, secrets.namespace, TLS_SECRET, secrets.tls, content, kind="kubernetes.io/tls")


def readable(now: datetime, *pems: bytes) -> bytes:
    """The certificates in ``pems`` that parse and have not expired, each once. A caBundle with garbage is refused."""
    kept: dict[bytes, None] = {}
    for pem in pems:
        with suppress(ValueError):
            for certificate in x509.load_pem_x509_certificates(pem):
                if now < certificate.not_valid_after_utc:
                    kept[certificate.public_bytes(Encoding.PEM)] = None
    return b"".join(kept)


def found(kube: Kube, path: str) -> Object | None:
    """The object at ``path``; None when there is none."""
    try:
        return kube.get(path)
    except NotFound:
        return None


def _store(
    kube: Kube, namespace: str, name: str, seen: Object | None, content: Mapping[str, bytes], *, kind: str
) -> None:
    """Create the Secret, or replace it as it was seen: its resourceVersion makes a lost race a Conflict."""
    encoded = {key: base64.b64encode(value).decode() for key, value in content.items() if value}
    if seen is not None:
        kube.replace(SECRETS.path(namespace, name), {**seen, "data": encoded})
        return
    labels = {"app.kubernetes.io/name": "signalbox", "app.kubernetes.io/component": "webhook"}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    body = {"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": metadata, "data": encoded}
    kube.create(SECRETS.path(namespace), body)


def _noted(secret: Object | None, told: Told | None) -> Object | None:
    """``secret`` with the annotation set, or without it."""
    if secret is None:
        return None
    metadata = secret["metadata"]
    others = {key: value for key, value in (metadata.get("annotations") or {}).items() if key != TOLD}
    note = {TOLD: f"{told.mark} {told.at.isoformat()}"} if told else {}
    return {**secret, "metadata": {**metadata, "annotations": others | note}}


def _value(secret: Object | None, key: str) -> bytes:
    return base64.b64decode(((secret or {}).get("data") or {}).get(key) or "")


def _pair(secret: Object | None, certificate: str, key: str) -> Pair | None:
    found = Pair(_value(secret, certificate), _value(secret, key))
    return found if found.certificate and found.key else None
