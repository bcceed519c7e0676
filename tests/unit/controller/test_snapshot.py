"""Snapshots from the stores: pods are read once for each state of theirs."""

from itertools import pairwise

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


def reads_alike(reader, old, new):
    """As ``reads_alike``, once a snapshot has read the job."""
    reader.read(KIND, job())
    return reader.reads_alike("u", old, new)


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]}, True),
        ({"phase": "Pending", "podIP": "10.0.0.1", "hostIP": "10.0.0.2"}, True),
        ({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "No"}]}, False),
        ({"phase": "Running"}, False),
    ],
)
def test_what_no_decision_sees_reads_alike(held, changed, same):
    assert reads_alike(Reader(held, Store()), pod(1, "Pending"), pod(2, "") | {"status": changed}) is same


def test_pods_of_others_and_of_unread_jobs_read_otherwise(held):
    assert not Reader(held, Store()).reads_alike("u", pod(1, "Pending"), pod(2, "Pending"))
    stranger = pod(1, "Pending")
    stranger["metadata"]["ownerReferences"] = []
    assert not reads_alike(Reader(held, Store()), stranger, pod(2, "Pending"))


def test_states_that_are_over_are_not_kept(held):
    reader, states = Reader(held, Store()), [pod(version, "Pending") for version in range(1, 9)]
    views = reader.read(KIND, job()).read_pod.__self__
    assert all(reader.reads_alike("u", old, new) for old, new in pairwise(states))
    assert [raw for raw, _ in views._views.values()] == states[-1:]
