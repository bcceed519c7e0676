"""A CA and a server certificate for the webhook. Pure: the time and the names are given, only the keys are random.

Keys are ECDSA P-256 (cheaper per handshake than RSA-2048). Each is valid from
one hour before it was made, so that a node whose clock is behind accepts it too.
"""

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_LIFE = timedelta(days=5 * 365)
LEAF_LIFE = timedelta(days=90)
CLOCK_SKEW = timedelta(hours=1)
CA_NAME = "signalbox-webhook-ca"


@dataclass(frozen=True, slots=True)
class Names:
    """Whom the server certificate speaks for: a Service, and names or addresses beyond it."""

    service: str
    namespace: str
    extra: tuple[str, ...] = ()
    """DNS names and IP addresses, as text."""

    @property
    def dns(self) -> tuple[str, ...]:
        """All DNS names: the four forms of the Service, then the extra ones. Each once."""
        own = f"{self.service}.{self.namespace}"
        forms = (self.service, own, f"{own}.svc", f"{own}.svc.cluster.local")
        return tuple(dict.fromkeys(forms + tuple(name for name in self.extra if address(name) is None)))

    @property
    def addresses(self) -> tuple[str, ...]:
        """The IP addresses among the extra names, in canonical text. Each once."""
        found = (address(name) for name in self.extra)
        return tuple(dict.fromkeys(str(ip) for ip in found if ip is not None))


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, both PEM (the key PKCS#8, not encrypted)."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Issued:
    """What a server and its clients need, as ``rotate.ensure`` leaves it; all PEM."""

    ca_pem: bytes
    """The CA bundle clients should trust: the CA, and during an overlap the one before it."""
    cert_pem: bytes
    key_pem: bytes
    done: tuple[str, ...] = ()
    """What had to be done or could not be, one phrase each; empty when everything was in place."""
    again: datetime | None = None
    """When there will be something to do, if nobody interferes."""
    repaired: tuple[str, ...] = ()
    """Webhook configurations whose bundle somebody else had changed."""


def address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """``name`` as an IP address, or None when it is a DNS name."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def new_ca(now: datetime) -> Pair:
    """A self-signed CA that can sign server certificates only (path length 0), valid for 5 years. ``now`` is aware."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = common_name(f"{CA_NAME} {now:%Y-%m-%d}")
    builder = (
        _unsigned(name, name, key.public_key(), now, CA_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
    )
    return _pair(builder.sign(key, hashes.SHA256()), key)


def new_leaf(ca: Pair, names: Names, now: datetime) -> Pair:
    """A server certificate for ``names`` signed by ``ca``, valid for 90 days. ``now`` is aware.

    ValueError when ``ca`` is not a P-256 pair; ``plan`` never asks for that.
    """
    issuer, issuer_key = x509.load_pem_x509_certificate(ca.certificate), load_key(ca.key)
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _unsigned(common_name(names.service), issuer.subject, key.public_key(), now, LEAF_LIFE)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(_subject_alternatives(names), critical=False)
        .add_extension(_issuer_key_identifier(issuer), critical=False)
    )
    return _pair(builder.sign(issuer_key, hashes.SHA256()), key)


def load_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """The private key in ``pem``. ValueError when there is none or it is not an elliptic-curve key."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except TypeError as error:  # an encrypted key
        raise ValueError(str(error)) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("not an elliptic-curve key")
    return key


def common_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _unsigned(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _subject_alternatives(names: Names) -> x509.SubjectAlternativeName:
    """Required: Go ignores the common name."""
    dns: list[x509.GeneralName] = [x509.DNSName(name) for name in names.dns]
    return x509.SubjectAlternativeName(dns + [x509.IPAddress(ipaddress.ip_address(ip)) for ip in names.addresses])


def _issuer_key_identifier(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    """What tells two CAs of the same name apart while both are in the bundle."""
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    plain = serialization.NoEncryption()
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain),
    )
