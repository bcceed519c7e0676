"""Against real handshakes on loopback."""

import socket
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from certs.issue import Names, Pair, common_name, new_ca, new_leaf
from kube.handshake import Trust, trust

NOW = datetime.now(UTC)
NAMES = Names("webhook", "system")


def self_signed():
    """As cert-manager's SelfSigned issuer makes it: a leaf, no CA, signed with its own key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = common_name("webhook")
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(NOW - timedelta(hours=1))
        .not_valid_after(NOW + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("webhook.system.svc")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Pair(certificate.public_bytes(serialization.Encoding.PEM), pem)


@pytest.fixture
def server(tls_server, tmp_path):
    """``with server(pair) as port:``"""

    def serve(pair):
        (tmp_path / "crt").write_bytes(pair.certificate)
        (tmp_path / "key").write_bytes(pair.key)
        return tls_server(tmp_path / "crt", tmp_path / "key")

    return serve


CA, OTHER, SELF = new_ca(NOW), new_ca(NOW), self_signed()
LEAF = new_leaf(CA, NAMES, NOW)
EXPIRED = new_leaf(CA, NAMES, NOW - timedelta(days=91))


@pytest.mark.parametrize(
    ("pair", "bundle", "found"),
    [
        (LEAF, CA.certificate, Trust.TRUSTED),
        (LEAF, OTHER.certificate + CA.certificate, Trust.TRUSTED),
        (LEAF, OTHER.certificate, Trust.UNTRUSTED),
        (SELF, SELF.certificate, Trust.TRUSTED),
        (SELF, CA.certificate, Trust.UNTRUSTED),
        (LEAF, SELF.certificate, Trust.UNTRUSTED),
        (EXPIRED, CA.certificate, Trust.UNKNOWN),
        (LEAF, b"", Trust.UNKNOWN),
        (LEAF, b"no PEM \xff", Trust.UNKNOWN),
    ],
    ids=[
        "own CA",
        "one of two",
        "other CA",
        "leaf is its own CA",
        "self-signed",
        "another",
        "expired",
        "empty",
        "none",
    ],
)
def test_trust(pair, bundle, found, server):
    with server(pair) as port:
        assert trust("127.0.0.1", port, bundle) is found


def test_name_is_looked_at_when_given(server):
    with server(LEAF) as port:
        assert trust("127.0.0.1", port, CA.certificate, name="webhook.system.svc") is Trust.TRUSTED
        assert trust("127.0.0.1", port, CA.certificate, name="stranger.system.svc") is Trust.UNKNOWN
        assert trust("127.0.0.1", port, CA.certificate, asked_name="stranger.system.svc") is Trust.TRUSTED


def test_who_says_nothing_proves_nothing():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert trust("127.0.0.1", silent.getsockname()[1], CA.certificate, seconds=0.2) is Trust.UNKNOWN
