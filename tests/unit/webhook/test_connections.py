"""Clients that dawdle, and clients that are not let in. The server has two workers of two threads each."""

import contextlib
import http.client
import socket
import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs.files import write_pair
from certs.issue import Issued, common_name, load_key, new_ca
from webhook.connections import FIRST_BYTE_SECONDS, HANDSHAKE_SECONDS, REQUEST_SECONDS, names_of

THREADS = 4
MANY = 4 * THREADS
AT_ONCE = 3.0
"""Seconds, the API server's patience; less than any of our own limits."""


@pytest.fixture(scope="module")
def server(started, tmp_path_factory):
    with started(tmp_path_factory.mktemp("server")) as running:
        yield running


def get(server, timeout=AT_ONCE, context=None):
    context = context or server.authority.client()
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=timeout, context=context)
    with contextlib.closing(connection):
        connection.request("GET", "/healthz")
        return connection.getresponse().status


def dial(server):
    return socket.create_connection(("127.0.0.1", server.port), timeout=30)


def tls(server):
    return server.authority.client().wrap_socket(dial(server), server_hostname="127.0.0.1")


def end_of(sock):
    """What the server sends until it hangs up."""
    with contextlib.suppress(ConnectionResetError, ssl.SSLError):
        return sock.recv(1000)
    return b""


def test_who_connects_and_says_nothing_holds_nobody_up(server):
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(dial(server)) for _ in range(MANY)]
        assert get(server) == 200
        assert [end_of(sock) for sock in silent] == [b""] * MANY  # and is hung up on


def test_who_shakes_hands_and_says_nothing_holds_nobody_up_for_long(server):
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(tls(server)) for _ in range(THREADS)]
        assert get(server, timeout=REQUEST_SECONDS + AT_ONCE) == 200
        assert [end_of(sock) for sock in silent] == [b""] * THREADS


@pytest.mark.parametrize("said", [b"\x16", b"\x16\x03\x01\x02\x00\x01"], ids=["a byte", "half a hello"])
def test_who_stops_in_the_handshake_is_hung_up_on(server, said):
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(dial(server)) for _ in range(THREADS)]
        for sock in slow:
            sock.sendall(said)
        rounds = 2  # one worker, of two threads, may have got all of them
        assert get(server, timeout=rounds * HANDSHAKE_SECONDS + AT_ONCE) == 200
        assert [end_of(sock) for sock in slow] == [b""] * THREADS


@pytest.mark.parametrize(
    "said",
    [b"POST /validate HTTP/1.1\r\nHost: x\r\n", b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{"],
    ids=["in the headers", "in the body"],
)
def test_who_stops_in_the_request_is_hung_up_on(server, said):
    with tls(server) as sock:
        sock.sendall(said)
        assert b"200 OK" not in end_of(sock)
    assert get(server) == 200
    assert "Socket error processing request." not in server.messages()  # a stack for every such client


def test_limits_leave_room_for_the_api_servers_patience():
    assert min(FIRST_BYTE_SECONDS, HANDSHAKE_SECONDS, REQUEST_SECONDS) >= AT_ONCE


@pytest.fixture(scope="module")
def client_ca(tmp_path_factory):
    """Signs certificates of API servers and of others."""
    ca = new_ca(datetime.now(UTC))
    directory = tmp_path_factory.mktemp("clients")
    (directory / "ca.crt").write_bytes(ca.certificate)
    for name in ("kube-apiserver", "kubelet"):
        write_pair(directory / name, client_certificate(ca, name))
    return directory


def client_certificate(ca, name):
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(common_name(name))
        .issuer_name(x509.load_pem_x509_certificate(ca.certificate).subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(load_key(ca.key), hashes.SHA256())
    )
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Issued(ca.certificate, certificate.public_bytes(Encoding.PEM), pem)


@pytest.fixture(scope="module")
def guarded(started, tmp_path_factory, client_ca):
    """A server that lets in clients of one CA named kube-apiserver only; its readiness probe has no certificate."""
    with started(tmp_path_factory.mktemp("guarded"), str(client_ca / "ca.crt")) as running:
        yield running


def as_client(server, directory):
    context = server.authority.client()
    if directory is not None:
        context.load_cert_chain(directory / "tls.crt", directory / "tls.key")
    return context


def test_the_api_server_is_let_in(guarded, client_ca):
    assert get(guarded, context=as_client(guarded, client_ca / "kube-apiserver")) == 200


@pytest.mark.parametrize(
    ("who", "reason"),
    [
        (None, "it shows no certificate"),
        ("kubelet", "its certificate is for kubelet, not for kube-apiserver"),
    ],
)
def test_others_are_not(guarded, client_ca, eventually, who, reason):
    context = as_client(guarded, who and client_ca / who)
    with pytest.raises((ssl.SSLError, ConnectionResetError, http.client.RemoteDisconnected, BrokenPipeError)):
        get(guarded, context=context)
    assert guarded.plain(guarded.health, "/readyz")[0] == 200
    eventually(lambda: reason in refusals(guarded))


def refusals(server):
    return [line["reason"] for line in server.lines() if line["message"] == "client refused"]


def test_our_own_probe_is_refused_without_a_word(guarded, client_ca, eventually):
    """It comes every few seconds, without a certificate; a warning each time would bury the others."""
    before = len(refusals(guarded))
    for _ in range(3):
        assert guarded.plain(guarded.health, "/readyz")[0] == 200
    with pytest.raises((ssl.SSLError, ConnectionResetError, http.client.RemoteDisconnected, BrokenPipeError)):
        get(guarded, context=as_client(guarded, client_ca / "kubelet"))
    eventually(lambda: len(refusals(guarded)) > before)
    assert refusals(guarded)[before:] == ["its certificate is for kubelet, not for kube-apiserver"]
    assert not [message for message in guarded.messages() if message.startswith("Invalid request")]


def test_server_certificates_of_the_same_ca_are_no_passport(guarded, eventually):
    """The webhook's own CA is not the clients'."""
    with pytest.raises((ssl.SSLError, ConnectionResetError, http.client.RemoteDisconnected, BrokenPipeError)):
        get(guarded, context=as_client(guarded, guarded.authority.directory))
    eventually(lambda: [one for one in refusals(guarded) if one.startswith("its certificate is not of --client-ca")])


@pytest.mark.parametrize(
    ("certificate", "names"),
    [
        (None, set()),
        ({}, set()),
        ({"subject": ((("commonName", "a"),), (("organizationName", "o"),))}, {"a"}),
        ({"subjectAltName": (("DNS", "b"), ("IP Address", "1.2.3.4"))}, {"b"}),
    ],
)
def test_names(certificate, names):
    assert names_of(certificate) == names
