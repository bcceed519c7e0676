"""The manifests of a job's children: names, roles, Services, variables; tests/golden has the recorded ones."""

import pytest

from controller import build
from controller.pods import replica_type_of
from schemas import defaults, kinds
from schemas.job import Job

ROLE = "training.kubeflow.org/job-role"


@pytest.fixture
def make():
    """``make(kind, {"Worker": 2}, **container)``: a job with its defaults."""

    def job(kind, types, spec=None, **container):
        main = {"name": kind.container, "image": "img", **container}
        sidecar = {"name": "log", "image": "img"}
        entry = {"template": {"spec": {"containers": [sidecar, main]}}}
        entries = {name: {**entry, "replicas": count} for name, count in types.items()}
        metadata = {"name": "job", "namespace": "ns", "uid": "u"}
        raw = {"metadata": metadata, "spec": {kind.spec_key: entries, **(spec or {})}}
        return Job(kind, defaults.default(kind, raw))

    return job


def pods(job):
    for entry in job.replicas:
        for index in range(entry.count):
            yield build.pod(job, entry, index, attempt=0, round_=0)


@pytest.mark.parametrize(
    ("kind", "types", "marked"),
    [
        (kinds.TF_JOB, {"Chief": 1, "PS": 1, "Worker": 2}, ["job-chief-0"]),
        (kinds.TF_JOB, {"Master": 1, "Worker": 2}, ["job-master-0"]),
        (kinds.TF_JOB, {"PS": 1, "Worker": 2, "Evaluator": 1}, ["job-worker-0"]),
        (kinds.PYTORCH_JOB, {"Master": 1, "Worker": 2}, ["job-master-0"]),
        (kinds.PYTORCH_JOB, {"Worker": 2}, ["job-worker-0"]),
        (kinds.XGBOOST_JOB, {"Master": 1, "Worker": 2}, ["job-master-0"]),
        (kinds.PADDLE_JOB, {"Master": 1, "Worker": 2}, ["job-master-0"]),
        (kinds.PADDLE_JOB, {"Worker": 2}, []),
        (kinds.JAX_JOB, {"Worker": 3}, ["job-worker-0"]),
        (kinds.MPI_JOB, {"Launcher": 1, "Worker": 2}, ["job-launcher"]),
    ],
)
def test_who_carries_the_role(make, kind, types, marked):
    """kubeflow/trainer#1974"""
    found = [pod["metadata"] for pod in pods(make(kind, types))]
    assert [item["name"] for item in found if item["labels"].get(ROLE) == "master"] == marked


@pytest.mark.parametrize(("types", "marked"), [({"chief": 1, "b": 2}, "job-chief-0"), ({"b": 2, "c": 1}, "job-b-0")])
def test_a_training_job_marks_its_leader_or_first_type(make, types, marked):
    found = [pod["metadata"] for pod in pods(make(kinds.TRAINING_JOB, types))]
    assert [item["name"] for item in found if "signalbox.dev/job-role" in item["labels"]] == [marked]


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: kind.kind)
def test_services_by_the_kinds_row(make, kind):
    job = make(kind, dict.fromkeys((*kind.leaders[:1], "Worker"), 1))
    replicas = sorted(pod["metadata"]["name"] for pod in pods(job))
    expected = {"replica": replicas, "job": ["job"], "none": []}
    assert sorted(service["metadata"]["name"] for service in build.services(job)) == expected[kind.services]


def names_of(container):
    return [item["name"] for item in container.get("env", ())]


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: kind.kind)
def test_which_containers_are_told(make, kind):
    job = make(kind, dict.fromkeys((*kind.leaders[:1], "Worker"), 1))
    first = next(pods(job))
    sidecar, main = first["spec"]["containers"]
    assert names_of(main)
    assert bool(names_of(sidecar)) != kind.env_in_main_only


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: kind.kind)
def test_a_name_the_user_set_is_kept_and_not_added_again(make, kind):
    """helm/helm#31529"""
    types = dict.fromkeys((*kind.leaders[:1], "Worker"), 1)
    added = names_of(next(pods(make(kind, types)))["spec"]["containers"][1])
    theirs = [{"name": name, "value": "mine"} for name in added]
    again = next(pods(make(kind, types, env=theirs)))["spec"]["containers"][1]
    assert again["env"] == theirs


def test_the_job_is_not_changed(make):
    job = make(kinds.PADDLE_JOB, {"Worker": 1}, env=[{"name": "A", "value": "1"}])
    [pod] = pods(job)
    [address] = [item for item in pod["spec"]["containers"][1]["env"] if "valueFrom" in item]
    assert address["valueFrom"] == {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}
    assert names_of(job.replicas[0].containers[1]) == ["A"]


@pytest.mark.parametrize(
    ("kind", "label", "expected"),
    [
        (kinds.TRAINING_JOB, "worker", "Worker"),
        (kinds.TRAINING_JOB, "gone", "gone"),
        (kinds.PYTORCH_JOB, "worker", "Worker"),
        (kinds.PYTORCH_JOB, None, None),
    ],
)
def test_the_history_gets_the_type_in_the_jobs_own_spelling(make, kind, label, expected):
    key = {"kubeflow": "training.kubeflow.org/", "signalbox": "signalbox.dev/"}[kind.labels] + "replica-type"
    assert replica_type_of(make(kind, {"Worker": 1}), {"metadata": {"labels": {key: label}}}) == expected
