"""Scale requests: the job behind them is read and judged with the new number."""

import pytest

from schemas import kinds
from webhook import scale
from webhook.review import Review
from webhook.scale import Unreadable

KIND = kinds.PYTORCH_JOB


def job(**types):
    pod = {"spec": {"containers": [{"name": "pytorch", "image": "i"}]}}
    entries = {name: {"replicas": count, "template": pod} for name, count in types.items()}
    return {"metadata": {"name": "job"}, "spec": {"pytorchReplicaSpecs": entries}}


def request(replicas, operation="UPDATE", kind=KIND):
    obj = {"kind": "Scale", "metadata": {"name": "job"}, "spec": {} if replicas is None else {"replicas": replicas}}
    return Review("u", operation, "scale", kind, "autoscaling", "Scale", "ns", "job", obj, None, dry_run=False)


def verdict(replicas, stored=None, **options):
    found = stored or job(Master=1, Worker=2)
    return scale.judge(request(replicas, **options), lambda *_: found)


@pytest.mark.parametrize("replicas", [0, 1, 50])
def test_a_good_number(replicas):
    assert verdict(replicas).allowed


@pytest.mark.parametrize(
    ("stored", "replicas", "path", "words"),
    [
        (job(Worker=2), 0, "spec.pytorchReplicaSpecs", "at least 1 replica"),
        (job(Worker=2), None, "spec.pytorchReplicaSpecs", "at least 1 replica"),
        (job(Master=1), 2, "spec.pytorchReplicaSpecs.Worker", "must be one of the job's types to be scaled: Master"),
        (job(Worker=2), -1, "spec.replicas", "from 0 to"),
        (job(Worker=2), 2**31, "spec.replicas", "from 0 to"),
        (job(Worker=2), "3", "spec.replicas", "must be an integer"),
        (job(Worker=2), True, "spec.replicas", "must be an integer"),
    ],
)
def test_a_bad_number(stored, replicas, path, words):
    [fault] = verdict(replicas, stored).faults
    assert (fault.path, words in fault.must) == (path, True)


def test_the_elastic_range_and_the_gang_hold():
    stored = job(Worker=2)
    stored["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 3}
    stored["spec"]["runPolicy"] = {"schedulingPolicy": {"minAvailable": 2}}
    assert verdict(3, stored).allowed
    assert [fault.path for fault in verdict(4, stored).faults] == ["spec.pytorchReplicaSpecs.Worker.replicas"]
    assert [fault.path for fault in verdict(1, stored).faults] == ["spec.runPolicy.schedulingPolicy.minAvailable"]


def test_a_fault_that_the_job_has_already_is_not_reported():
    stored = job(Worker=2)
    stored["spec"]["runPolicy"] = {"backoffLimit": -1}
    assert verdict(3, stored).allowed


def test_a_job_that_cannot_be_read_is_not_scaled():
    def fails(*_):
        raise Unreadable("timed out")

    [fault] = scale.judge(request(3), fails).faults
    assert "timed out" in fault.must


@pytest.mark.parametrize(("replicas", "allowed"), [(3, True), (-3, False)])
def test_without_a_cluster_the_number_itself_is_judged(replicas, allowed):
    assert scale.judge(request(replicas), None).allowed is allowed


def test_other_operations_and_kinds_pass():
    assert verdict(-1, operation="DELETE").allowed
    assert verdict(-1, kind=None).allowed
