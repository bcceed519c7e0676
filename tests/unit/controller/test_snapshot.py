"""Snapshots from the stores: pods are read once for each state of theirs."""

import pytest

from controller import pods
from controller.snapshot import Reader
from kube.store import Store
from schemas import kinds
from schemas.job import Job

KIND = kinds.TRAINING_JOB


def job(generation=1):
    template = {"spec": {"containers": [{"name": "main", "image": "i"}]}}
    return {
        "metadata": {"name": "job", "namespace": "ns", "uid": "u", "generation": generation},
        "spec": {"replicaSpecs": {"Worker": {"template": template}}},
    }


def pod(version, phase):
    owner = {"controller": True, "uid": "u"}
    labels = {"signalbox.dev/replica-type": "worker", "signalbox.dev/replica-index": "0"}
    metadata = {"name": "p", "namespace": "ns", "uid": "p", "resourceVersion": str(version)}
    return {"metadata": metadata | {"ownerReferences": [owner], "labels": labels}, "status": {"phase": phase}}


@pytest.fixture
def held():
    store = Store()
    store.observe(pod(1, "Pending"))
    return store


def phases(reader, read_job):
    seen = reader.read(KIND, read_job)
    return [seen.read_pod(Job(KIND, seen.job), raw) for raw in seen.pods]


def test_a_pod_is_read_once_until_it_changes(held, monkeypatch):
    read, count = pods.read, []
    monkeypatch.setattr(pods, "read", lambda job, raw: (count.append(raw), read(job, raw))[1])
    reader = Reader(held, Store())
    assert [pod.phase for pod in (*phases(reader, job()), *phases(reader, job()))] == ["Pending", "Pending"]
    assert len(count) == 1
    held.observe(pod(2, "Running"))
    assert [pod.phase for pod in phases(reader, job())] == ["Running"]
    assert len(count) == 2


def test_a_new_generation_reads_anew(held, monkeypatch):
    """Which replica a pod is depends on the spec."""
    read, count = pods.read, []
    monkeypatch.setattr(pods, "read", lambda job, raw: (count.append(raw), read(job, raw))[1])
    reader = Reader(held, Store())
    phases(reader, job())
    phases(reader, job(generation=2))
    assert len(count) == 2


def test_a_spec_is_read_once_for_each_generation(held):
    reader = Reader(held, Store())
    first, again = (seen.read_job(KIND, seen.job) for seen in (reader.read(KIND, job()), reader.read(KIND, job())))
    assert first.replicas[0] is again.replicas[0]
    seen = reader.read(KIND, job(generation=2))
    assert seen.read_job(KIND, seen.job).replicas[0] is not first.replicas[0]


def test_a_view_knows_a_spec_that_was_read_and_any_other(held):
    reader = Reader(held, Store())
    assert reader.view(KIND, job()).replicas[0].type == "Worker"
    seen = reader.read(KIND, job())
    assert reader.view(KIND, job()).replicas[0] is seen.read_job(KIND, seen.job).replicas[0]
    assert reader.view(KIND, job(generation=2)).raw == job(generation=2)
    assert reader.view(KIND, {}).replicas == ()
