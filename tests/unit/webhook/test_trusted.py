from datetime import UTC, datetime

import pytest

from certs.issue import new_ca
from kube.errors import Unreachable
from kube.resources import OWN_CONFIGURATIONS
from webhook.trusted import FRESH_SECONDS, Trusted, bundles_reader

MUTATING, VALIDATING = OWN_CONFIGURATIONS


class Cluster:
    """What the API server says of the bundles."""

    def __init__(self, **bundles):
        self.bundles, self.reads, self.is_down = bundles, 0, False

    def read(self):
        self.reads += 1
        if self.is_down:
            raise Unreachable("connection refused")
        return {name: frozenset(found) for name, found in self.bundles.items()}


@pytest.fixture
def port(tls_server, authority):
    """A server that shows the authority's leaf."""
    with tls_server(*authority.files) as port:
        yield port


@pytest.fixture
def own(authority):
    return (authority.directory / "ca.crt").read_bytes()


@pytest.fixture(scope="module")
def other():
    return new_ca(datetime.now(UTC)).certificate


def test_nothing_is_wrong_when_the_bundles_vouch(port, own, other):
    cluster = Cluster(**{MUTATING: [own], VALIDATING: [other + own]})
    trusted = Trusted("127.0.0.1", port, cluster.read)
    assert [trusted.fault() for _ in range(3)] == ["", "", ""]
    assert cluster.reads == 1


def test_a_proven_mismatch_is_named(port, own, other):
    trusted = Trusted("127.0.0.1", port, Cluster(**{MUTATING: [own], VALIDATING: [own, other]}).read)
    assert trusted.fault() == "caBundle of signalbox-validating does not vouch for the served certificate"


@pytest.mark.parametrize("bundles", [{}, {MUTATING: [], VALIDATING: []}, {VALIDATING: [b"garbage"]}])
def test_empty_or_broken_bundles_prove_nothing(port, bundles):
    """Replicas that leave because a bundle was wiped would make the outage longer than the wiping."""
    assert Trusted("127.0.0.1", port, Cluster(**bundles).read).fault() == ""


def test_an_api_server_that_cannot_be_read_proves_nothing(port, other):
    clock = [0.0]
    cluster = Cluster(**{VALIDATING: [other]})
    trusted = Trusted("127.0.0.1", port, cluster.read, lambda: clock[0])
    assert trusted.fault()
    cluster.is_down = True
    clock[0] += FRESH_SECONDS
    assert trusted.fault() == ""


def test_what_is_held_may_be_older_than_the_certificate(port, own, other):
    """A new leaf met before the new bundle was read is no mismatch."""
    cluster = Cluster(**{VALIDATING: [other]})
    trusted = Trusted("127.0.0.1", port, cluster.read)
    assert trusted.fault()
    cluster.bundles = {VALIDATING: [other + own]}
    assert trusted.fault() == ""


def test_without_a_cluster_nothing_is_read(tmp_path, monkeypatch, port):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert bundles_reader(None) is None
    assert bundles_reader(str(tmp_path / "missing")) is None
    assert Trusted("127.0.0.1", port, None).fault() == ""
