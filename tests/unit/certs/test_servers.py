import pytest

from certs.bundles import published
from certs.issue import Issued, new_ca, new_leaf
from certs.servers import Server, all_show, finder
from kube.raw import Listing

NAME = "signalbox-webhook.signalbox-system.svc"


def configuration(**client):
    return published(
        {"metadata": {"name": "x", "resourceVersion": "1"}, "webhooks": [{"name": "one", "clientConfig": client}]}
    )


class Slices:
    """An API server with EndpointSlices of one Service."""

    def __init__(self, *slices):
        self.slices, self.asked = slices, []

    def list(self, path, *, label_selector=""):
        self.asked.append((path, label_selector))
        return Listing(list(self.slices), "1")


def endpoint_slice(ports=({"name": "https", "port": 9443},), **conditions):
    endpoints = [{"addresses": [host], "conditions": {"ready": ready}} for host, ready in conditions.items()]
    return {"endpoints": endpoints, "ports": list(ports)}


def test_ready_endpoints_of_the_service():
    """Readiness that is not known counts as ready."""
    kube = Slices(endpoint_slice(a=True, b=False, c=None), endpoint_slice(d=True), {"endpoints": None, "ports": None})
    service = {"namespace": "signalbox-system", "name": "signalbox-webhook", "path": "/mutate"}
    found = finder(kube)({"one": configuration(service=service), "two": configuration(service=service), "three": None})
    assert found == [Server(host, 9443, NAME) for host in "acd"]
    assert kube.asked == [
        (
            "/apis/discovery.k8s.io/v1/namespaces/signalbox-system/endpointslices",
            "kubernetes.io/service-name=signalbox-webhook",
        )
    ]


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("https://127.0.0.1:9443/mutate", Server("127.0.0.1", 9443, "127.0.0.1")),
        ("https://hooks.example.org/mutate", Server("hooks.example.org", 443, "hooks.example.org")),
    ],
)
def test_server_behind_a_url(url, server):
    assert finder(Slices())({"one": configuration(url=url)}) == [server]


@pytest.fixture
def issued(ca, leaf):
    return Issued(ca.certificate, leaf.certificate, leaf.key)


@pytest.fixture
def other(names, now):
    ca = new_ca(now)
    leaf = new_leaf(ca, names, now)
    return Issued(ca.certificate, leaf.certificate, leaf.key)


def test_all_show(serving, issued, other):
    gone = Server("127.0.0.1", 9, NAME)  # discard: nobody listens
    with serving(issued) as new, serving(other) as old:
        assert all_show([new], issued.ca_pem) is True
        assert all_show([new, old], issued.ca_pem) is False
        assert all_show([old, gone], issued.ca_pem) is False
        assert all_show([new, gone], issued.ca_pem) is None
        assert all_show([], issued.ca_pem) is None
