"""Kinds whose installed CRD would drop what the controller relies on are not served until it is replaced."""

import copy

import pytest

from controller.serving import Serving
from kube import errors
from schemas import crd, kinds

KIND = kinds.PYTORCH_JOB


def installed(change=None, version="1"):
    found = copy.deepcopy(crd.crd(KIND))
    found["metadata"]["resourceVersion"] = version
    if change:
        change(found["spec"]["versions"][0])
    return found


def status_of(version):
    return version["schema"]["openAPIV3Schema"]["properties"]["status"]


def prune(version):
    del status_of(version)["properties"]["pendingRestarts"]
    del status_of(version)["properties"]["replicaStatuses"]["additionalProperties"]["properties"]["createdIndexes"]


def keep_all(version):
    version["schema"]["openAPIV3Schema"]["properties"]["status"] = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }


@pytest.mark.parametrize(
    ("change", "lacking"),
    [
        (None, []),
        (prune, ["status.pendingRestarts is dropped", "status.replicaStatuses.*.createdIndexes is dropped"]),
        (keep_all, []),
        (lambda v: status_of(v)["properties"]["restarts"].update(type="string"), ["status.restarts is of type string"]),
        (lambda v: status_of(v).pop("properties"), "all"),
        (lambda v: v["schema"]["openAPIV3Schema"]["properties"].pop("status"), ["status is dropped"]),
        (lambda v: v["subresources"].pop("scale"), ["the scale subresource is missing"]),
        (lambda v: v["subresources"].pop("status"), ["the status subresource is missing"]),
        (
            lambda v: v["subresources"]["scale"].update(specReplicasPath=".spec.replicas"),
            ["the scale subresource has other paths"],
        ),
        (lambda v: v.update(served=False), ["version v1 is not served"]),
        (lambda v: v.update(name="v2"), ["version v1 is not served"]),
        (lambda v: v.pop("schema"), []),
    ],
)
def test_what_an_installed_crd_lacks(change, lacking):
    found = crd.shortcomings(KIND, installed(change))
    assert len(found) > 8 if lacking == "all" else sorted(found) == sorted(lacking)


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: kind.kind)
def test_our_own_crds_lack_nothing(kind):
    assert crd.shortcomings(kind, crd.crd(kind)) == []


class Kube:
    def __init__(self, answer):
        self.answer = answer
        self.fetched = 0

    def metadata(self, path):
        return self._at(path)["metadata"]

    def get(self, path):
        self.fetched += 1
        return self._at(path)

    def _at(self, path):
        assert path == "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/pytorchjobs.kubeflow.org"
        if isinstance(self.answer, errors.KubeError):
            raise self.answer
        return self.answer


def test_a_kind_is_served_once_its_crd_is_replaced():
    again = []
    kube = Kube(installed(prune))
    serving = Serving(kube, (KIND,), again.append)
    serving.check()
    reason = serving.unserved[KIND]
    assert "status.pendingRestarts is dropped" in reason
    assert reason.endswith("Apply ours: kubectl apply --server-side --force-conflicts -k deploy/overlays/kubeflow")
    serving.check()
    assert (again, KIND in serving.unserved, kube.fetched) == ([], True, 1)
    kube.answer = installed(version="2")
    serving.check()
    assert (again, serving.unserved) == ([KIND], {})
    kube.answer = installed(prune, version="3")
    serving.check()
    assert KIND in serving.unserved


@pytest.mark.parametrize(
    ("error", "still"),
    [
        (errors.Unreachable("x"), True),
        (errors.ServerError("x"), True),
        (errors.NotFound("x"), False),
        (errors.Forbidden("x"), True),
    ],
)
def test_trouble_with_reading_changes_nothing(error, still):
    kube = Kube(installed(prune))
    serving = Serving(kube, (KIND,), lambda _: None)
    serving.check()
    kube.answer = error
    serving.check()
    assert (KIND in serving.unserved) is still


def test_a_crd_that_may_not_be_read_is_trusted():
    serving = Serving(Kube(errors.Forbidden("may not get")), (KIND,), lambda _: None)
    serving.check()
    assert serving.unserved == {}
