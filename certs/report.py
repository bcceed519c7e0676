"""What is stored and published, for people and scripts. Pure: any bytes give a report."""

from dataclasses import dataclass
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from certs.issue import Pair
from certs.plan import issued_by, renewal_time, subject_alternatives


@dataclass(frozen=True, slots=True)
class Shown:
    """One certificate."""

    subject: str
    names: tuple[str, ...]
    """DNS names and IP addresses, sorted; empty for the CA."""
    not_after: datetime
    renew_at: datetime


@dataclass(frozen=True, slots=True)
class Report:
    """The state of the webhook's certificates."""

    ca: Shown | None
    """None when there is none that can be read; so is ``server``."""
    server: Shown | None
    issued_by_ca: bool
    """Whether the server's certificate comes from the stored CA (not so for moments while a CA is changed)."""
    trusted_by: dict[str, bool | None]
    """By webhook configuration: whether every webhook's caBundle has the stored CA; None when there is no such one."""

    @property
    def complete(self) -> bool:
        """Whether everything is in place."""
        return self.issued_by_ca and all(self.trusted_by.values())


def report(ca: Pair | None, leaf: Pair | None, bundles: dict[str, list[bytes] | None]) -> Report:
    """What the pairs are, and which of the ``bundles`` (as ``rotate.published_bundles`` gives them) hold the CA."""
    authority, server = _parsed(ca), _parsed(leaf)
    return Report(
        ca=_shown(authority),
        server=_shown(server),
        issued_by_ca=bool(authority and server and issued_by(server, authority)),
        trusted_by={name: found if found is None else _all_hold(found, authority) for name, found in bundles.items()},
    )


def _parsed(pair: Pair | None) -> x509.Certificate | None:
    try:
        return x509.load_pem_x509_certificate(pair.certificate) if pair else None
    except ValueError:
        return None


def _shown(certificate: x509.Certificate | None) -> Shown | None:
    if certificate is None:
        return None
    return Shown(
        subject=certificate.subject.rfc4514_string(),
        names=tuple(sorted(subject_alternatives(certificate))),
        not_after=certificate.not_valid_after_utc,
        renew_at=renewal_time(certificate),
    )


def _all_hold(bundles: list[bytes], ca: x509.Certificate | None) -> bool:
    return ca is not None and all(ca.public_bytes(Encoding.PEM).strip() in bundle for bundle in bundles)
