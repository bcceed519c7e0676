import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from certs.issue import Names, new_ca, new_leaf

SERVICE_FORMS = [
    "signalbox-webhook",
    "signalbox-webhook.signalbox-system",
    "signalbox-webhook.signalbox-system.svc",
    "signalbox-webhook.signalbox-system.svc.cluster.local",
]


def parsed(pair):
    return x509.load_pem_x509_certificate(pair.certificate)


def verifier(ca, subject, at):
    return PolicyBuilder().store(Store([parsed(ca)])).time(at).build_server_verifier(subject)


@pytest.mark.parametrize("name", [*SERVICE_FORMS, "localhost"])
def test_leaf_verifies_for_every_dns_name(ca, leaf, now, name):
    verifier(ca, x509.DNSName(name), now).verify(parsed(leaf), [])


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_leaf_verifies_for_every_address(ca, leaf, now, address):
    verifier(ca, x509.IPAddress(ip_address(address)), now).verify(parsed(leaf), [])


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("other.signalbox-system.svc", timedelta()),
        (SERVICE_FORMS[2], timedelta(days=91)),
        (SERVICE_FORMS[2], -timedelta(hours=2)),
    ],
    ids=["another name", "expired", "not yet valid"],
)
def test_leaf_is_refused(ca, leaf, now, name, after):
    with pytest.raises(VerificationError):
        verifier(ca, x509.DNSName(name), now + after).verify(parsed(leaf), [])


def test_leaf_of_a_namesake_ca_is_refused(leaf, now):
    with pytest.raises(VerificationError):
        verifier(new_ca(now), x509.DNSName(SERVICE_FORMS[2]), now).verify(parsed(leaf), [])


def test_ca_can_sign_leaves_and_nothing_else(ca, now):
    certificate = parsed(ca)
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage)
    assert constraints.critical
    assert (constraints.value.ca, constraints.value.path_length) == (True, 0)
    assert usage.critical
    assert (usage.value.key_cert_sign, usage.value.crl_sign, usage.value.digital_signature) == (True, True, False)
    assert isinstance(certificate.public_key().curve, ec.SECP256R1)


def test_lives(ca, leaf, now):
    for pair, life in ((ca, timedelta(days=5 * 365)), (leaf, timedelta(days=90))):
        assert parsed(pair).not_valid_before_utc == now - timedelta(hours=1)
        assert parsed(pair).not_valid_after_utc == now + life


def test_names_are_listed_once_and_sorted_into_dns_and_addresses():
    names = Names("s", "n", ("s.n", "10.0.0.1", "example.org", "10.0.0.1"))
    assert names.dns == ("s", "s.n", "s.n.svc", "s.n.svc.cluster.local", "example.org")
    assert names.addresses == ("10.0.0.1",)


def test_longest_names_fit(ca, now):
    names = Names("s" * 63, "n" * 63)
    assert parsed(new_leaf(ca, names, now)).subject.rfc4514_string() == "CN=" + "s" * 63


@pytest.mark.parametrize("namesakes", [0, 1], ids=["own CA", "bundle of two CAs of one name"])
def test_handshake(tmp_path, namesakes):
    today = datetime.now(UTC)  # TLS asks the machine's clock
    ca = new_ca(today)
    server = serving(new_leaf(ca, Names("signalbox-webhook", "signalbox-system"), today), tmp_path)
    bundle = b"".join(new_ca(today).certificate for _ in range(namesakes)) + ca.certificate
    client = ssl.create_default_context(cadata=bundle.decode())
    assert handshake(server, client, SERVICE_FORMS[2]) == "TLSv1.3"
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(server, client, "other.signalbox-system.svc")


def serving(pair, directory):
    (directory / "crt").write_bytes(pair.certificate)
    (directory / "key").write_bytes(pair.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(directory / "crt", directory / "key")
    return context


def handshake(server, client, name):
    """The protocol version agreed on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept():
            connection, _ = listener.accept()
            with connection:
                try:
                    with server.wrap_socket(connection, server_side=True) as tls:
                        tls.recv(1)
                except OSError:
                    return  # the client refused us

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            plain = socket.create_connection(listener.getsockname(), timeout=5)
            with plain, client.wrap_socket(plain, server_hostname=name) as tls:
                return tls.version()
        finally:
            thread.join()
