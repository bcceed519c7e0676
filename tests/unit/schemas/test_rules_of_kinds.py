"""Which replica types make a job of each kind, and the fields that only one kind has."""

import pytest

from schemas import defaults, kinds, validation
from schemas.job import Job

TF = "spec.tfReplicaSpecs"
XGB = "spec.xgbReplicaSpecs"
PADDLE = "spec.paddleReplicaSpecs"
JAX = "spec.jaxReplicaSpecs"
MPI = "spec.mpiReplicaSpecs"

# kind, types, path of the fault (None: good), part of the message
TYPES = [
    (kinds.TF_JOB, {"Worker": 2}, None, ""),
    (kinds.TF_JOB, {"Chief": 1}, None, ""),
    (kinds.TF_JOB, {"Master": 1, "PS": 1, "Worker": 2}, None, ""),
    (kinds.TF_JOB, {"Chief": 1, "PS": 1, "Worker": 0, "Evaluator": 1}, None, ""),
    (kinds.TF_JOB, {"chief": 1, "ps": 1, "worker": 2, "evaluator": 1}, None, ""),
    (kinds.TF_JOB, {"Chief": 1, "Master": 1}, TF, "at most one of Chief, Master"),
    (kinds.TF_JOB, {"Chief": 2, "Worker": 1}, f"{TF}.Chief.replicas", "must be 1"),
    (kinds.TF_JOB, {"PS": 2}, TF, "a replica of Chief or Master or Worker"),
    (kinds.TF_JOB, {"PS": 2, "Evaluator": 1}, TF, "nothing else decides success"),
    (kinds.TF_JOB, {"PS": 2, "Worker": 0}, TF, "nothing else decides success"),
    (kinds.TF_JOB, {"Worker": 0}, TF, "at least 1 replica"),
    (kinds.TF_JOB, {"Worker": 1, "Foo": 1}, f"{TF}.Foo", "Chief, Master, PS, Worker, Evaluator"),
    (kinds.TF_JOB, {"ps": 1, "PS": 1, "Worker": 1}, f"{TF}.PS", "second spelling of ps"),
    (kinds.XGBOOST_JOB, {"Master": 1}, None, ""),
    (kinds.XGBOOST_JOB, {"Master": 1, "Worker": 2}, None, ""),
    (kinds.XGBOOST_JOB, {"Worker": 2}, f"{XGB}.Master", "must be set: nothing else decides success"),
    (kinds.XGBOOST_JOB, {"Master": 2}, f"{XGB}.Master.replicas", "must be 1"),
    (kinds.XGBOOST_JOB, {"Master": 0, "Worker": 2}, f"{XGB}.Master.replicas", "must be 1"),
    (kinds.PADDLE_JOB, {"Master": 1, "Worker": 2}, None, ""),
    (kinds.PADDLE_JOB, {"Worker": 2}, None, ""),
    (kinds.PADDLE_JOB, {"Master": 2}, f"{PADDLE}.Master.replicas", "must be 1"),
    (kinds.JAX_JOB, {"Worker": 1}, None, ""),
    (kinds.JAX_JOB, {"Master": 1, "Worker": 1}, f"{JAX}.Master", "one of Worker"),
    (kinds.JAX_JOB, {"Worker": 0}, JAX, "at least 1 replica"),
    (kinds.MPI_JOB, {"Launcher": 1}, None, ""),
    (kinds.MPI_JOB, {"Launcher": 1, "Worker": 0}, None, ""),
    (kinds.MPI_JOB, {"launcher": 1, "worker": 2}, None, ""),
    (kinds.MPI_JOB, {"Worker": 2}, f"{MPI}.Launcher", "must be set: nothing else decides success"),
    (kinds.MPI_JOB, {"Launcher": 2, "Worker": 2}, f"{MPI}.Launcher.replicas", "must be 1"),
    (kinds.MPI_JOB, {"Launcher": 0, "Worker": 2}, f"{MPI}.Launcher.replicas", "must be 1"),
]


@pytest.mark.parametrize(("kind", "types", "path", "words"), TYPES, ids=[f"{row[0].kind}-{row[1]}" for row in TYPES])
def test_which_types_make_a_job(make_job, faults_of, kind, types, path, words):
    """kubeflow/trainer#25, kubeflow/mpi-operator#833"""
    found = faults_of(make_job(kind, **types), kind)
    assert list(found) == ([path] if path else [])
    assert words in "".join(found.values())


