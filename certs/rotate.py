"""Keeps the webhook's certificates current in the cluster: two Secrets and the caBundle of two webhook configurations.

``signalbox-webhook-ca`` holds the CA and its key, ``signalbox-webhook-tls`` what the webhook mounts. A CA is changed so
that no API server meets a certificate it does not trust (what cert-controller#20 found missing): the new CA is stored
next to the old one, both are published as caBundle, and only then a leaf of the new CA is stored. The old one leaves
the bundle a day later. A pass that is cut off is finished by the next, since each publishes before it stores a leaf.
"""

import base64
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol, TypeVar

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from certs.issue import CLOCK_SKEW, Issued, Names, Pair, new_ca, new_leaf
from certs.plan import Keep, Plan, RenewCA, Stored, plan
from kube.errors import AlreadyExists, Conflict, NotFound
from kube.resources import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS

__all__ = ["CONFIGURATIONS", "Issued", "Secrets", "ensure", "inject", "published_bundles", "read_secrets"]

CA_SECRET = "signalbox-webhook-ca"  # noqa: S105  the name of a Secret
TLS_SECRET = "signalbox-webhook-tls"  # noqa: S105
CONFIGURATIONS: Mapping[str, str] = {
    "signalbox-mutating": MUTATING_WEBHOOKS.path(name="signalbox-mutating"),
    "signalbox-validating": VALIDATING_WEBHOOKS.path(name="signalbox-validating"),
}
"""Path in the API of each webhook configuration that needs the bundle, by name."""
OVERLAP = timedelta(days=1)
"""How long a replaced CA stays in the bundle once the new leaf is stored; kubelets deliver it within two minutes."""
ATTEMPTS = 8
"""Tries before a lost race is the caller's; each one lost means that another writer got on."""

Object = dict[str, Any]
Published = Literal["changed", "unchanged", "not found"]
T = TypeVar("T")
log = logging.getLogger("signalbox.certs")


class Kube(Protocol):
    """The part of ``kube.raw.RawKube`` that is used here."""

    def get(self, path: str) -> Object: ...
    def create(self, path: str, body: Object) -> Object: ...
    def replace(self, path: str, body: Object) -> Object: ...
    def patch(self, path: str, body: list[Any], *, kind: Literal["json"]) -> Object: ...


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

    def outgoing(self, now: datetime) -> bytes:
        """Every CA a server certificate that is still served may come from, as PEM."""
        return readable(now, _value(self.ca, "ca.crt"), self.previous, _value(self.tls, "ca.crt"))


def ensure(kube: Kube, *, namespace: str, names: Names, now: datetime) -> Issued:
    """Issue what is missing or due, store it, and publish the CA; writes nothing when all is in place.

    Raises ``kube.errors.KubeError``; a Conflict only after ``ATTEMPTS`` lost races. A webhook configuration that does
    not exist yet is named in ``Issued.done``.
    """
    return _retried(lambda: _pass(kube, read_secrets(kube, namespace), names, now))


def inject(kube: Kube, ca_bundle: bytes) -> list[str]:
    """Put ``ca_bundle`` (PEM) into every webhook of both configurations; the names of those that had to be changed."""
    return [name for name, result in _publish(kube, ca_bundle).items() if result == "changed"]


def read_secrets(kube: Kube, namespace: str) -> Secrets:
    return Secrets(
        namespace,
        ca=_get(kube, SECRETS.path(namespace, CA_SECRET)),
        tls=_get(kube, SECRETS.path(namespace, TLS_SECRET)),
    )


def published_bundles(kube: Kube) -> dict[str, list[bytes] | None]:
    """For each webhook configuration the caBundle of each of its webhooks; None when there is no such configuration."""
    seen = {name: _get(kube, path) for name, path in CONFIGURATIONS.items()}
    return {name: None if found is None else _decoded(found) for name, found in seen.items()}


def readable(now: datetime, *pems: bytes) -> bytes:
    """The certificates in ``pems`` that parse and have not expired, each once. A caBundle with garbage is refused."""
    kept: dict[bytes, None] = {}
    for pem in pems:
        with suppress(ValueError):
            for certificate in x509.load_pem_x509_certificates(pem):
                if now < certificate.not_valid_after_utc:
                    kept[certificate.public_bytes(Encoding.PEM)] = None
    return b"".join(kept)


