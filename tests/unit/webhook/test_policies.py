"""The worker's own copy of the policies, and the counts it adds to their statuses."""

from collections import Counter

import pytest

from kube import errors
from kube.config import Connection
from webhook.policies import Watched


class Cluster:
    """One policy; writes of its status fail as told, reads of namespaces too."""

    def __init__(self, *failures, namespace=None):
        self.failures = list(failures)
        self.namespace = namespace
        self.status = {"denied": 1}
        self.asked = 0

    def get(self, path):
        if "/namespaces/" in path:
            self.asked += 1
            if isinstance(self.namespace, Exception):
                raise self.namespace
            return {"metadata": {"labels": self.namespace}}
        return {"metadata": {"resourceVersion": "7"}, "status": dict(self.status)}

    def patch(self, path, body, *, kind):
        assert path.endswith("/trainingpolicies/p/status")
        assert (kind, body["metadata"]) == ("merge", {"resourceVersion": "7"})
        if self.failures:
            raise self.failures.pop(0)
        self.status |= body["status"]


@pytest.fixture
def book():
    """``book(cluster)``: a book whose calls go to ``cluster``; nothing is watched."""

    def make(cluster):
        made = Watched(Connection("http://127.0.0.1:1", None, lambda: None, None, None))
        made._kube = made._quick = cluster
        return made

    return make


def counts(**fields):
    return Counter({("p", field): number for field, number in fields.items()})


def test_counts_are_added_to_what_is_stored(book):
    cluster = Cluster()
    mine = book(cluster)
    mine.add(counts(denied=1))
    mine.add(counts(denied=1, matched=2))
    mine.flush()
    mine.flush()
    assert cluster.status == {"denied": 3, "matched": 2}


@pytest.mark.parametrize("error", [errors.Conflict("changed"), errors.Unreachable("down")])
def test_a_write_that_fails_is_made_up_for(book, error):
    """Another replica wrote its counts at the same moment: none are lost, none count twice."""
    cluster = Cluster(error)
    mine = book(cluster)
    mine.add(counts(denied=2))
    mine.flush()
    assert cluster.status == {"denied": 1}
    mine.flush()
    assert cluster.status == {"denied": 3}


def test_counts_of_a_policy_that_is_gone_are_dropped(book):
    cluster = Cluster(errors.NotFound("gone"))
    mine = book(cluster)
    mine.add(counts(denied=2))
    mine.flush()
    mine.flush()
    assert cluster.status == {"denied": 1}


def test_a_namespace_that_the_watch_does_not_know_is_asked_for_once(book):
    cluster = Cluster(namespace={"team": "a"})
    assert book(cluster)._labels("ns") == {"team": "a"}
    assert cluster.asked == 1


def test_labels_that_cannot_be_had_are_unknown(book):
    assert book(Cluster(namespace=errors.Unreachable("slow")))._labels("ns") is None
    assert book(Cluster(namespace={}))._labels("") is None


def test_until_the_first_list_nothing_is_known(book):
    assert not book(Cluster())._is_loaded()