# kind, types, field below spec, value, path of the fault (None: good), part of the message
FIELDS = [
    (kinds.TF_JOB, {"Worker": 2}, "successPolicy", "", None, ""),
    (kinds.TF_JOB, {"Worker": 2}, "successPolicy", None, None, ""),
    (kinds.TF_JOB, {"Worker": 2}, "successPolicy", "AllWorkers", None, ""),
    (kinds.TF_JOB, {"Worker": 2}, "successPolicy", "allWorkers", "spec.successPolicy", "must be AllWorkers"),
    (kinds.TF_JOB, {"Worker": 2}, "successPolicy", {}, "spec.successPolicy", "must be a string"),
    (kinds.TF_JOB, {"Chief": 1, "Worker": 2}, "successPolicy", "AllWorkers", None, ""),
    (kinds.TF_JOB, {"Worker": 2}, "enableDynamicWorker", True, None, ""),
    (kinds.TF_JOB, {"Worker": 2}, "enableDynamicWorker", "true", "spec.enableDynamicWorker", "true or false"),
    (kinds.PADDLE_JOB, {"Worker": 2}, "elasticPolicy", {}, None, ""),
    (kinds.PADDLE_JOB, {"Worker": 2}, "elasticPolicy", {"maxReplicas": 5, "maxRestarts": 3}, None, ""),
    (kinds.PADDLE_JOB, {"Master": 1}, "elasticPolicy", {}, f"{PADDLE}.Worker", "must be set"),
    (kinds.PADDLE_JOB, {"Worker": 2}, "elasticPolicy", {"maxReplicas": 1}, f"{PADDLE}.Worker.replicas", "within"),
    (kinds.MPI_JOB, {"Launcher": 1, "Worker": 2}, "slotsPerWorker", 8, None, ""),
    (kinds.MPI_JOB, {"Launcher": 1, "Worker": 2}, "slotsPerWorker", 0, "spec.slotsPerWorker", "≥ 1"),
    (kinds.MPI_JOB, {"Launcher": 1, "Worker": 2}, "slotsPerWorker", "8", "spec.slotsPerWorker", "an integer"),
    (kinds.MPI_JOB, {"Launcher": 1, "Worker": 2}, "mainContainer", "mpi", None, ""),
]


@pytest.mark.parametrize(
    ("kind", "types", "at", "value", "path", "words"),
    FIELDS,
    ids=[f"{row[0].kind}-{row[2]}={row[3]}" for row in FIELDS],
)
def test_fields_of_one_kind(make_job, changed, faults_of, kind, types, at, value, path, words):
    found = faults_of(changed(make_job(kind, **types), f"spec.{at}", value), kind)
    assert set(found) == ({path} if path else set())
    assert words in "".join(found.values())


@pytest.mark.parametrize("replicas", [0, 1, 10, 9999])
def test_a_launchers_name_has_no_index(make_job, faults_of, replicas):
    """kubeflow/trainer#1101: the longest child of an MPIJob may be its launcher."""
    job = make_job(kinds.MPI_JOB, Launcher=1, Worker=replicas)
    longest = max(len("-launcher"), len(f"-worker-{max(replicas - 1, 0)}"))
    job["metadata"]["name"] = "j" * (63 - longest)
    assert faults_of(job, kinds.MPI_JOB) == {}
    job["metadata"]["name"] += "j"
    assert list(faults_of(job, kinds.MPI_JOB)) == ["metadata.name"]


def good(make_job, kind):
    return make_job(kind, **dict.fromkeys(kind.leaders[:1], 1), Worker=2)


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: kind.kind)
def test_a_plain_job_is_good_and_not_warned_about(make_job, faults_of, kind):
    job = good(make_job, kind)
    assert faults_of(job, kind) == {}
    assert validation.warn(Job(kind, defaults.default(kind, job))) == []


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: kind.kind)
@pytest.mark.parametrize(
    "field", ["cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"]
)
def test_every_kind_knows_the_old_places(make_job, changed, faults_of, kind, field):
    """kubeflow/trainer#1241"""
    job = changed(good(make_job, kind), f"spec.{field}", "Running" if field == "cleanPodPolicy" else 5)
    assert faults_of(job, kind) == {}
    [text] = validation.warn(Job(kind, defaults.default(kind, job)))
    assert text == f"spec.{field}: has no effect: use spec.runPolicy.{field}"


@pytest.mark.parametrize(
    ("kind", "types", "warned"),
    [
        (kinds.TF_JOB, {"PS": 1, "Worker": 1}, ["Worker"]),
        (kinds.TF_JOB, {"Chief": 1, "PS": 1, "Worker": 1, "Evaluator": 1}, ["Chief"]),
        (kinds.MPI_JOB, {"Launcher": 1, "Worker": 1}, ["Launcher"]),
        (kinds.PADDLE_JOB, {"Master": 1, "Worker": 1}, ["Master"]),
        (kinds.JAX_JOB, {"Worker": 1}, ["Worker"]),
    ],
)
def test_always_is_warned_about_where_it_decides(make_job, kind, types, warned):
    job = make_job(kind, **types)
    for entry in job["spec"][kind.spec_key].values():
        entry["restartPolicy"] = "Always"
    found = validation.warn(Job(kind, defaults.default(kind, job)))
    assert [text.split(":")[0] for text in found] == [f"spec.{kind.spec_key}.{name}.restartPolicy" for name in warned]


def test_always_is_good_on_a_type_that_the_success_policy_leaves_out(make_job):
    job = make_job(kinds.TRAINING_JOB, store=1, searcher=2)
    job["spec"]["successPolicy"] = {"policy": "AnyReplica", "type": "searcher"}
    job["spec"]["replicaSpecs"]["store"]["restartPolicy"] = "Always"
    assert validation.warn(Job(kinds.TRAINING_JOB, defaults.default(kinds.TRAINING_JOB, job))) == []


@pytest.mark.parametrize(("container", "warned"), [(0, True), (1, False)])
def test_only_where_our_variable_would_be_is_the_users_own_warned_about(make_job, changed, container, warned):
    at = "spec.tfReplicaSpecs.Worker.template.spec.containers"
    job = changed(make_job(kinds.TF_JOB, Worker=2), f"{at}", [{"name": n, "image": "i"} for n in ("tensorflow", "log")])
    job = changed(job, f"{at}.{container}.env", [{"name": "TF_CONFIG", "value": "{}"}])
    found = validation.warn(Job(kinds.TF_JOB, defaults.default(kinds.TF_JOB, job)))
    assert any("sets TF_CONFIG itself" in text for text in found) == warned
