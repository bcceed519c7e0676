"""The exchange of the certificate by itself, with a clock that stands still unless it is moved."""

import pytest
from cryptography import x509

from kube.listeners import SettingError
from webhook.settings import TlsFiles
from webhook.tls import Certificates


@pytest.fixture
def clock():
    return [0.0]


@pytest.fixture
def certificates(authority, clock):
    return Certificates(TlsFiles(*authority.files), lambda: clock[0])


def test_one_context_until_the_files_change(certificates, authority, clock):
    first = certificates.context()
    clock[0] += 5
    assert certificates.context() is first
    authority.renew()
    clock[0] += 5
    assert certificates.context() is not first


def test_looks_once_a_second(certificates, authority, clock):
    first = certificates.context()
    authority.renew()
    clock[0] += 0.9
    assert certificates.context() is first
    clock[0] += 0.2
    assert certificates.context() is not first


def test_warns_once_per_change(certificates, authority, clock, caplog):
    (authority.directory / "tls.key").write_bytes(b"first fault")
    for _ in range(5):
        clock[0] += 1
        certificates.context()
    assert len(caplog.records) == 1
    (authority.directory / "tls.key").write_bytes(b"a second fault")
    clock[0] += 1
    certificates.context()
    assert len(caplog.records) == 2


def test_start_needs_a_pair(authority):
    (authority.directory / "tls.key").write_bytes(authority.issue().key_pem)
    with pytest.raises(SettingError, match="--cert-file: must be a certificate that fits --key-file"):
        Certificates(TlsFiles(*authority.files))


def test_says_when_the_pair_in_use_expires(certificates, authority, clock):
    (authority.directory / "tls.crt").resolve().write_bytes(b"garbage")
    clock[0] += 2
    before = certificates.expires()
    certificates.context()
    assert certificates.expires() == before
    authority.renew()
    clock[0] += 2
    certificates.context()
    renewed = x509.load_pem_x509_certificate((authority.directory / "tls.crt").read_bytes())
    assert certificates.expires() == renewed.not_valid_after_utc.timestamp()


def test_another_client_ca_makes_another_context(authority, clock):
    client_ca = authority.directory / "client-ca.crt"
    client_ca.write_bytes((authority.directory / "ca.crt").read_bytes())
    certificates = Certificates(TlsFiles(*authority.files, client_ca), lambda: clock[0])
    first = certificates.context()
    client_ca.write_bytes(b"\n" + client_ca.read_bytes())
    clock[0] += 2
    assert certificates.context() is not first
