"""A job's view: what belongs to its spec alone outlives a change of its status."""

from functools import cached_property

from schemas import kinds
from schemas.job import OF_SPEC, Job

KIND = kinds.PYTORCH_JOB
SPEC = {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 3}}, "runPolicy": {"suspend": True}}


def job(name, **status):
    return {"metadata": {"name": name, "uid": name}, "spec": SPEC, "status": status}


def test_a_changed_status_reads_anew_and_the_spec_does_not():
    before = Job(KIND, job("a", phase="Running"))
    assert (before.name, before.total_replicas, before.suspended) == ("a", 4, True)
    now = before.as_now(job("b", phase="Failed"))
    assert (now.name, now.uid, now.status) == ("b", "b", {"phase": "Failed"})
    assert now.replicas is before.replicas
    assert now == Job(KIND, job("b", phase="Failed"))


def test_what_is_kept_is_read_from_the_spec_alone():
    with_spec, alone = Job(KIND, job("a", phase="Running")), Job(KIND, {"spec": SPEC})
    assert all(isinstance(vars(Job)[name], cached_property) for name in OF_SPEC)
    assert [getattr(with_spec, name) for name in OF_SPEC] == [getattr(alone, name) for name in OF_SPEC]
