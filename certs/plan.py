"""What to do about the stored certificates: Keep | RenewServer | RenewCA. Pure and total: any bytes give a plan.

A certificate is renewed when about two thirds of its life are over, which leaves at least 24 days (leaf) or 16 months
(CA) in which a failing renewal can be noticed.
"""

from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from certs.issue import Names, Pair, load_key

RENEW_AT = Fraction(2, 3)
JITTER_STEPS = 1000


@dataclass(frozen=True, slots=True)
class Stored:
    """What the Secrets hold; None where a Secret or one of its two parts is missing."""

    ca: Pair | None
    leaf: Pair | None


@dataclass(frozen=True, slots=True)
class Keep:
    """Nothing to do before ``renew_at``."""

    renew_at: datetime


@dataclass(frozen=True, slots=True)
class RenewServer:
    """The CA is good; a new leaf is needed."""

    reason: str


@dataclass(frozen=True, slots=True)
class RenewCA:
    """A new CA is needed, and with it a new leaf."""

    reason: str


Plan = Keep | RenewServer | RenewCA


class PairError(ValueError):
    """A stored pair that has to be replaced; the text says why and continues "the CA …"."""


def plan(stored: Stored | None, names: Names, now: datetime) -> Plan:
    """What to do next about ``stored`` for a server called ``names``; ``now`` is aware."""
    ca_pair, leaf_pair = (stored.ca, stored.leaf) if stored else (None, None)
    try:
        ca = usable_ca(ca_pair, now)
    except PairError as fault:
        return RenewCA(f"the CA {fault}")
    try:
        leaf = usable_leaf(leaf_pair, ca, names, now)
    except PairError as fault:
        return RenewServer(f"the server certificate {fault}")
    return Keep(min(renewal_time(ca), renewal_time(leaf)))


def renewal_time(certificate: x509.Certificate) -> datetime:
    """When two thirds of the certificate's life are over, up to a tenth of that sooner or later (UTC).

    The serial number decides how much, so that each certificate has one such time and a fleet of clusters installed
    together does not renew together.
    """
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    jitter = Fraction(certificate.serial_number % (2 * JITTER_STEPS + 1) - JITTER_STEPS, 10 * JITTER_STEPS)
    return certificate.not_valid_before_utc + life * float(RENEW_AT * (1 + jitter))


def usable_ca(pair: Pair | None, now: datetime) -> x509.Certificate:
    """The CA's certificate; PairError when it cannot sign leaves, or should no longer."""
    certificate = matching(pair)
    if not is_authority(certificate):
        raise PairError("is not a CA")
    return in_time(certificate, now)


def usable_leaf(pair: Pair | None, ca: x509.Certificate, names: Names, now: datetime) -> x509.Certificate:
    """The server's certificate; PairError when clients that trust ``ca`` would refuse it, or soon will."""
    certificate = matching(pair)
    if not issued_by(certificate, ca):
        raise PairError("was not issued by the CA")
    if subject_alternatives(certificate) != {*names.dns, *names.addresses}:
        raise PairError("is for other names")
    return in_time(certificate, now)


def matching(pair: Pair | None) -> x509.Certificate:
    """The certificate of ``pair``; PairError unless both parts parse and belong together."""
    if pair is None:
        raise PairError("is missing")
    try:
        certificate = x509.load_pem_x509_certificate(pair.certificate)
        matches = load_key(pair.key).public_key() == certificate.public_key()
    except ValueError as error:
        raise PairError(f"cannot be read ({error})") from error
    if not matches:
        raise PairError("does not match its key")
    return certificate


def in_time(certificate: x509.Certificate, now: datetime) -> x509.Certificate:
    """``certificate`` itself; PairError before its life begins and after two thirds of it."""
    if now < certificate.not_valid_before_utc:
        raise PairError(f"is not valid before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M}Z")
    due = renewal_time(certificate)
    if now >= due:
        raise PairError(f"was due for renewal at {due:%Y-%m-%d %H:%M}Z")
    return certificate


def is_authority(certificate: x509.Certificate) -> bool:
    """Whether it may sign others, and says which key it signs with."""
    try:
        certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        return False


def issued_by(certificate: x509.Certificate, ca: x509.Certificate) -> bool:
    """Whether the signature on ``certificate`` is ``ca``'s."""
    try:
        certificate.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def subject_alternatives(certificate: x509.Certificate) -> set[str]:
    """The DNS names and IP addresses of the certificate as text; empty when it has none."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return set()
    return {*found.get_values_for_type(x509.DNSName), *map(str, found.get_values_for_type(x509.IPAddress))}