def _pass(kube: Kube, secrets: Secrets, names: Names, now: datetime) -> Issued:
    decision = plan(secrets.stored, names, now)
    authority, done = _settle_authority(kube, secrets, decision, now)
    for name, result in _publish(kube, authority.bundle).items():
        if result != "unchanged":
            done.append(f"caBundle of {name}: {result}")
    leaf = secrets.stored.leaf
    if leaf is None or not isinstance(decision, Keep):
        leaf = new_leaf(authority.pair, names, now)
        _store_leaf(kube, secrets, authority, leaf)
        done.append("issued a server certificate" + _because(decision))
    return Issued(authority.bundle, leaf.certificate, leaf.key, tuple(done))


def _settle_authority(kube: Kube, secrets: Secrets, decision: Plan, now: datetime) -> tuple[Authority, list[str]]:
    """The CA to work with, stored before it is used; and what was done about it."""
    stored = secrets.stored
    if stored.ca is None or isinstance(decision, RenewCA):
        authority = Authority(new_ca(now), secrets.outgoing(now))
        _store_authority(kube, secrets, authority)
        return authority, ["issued a CA" + _because(decision)]
    if secrets.previous and isinstance(decision, Keep) and overlap_is_over(stored.leaf, now):
        _store_authority(kube, secrets, Authority(stored.ca))
        return Authority(stored.ca), ["dropped the previous CA"]
    return Authority(stored.ca, readable(now, secrets.previous)), []


def overlap_is_over(leaf: Pair | None, now: datetime) -> bool:
    """Whether ``leaf`` was stored so long ago that every replica must serve it."""
    if leaf is None:
        return False
    made = x509.load_pem_x509_certificate(leaf.certificate).not_valid_before_utc + CLOCK_SKEW
    return now >= made + OVERLAP


def _because(decision: Plan) -> str:
    return "" if isinstance(decision, Keep) else f": {decision.reason}"


def _store_authority(kube: Kube, secrets: Secrets, authority: Authority) -> None:
    content = {"ca.crt": authority.pair.certificate, "ca.key": authority.pair.key, "previous.crt": authority.previous}
    _store(kube, secrets.namespace, CA_SECRET, secrets.ca, content, kind="Opaque")


def _store_leaf(kube: Kube, secrets: Secrets, authority: Authority, leaf: Pair) -> None:
    content = {"tls.crt": leaf.certificate, "tls.key": leaf.key, "ca.crt": authority.pair.certificate}
    _store(kube, secrets.namespace, TLS_SECRET, secrets.tls, content, kind="kubernetes.io/tls")


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


def _publish(kube: Kube, bundle: bytes) -> dict[str, Published]:
    text = base64.b64encode(bundle).decode()

    def publish(path: str) -> Published:
        return _retried(lambda: _publish_one(kube, path, text))

    return {name: publish(path) for name, path in CONFIGURATIONS.items()}


def _publish_one(kube: Kube, path: str, text: str) -> Published:
    """Patch what is wrong, on condition that nothing else changed: the webhooks are addressed by their position."""
    found = _get(kube, path)
    if found is None:
        return "not found"
    wrong = [position for position, bundle in enumerate(_bundles(found)) if bundle != text]
    if not wrong:
        return "unchanged"
    version = {"op": "replace", "path": "/metadata/resourceVersion", "value": found["metadata"]["resourceVersion"]}
    fields = [f"/webhooks/{position}/clientConfig/caBundle" for position in wrong]
    kube.patch(path, [version, *({"op": "add", "path": field, "value": text} for field in fields)], kind="json")
    return "changed"


def _bundles(configuration: Object) -> list[str]:
    """The caBundle of each webhook in base64; empty text where there is none."""
    return [webhook["clientConfig"].get("caBundle") or "" for webhook in configuration.get("webhooks") or ()]


def _decoded(configuration: Object) -> list[bytes]:
    return [base64.b64decode(text) for text in _bundles(configuration)]


def _retried(step: Callable[[], T]) -> T:
    """``step``, begun anew with a fresh read when another writer was faster."""
    for attempt in range(1, ATTEMPTS):
        try:
            return step()
        except (Conflict, AlreadyExists, NotFound) as lost:
            log.info("another writer was faster", extra={"attempt": attempt, "answer": lost.message})
    return step()


def _get(kube: Kube, path: str) -> Object | None:
    try:
        return kube.get(path)
    except NotFound:
        return None


def _value(secret: Object | None, key: str) -> bytes:
    return base64.b64decode(((secret or {}).get("data") or {}).get(key) or "")


def _pair(secret: Object | None, certificate: str, key: str) -> Pair | None:
    found = Pair(_value(secret, certificate), _value(secret, key))
    return found if found.certificate and found.key else None
