"""Builders of raw objects and records; a fresh SQLite database. The integration tests bring servers instead."""

from datetime import UTC, datetime, timedelta

import pytest

from history.records import job_record, pod_record
from history.store import Store
from schemas.records import Live

START = datetime(2026, 11, 30, 12, tzinfo=UTC).replace(tzinfo=None)


def stamp(seconds):
    return f"{START + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


def condition(kind, status="True", at=0, reason="", message=""):
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": stamp(at)}


@pytest.fixture
def make_job():
    """A raw job: ``make_job("a", 7, ("Running", 30))`` has version 7 and has been Running since second 30."""

    def build(uid="a", version=1, state=None, name="train", namespace="team", created=0, **metadata):
        conditions = [condition("Created")]
        status = {"conditions": conditions}
        if state:
            conditions.append(condition(state[0], at=state[1], reason=f"Job{state[0]}", message="said so"))
            if state[0] in ("Succeeded", "Failed"):
                status["completionTime"] = stamp(state[1])
        container = {"name": "main", "image": "train:1", "resources": {"requests": {"cpu": 2, "memory": "10Gi"}}}
        spec = {"replicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": {"containers": [container]}}}}}
        meta = {"uid": uid, "name": name, "namespace": namespace, "resourceVersion": str(version)}
        meta |= {"creationTimestamp": stamp(created), **metadata}
        kind = {"apiVersion": "signalbox.dev/v1", "kind": "TrainingJob"}
        return {**kind, "metadata": meta, "spec": spec, "status": status}

    return build


@pytest.fixture
def make_pod():
    def build(uid="p", version=1, phase="Running", name="train-worker-0", started=5, code=None, reason="", ended=50):
        container = {"name": "main", "image": "train:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
        state = {"running": {"startedAt": stamp(started)}} if started is not None else {"waiting": {}}
        if code is not None:
            times = {"startedAt": stamp(started), "finishedAt": stamp(ended)}
            state = {"terminated": {"exitCode": code, "reason": reason, **times}}
        meta = {"uid": uid, "name": name, "namespace": "team", "resourceVersion": str(version)}
        return {
            "metadata": meta | {"creationTimestamp": stamp(1)},
            "spec": {"containers": [container]},
            "status": {"phase": phase, "podIP": "10.0.0.1", "containerStatuses": [{"name": "main", "state": state}]},
        }

    return build


@pytest.fixture
def make_event():
    def build(uid="a", name="train.1", version=1, count=1, last=10, **fields):
        involved = {"kind": "TrainingJob", "namespace": "team", "name": "train", "uid": uid}
        times = {"firstTimestamp": stamp(0), "lastTimestamp": stamp(last)}
        meta = {"name": name, "namespace": "team", "resourceVersion": str(version)}
        said = {"type": "Normal", "reason": "JobRunning", "message": "runs", "count": count}
        return {"metadata": meta, "involvedObject": involved, **said, **times, **fields}

    return build


@pytest.fixture
def job(make_job):
    """A job's record, as ``make_job``."""
    return lambda *args, **kwargs: job_record(make_job(*args, **kwargs))


@pytest.fixture
def pod(make_pod):
    """A pod's record, as ``make_pod``, of job ``a``."""
    return lambda *args, job_uid="a", **kwargs: pod_record(make_pod(*args, **kwargs), job_uid, "Worker")


@pytest.fixture
def moment():
    return lambda seconds: START + timedelta(seconds=seconds)


@pytest.fixture
def live():
    """A complete list as of version 5: of all TrainingJobs, or with ``what="pod"`` of all pods."""

    def build(*uids, what="job", version="5", **bounds):
        kind = {"kind": "TrainingJob"} if what == "job" else {}
        return Live(what, frozenset(uids), version, **{**kind, **bounds})

    return build


@pytest.fixture
def database(tmp_path):
    """URL of a database without tables."""
    return f"sqlite:///{tmp_path}/history.db"


@pytest.fixture
def clock():
    """The store's clock: a list whose last item is the time."""
    return [START + timedelta(hours=1)]


@pytest.fixture
def store(database, clock):
    store = Store(database, clock=lambda: clock[-1])
    store.upgrade()
    yield store
    store.close()
