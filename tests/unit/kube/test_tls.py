"""Both transports trust the connection's CA and show its client certificate."""

import datetime as dt
import ipaddress
import os
import ssl
from dataclasses import replace
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from kube.config import ConfigError
from kube.errors import Unreachable
from kube.raw import RawKube

NOW = dt.datetime.now(dt.UTC)
GARBAGE = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


class Pair(NamedTuple):
    cert: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def cert_pem(self):
        return self.cert.public_bytes(Encoding.PEM)

    def key_pem(self, form):
        return self.key.private_bytes(Encoding.PEM, form, NoEncryption())


def issue(name, issuer=None):
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder(
        issuer_name=issuer.cert.subject if issuer else subject,
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=NOW - dt.timedelta(hours=1),
        not_valid_after=NOW + dt.timedelta(hours=1),
    ).add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    builder = builder.add_extension(x509.SubjectAlternativeName([address]), critical=False)
    return Pair(builder.sign(issuer.key if issuer else key, SHA256()), key)


@pytest.fixture(scope="module")
def ca():
    return issue("ca")


@pytest.fixture
def connection(server, ca, tmp_path):
    """Of a server that demands a client certificate of ``ca``."""
    pair = issue("server", ca)
    (tmp_path / "server.pem").write_bytes(pair.cert_pem + pair.key_pem(PrivateFormat.PKCS8))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    context.load_verify_locations(cadata=ca.cert_pem.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    server.socket = context.wrap_socket(server.socket, server_side=True)
    client = issue("client", ca)
    return replace(
        server.connection,
        server=server.connection.server.replace("http:", "https:"),
        ca_pem=ca.cert_pem,
        client_cert_pem=client.cert_pem,
        client_key_pem=client.key_pem(PrivateFormat.PKCS8),
    )


def call_and_watch(server, connection):
    server.answers.append(server.reply({"a": 1}))
    server.watches.append(server.stream({"type": "ADDED", "object": {"a": 1}}, then="end"))
    kube = RawKube(connection, timeout=5)
    assert kube.get("/x") == {"a": 1}
    assert [event.object for event in kube.watch("/x", resource_version="1", timeout_seconds=5)] == [{"a": 1}]


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_client_certificate(server, connection, ca, form):
    client = issue("client", ca)
    call_and_watch(server, replace(connection, client_cert_pem=client.cert_pem, client_key_pem=client.key_pem(form)))


def test_insecure_connection_takes_any_server(server, connection):
    call_and_watch(server, replace(connection, ca_pem=None, insecure=True))


@pytest.mark.parametrize("change", [{"ca_pem": None}, {"client_cert_pem": None}])
def test_nothing_is_said_to_the_wrong_server_or_by_the_wrong_client(server, connection, change):
    kube = RawKube(replace(connection, **change), timeout=5)
    with pytest.raises(Unreachable):
        kube.get("/x")
    with pytest.raises(Unreachable):
        next(kube.watch("/x", resource_version="1", timeout_seconds=5))
    assert server.seen == []


@pytest.mark.parametrize(
    "change",
    [{"ca_pem": GARBAGE}, {"ca_pem": b"\xff"}, {"client_cert_pem": GARBAGE}, {"client_key_pem": b"x"}],
)
def test_unusable_certificates_are_a_configuration_error(connection, change):
    with pytest.raises(ConfigError, match="certificates"):
        RawKube(replace(connection, **change))


def test_system_cas_do_not_vouch_for_a_server_whose_ca_is_given(server, connection, ca, tmp_path, monkeypatch):
    """Whoever has a certificate of a public CA could otherwise play the API server, and get the token."""
    (tmp_path / "system.pem").write_bytes(ca.cert_pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "system.pem"))
    stranger = issue("another ca")
    with pytest.raises(Unreachable):
        RawKube(replace(connection, ca_pem=stranger.cert_pem), timeout=5).get("/x")
    assert os.environ["SSL_CERT_FILE"] == str(tmp_path / "system.pem")
    server.answers.append(server.reply({"a": 1}))
    assert RawKube(replace(connection, ca_pem=None), timeout=5).get("/x") == {"a": 1}
