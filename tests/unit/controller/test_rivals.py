"""Whether another operator is at work."""

import pytest

from controller import rivals
from controller.coexistence import Coexistence
from kube import errors
from schemas import kinds
from schemas.kinds import KINDS


def deployment(replicas, name="training-operator"):
    spec = {} if replicas is None else {"replicas": replicas}
    return {"metadata": {"namespace": "kubeflow", "name": name}, "spec": spec}


def lease(version="1", holder="them", duration=15):
    metadata = {"namespace": "kubeflow", "name": "1ca428e5.training-operator.kubeflow.org", "uid": "l"}
    spec = {"holderIdentity": holder, "leaseDurationSeconds": duration}
    return {"metadata": {**metadata, "resourceVersion": version}, "spec": spec}


def sign(deployments=(), leases=(), before=None, now=100.0):
    seen = rivals.sighted(leases, before or {}, now)
    return rivals.at_work(deployments, leases, seen, now)


@pytest.mark.parametrize(
    ("found", "signs"),
    [
        ({}, ""),
        ({"deployments": [deployment(1)]}, "Deployment kubeflow/training-operator"),
        ({"deployments": [deployment(None)]}, "Deployment kubeflow/training-operator"),
        ({"deployments": [deployment(0)]}, ""),
        ({"leases": [lease()]}, "Lease kubeflow/1ca428e5.training-operator.kubeflow.org"),
        ({"leases": [lease(holder="")]}, ""),
        ({"leases": [lease(holder=None)]}, ""),
    ],
)
def test_signs(found, signs):
    assert sign(**found) == signs


@pytest.mark.parametrize(
    ("version", "later", "kept"), [("1", 15, True), ("1", 15.1, False), ("2", 15.1, True), ("1", 900, False)]
)
def test_a_lease_that_nobody_renews_is_no_sign(version, later, kept):
    before = rivals.sighted([lease("1")], {}, 100.0)
    assert bool(sign(leases=[lease(version)], before=before, now=100.0 + later)) is kept


def test_no_rival_claims_a_kind_of_ours():
    claimed = {kind.kind for kind in KINDS for rival in rivals.RIVALS if rival.claims(kind)}
    assert claimed == {kind.kind for kind in KINDS if kind.group == "kubeflow.org"}


class Server:
    def __init__(self):
        self.items = {}
        self.fails = None
        self.asked = []

    def get(self, path, *, fieldSelector):  # noqa: N803
        self.asked.append((path, fieldSelector))
        if self.fails:
            raise self.fails
        return {"items": self.items.get(fieldSelector.removeprefix("metadata.name="), [])}


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def changes():
    return []


@pytest.fixture
def coexistence(server, changes):
    return Coexistence(server, on_change=lambda: changes.append(1), monotonic=lambda: 0.0)


def test_kinds_are_ceded_and_taken_back(server, coexistence, changes):
    server.items["training-operator"] = [deployment(1)]
    coexistence.look(KINDS)
    assert {kind.group for kind in coexistence.ceded} == {"kubeflow.org"}
    assert coexistence.ceded[kinds.PYTORCH_JOB] == (
        "Kubeflow's training operator is at work: Deployment kubeflow/training-operator"
    )
    assert not coexistence.may_serve(kinds.PYTORCH_JOB)
    assert coexistence.may_serve(kinds.TRAINING_JOB)
    coexistence.look(KINDS)
    assert changes == [1]
    server.items["training-operator"] = [deployment(0)]
    coexistence.look(KINDS)
    assert (coexistence.ceded, changes) == ({}, [1, 1])
    assert coexistence.may_serve(kinds.PYTORCH_JOB)


def test_only_the_kinds_a_rival_serves_are_ceded(server, coexistence):
    server.items["mpi-operator"] = [deployment(1, "mpi-operator")]
    coexistence.look(KINDS)
    assert [kind.plural for kind in coexistence.ceded] == ["mpijobs"]


def test_nothing_is_asked_where_nobody_competes(server, coexistence):
    coexistence.look([kinds.TRAINING_JOB])
    assert (server.asked, coexistence.looked.is_set()) == ([], True)


def test_trouble_leaves_everything_as_it_was(server, coexistence):
    server.fails = errors.Unreachable("no answer")
    coexistence.look(KINDS)
    assert not coexistence.looked.is_set()
    server.fails, server.items["training-operator"] = None, [deployment(1)]
    coexistence.look(KINDS)
    server.fails = errors.ServerError("out of order")
    coexistence.look(KINDS)
    assert kinds.PYTORCH_JOB in coexistence.ceded


def test_whoever_may_not_look_serves(server, coexistence):
    """With the rights of one namespace nobody can know; the log says so."""
    server.fails = errors.Forbidden("may not list")
    coexistence.look(KINDS)
    assert (coexistence.ceded, coexistence.looked.is_set()) == ({}, True)


def test_a_kind_waits_until_its_rivals_were_looked_for(coexistence, changes):
    """Its CRD may be installed while the controller runs."""
    coexistence.look([kinds.TRAINING_JOB])
    assert not coexistence.may_serve(kinds.PYTORCH_JOB)
    coexistence.look([kinds.TRAINING_JOB, kinds.PYTORCH_JOB])
    assert coexistence.may_serve(kinds.PYTORCH_JOB)
    assert len(changes) == 2


def test_taking_over_serves_whatever_is_found(server):
    server.items["training-operator"] = [deployment(1)]
    coexistence = Coexistence(server, on_change=lambda: None, take_over=True, monotonic=lambda: 0.0)
    coexistence.look(KINDS)
    assert (server.asked, coexistence.looked.is_set()) == ([], True)
    assert coexistence.may_serve(kinds.PYTORCH_JOB)
