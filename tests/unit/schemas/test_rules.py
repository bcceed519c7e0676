"""Every rule: an input that breaks it, the path it names, and words of the message."""

import pytest

from schemas import kinds
from schemas.rules import RULES, UPDATE_RULES, WARNINGS

PTJ = "spec.pytorchReplicaSpecs"
WORKER = f"{PTJ}.Worker"
POD = "template.spec"
CONTAINER = f"{WORKER}.{POD}.containers[0]"

# change (dotted path, value), path of the fault, part of the message; the job is a PyTorchJob, Master 1, Worker 2
BROKEN = [
    ("metadata.name", "7b-finetune", "metadata.name", "DNS-1035"),
    ("metadata.name", "llm-v0.1", "metadata.name", "DNS-1035"),
    ("metadata.name", "Job", "metadata.name", "DNS-1035"),
    ("metadata.name", "job\n", "metadata.name", "DNS-1035"),
    ("metadata.name", "j" * 64, "metadata.name", "at most 63"),
    ("metadata.name", "j" * 55, "metadata.name", "at most 54 characters"),
    ("metadata.name", "", "metadata.name", "must be set"),
    ("spec", None, PTJ, "at least one replica type"),
    ("spec.pytorchReplicaSpecs", {}, PTJ, "one of Master, Worker"),
    ("spec.pytorchReplicaSpecs", None, PTJ, "at least one replica type"),
    (f"{PTJ}.Worker", None, WORKER, "must be an object (got null)"),
    (f"{PTJ}.Worker", {}, f"{WORKER}.{POD}.containers", "at least one container"),
    (f"{PTJ}.Worker", {"replicas": 1, "spec": {}}, f"{WORKER}.{POD}.containers", "at least one container"),
    (f"{WORKER}.{POD}.containers", [], f"{WORKER}.{POD}.containers", "at least one container"),
    (f"{WORKER}.{POD}.containers", [None], CONTAINER, "must be an object (got null)"),
    (
        f"{PTJ}.Foo",
        {"template": {"spec": {"containers": [{"name": "x", "image": "i"}]}}},
        f"{PTJ}.Foo",
        "Master, Worker",
    ),
    (f"{PTJ}.Master.replicas", 0, f"{PTJ}.Master.replicas", "must be 1"),
    (f"{PTJ}.Master.replicas", 2, f"{PTJ}.Master.replicas", "must be 1"),
    (f"{WORKER}.replicas", -3, f"{WORKER}.replicas", "≥ 0 (got -3)"),
    (f"{WORKER}.replicas", "2", f"{WORKER}.replicas", 'must be an integer (got "2")'),
    (f"{WORKER}.replicas", True, f"{WORKER}.replicas", "must be an integer (got true)"),
    (f"{WORKER}.replicas", 2**31, f"{WORKER}.replicas", "≤ 2147483647"),
    (f"{WORKER}.restartPolicy", "onfailure", f"{WORKER}.restartPolicy", "Always, OnFailure, Never, ExitCode"),
    (f"{WORKER}.{POD}.containers.0.image", "", f"{CONTAINER}.image", "must be set"),
    (f"{WORKER}.{POD}.containers.0.args", ["--epochs", 10], f"{CONTAINER}.args[1]", "must be a string (got 10)"),
    (
        f"{WORKER}.{POD}.containers.0.env",
        [{"name": "SEED", "value": 42}],
        f"{CONTAINER}.env[0].value",
        "a string (got 42)",
    ),
    (
        f"{WORKER}.{POD}.containers.0.volumeMounts",
        [{"name": "data", "mountPath": "/d"}],
        f"{CONTAINER}.volumeMounts[0].name",
        "it has none",
    ),
    (
        f"{WORKER}.{POD}.containers.0.volumeMounts",
        [{"mountPath": "/d"}],
        f"{CONTAINER}.volumeMounts[0].name",
        "must be set",
    ),
    (
        f"{WORKER}.{POD}.containers.0.resources",
        {"limits": {"memory": "1Gib"}},
        f"{CONTAINER}.resources.limits.memory",
        "quantity",
    ),
    (
        f"{WORKER}.{POD}.containers.0.ports",
        [{"containerPort": "80"}],
        f"{CONTAINER}.ports[0].containerPort",
        "an integer",
    ),
    (f"{WORKER}.template.metadata.labels", "tf:yes", f"{WORKER}.template.metadata.labels", "must be an object"),
    ("spec.runPolicy.backoffLimit", -1, "spec.runPolicy.backoffLimit", "≥ 0 (got -1)"),
    ("spec.runPolicy.backoffLimit", 1.5, "spec.runPolicy.backoffLimit", "must be an integer (got 1.5)"),
    ("spec.runPolicy.ttlSecondsAfterFinished", -5, "spec.runPolicy.ttlSecondsAfterFinished", "≥ 0"),
    ("spec.runPolicy.ttlSecondsAfterFinished", 99999999999, "spec.runPolicy.ttlSecondsAfterFinished", "≤ 2147483647"),
    ("spec.runPolicy.activeDeadlineSeconds", 0, "spec.runPolicy.activeDeadlineSeconds", "≥ 1"),
    ("spec.runPolicy.activeDeadlineSeconds", -1, "spec.runPolicy.activeDeadlineSeconds", "≥ 1"),
    ("spec.runPolicy.cleanPodPolicy", "running", "spec.runPolicy.cleanPodPolicy", "All, Running, None"),
    ("spec.runPolicy.cleanPodPolicy", "Completed", "spec.runPolicy.cleanPodPolicy", "All, Running, None"),
    ("spec.runPolicy.cleanPodPolicy", 3, "spec.runPolicy.cleanPodPolicy", "must be a string (got 3)"),
    ("spec.runPolicy.suspend", "true", "spec.runPolicy.suspend", "true or false"),
    ("spec.runPolicy", "x", "spec.runPolicy", "must be an object"),
    ("spec.runPolicy.schedulingPolicy.minAvailable", 0, "spec.runPolicy.schedulingPolicy.minAvailable", "≥ 1"),
    ("spec.runPolicy.schedulingPolicy.minAvailable", 4, "spec.runPolicy.schedulingPolicy.minAvailable", "at most 3"),
    ("spec.runPolicy.schedulingPolicy.queue", "My_Queue", "spec.runPolicy.schedulingPolicy.queue", "DNS"),
    (
        "spec.runPolicy.schedulingPolicy.minResources",
        {"cpu": "x"},
        "spec.runPolicy.schedulingPolicy.minResources.cpu",
        "quantity",
    ),
    ("spec.runPolicy.managedBy", "multikueue", "spec.runPolicy.managedBy", "domain-prefixed"),
    ("spec.runPolicy.managedBy", "example.com/", "spec.runPolicy.managedBy", "domain-prefixed"),
    ("spec.runPolicy.exitCodeRules", [{"action": "Fail"}], "spec.runPolicy.exitCodeRules[0]", "codes or a range"),
    (
        "spec.runPolicy.exitCodeRules",
        [{"action": "Die", "codes": [3]}],
        "spec.runPolicy.exitCodeRules[0].action",
        "Fail, Restart, RestartJob, Ignore",
    ),
    (
        "spec.runPolicy.exitCodeRules",
        [{"action": "Fail", "range": "9-3"}],
        "spec.runPolicy.exitCodeRules[0].range",
        "upward",
    ),
    (
        "spec.runPolicy.exitCodeRules",
        [{"action": "Fail", "range": "3"}],
        "spec.runPolicy.exitCodeRules[0].range",
        "128-143",
    ),
    (
        "spec.runPolicy.exitCodeRules",
        [{"action": "Fail", "codes": [0]}],
        "spec.runPolicy.exitCodeRules[0].codes[0]",
        "≥ 1",
    ),
    ("spec.runPolicy.exitCodeRules", [{"codes": [3]}], "spec.runPolicy.exitCodeRules[0].action", "must be set"),
    (
        "spec.runPolicy.exitCodeRules",
        [{"action": "Fail", "codes": [3], "replicaTypes": ["PS"]}],
        "spec.runPolicy.exitCodeRules[0].replicaTypes[0]",
        "Master, Worker",
    ),
    (
        "spec.elasticPolicy",
        {"minReplicas": 4, "maxReplicas": 2},
        "spec.elasticPolicy.minReplicas",
        "at most maxReplicas, 2",
    ),
    ("spec.elasticPolicy", {"minReplicas": 3, "maxReplicas": 4}, f"{WORKER}.replicas", "within"),
    ("spec.nprocPerNode", "many", "spec.nprocPerNode", "auto, cpu, gpu"),
]


@pytest.mark.parametrize(("at", "value", "path", "words"), BROKEN, ids=[f"{row[0]}={row[1]!r:.30}" for row in BROKEN])
def test_a_fault_is_found_once_at_its_path(make_job, changed, faults_of, at, value, path, words):
    found = faults_of(changed(make_job(Master=1, Worker=2), at, value))
    assert list(found) == [path]
    assert words in found[path]


GOOD = [
    ("metadata.name", "j" * 54),
    ("metadata.labels", {"a": "b"}),
    (f"{WORKER}.replicas", 0),
    (f"{WORKER}.replicas", None),
    (f"{WORKER}.restartPolicy", ""),
    (f"{WORKER}.restartPolicy", "ExitCode"),
    (f"{WORKER}.template.metadata", {"creationTimestamp": None}),
    (f"{WORKER}.{POD}.containers.0.name", "any-name-of-a-lone-container"),
    (f"{WORKER}.{POD}.containers.0.env", [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]),
    (f"{WORKER}.{POD}.containers.0.env", None),
    (f"{WORKER}.{POD}.containers.0.resources", {"limits": {"nvidia.com/gpu": 1, "cpu": "500m", "memory": "1.5Gi"}}),
    (f"{WORKER}.{POD}.volumes", [{"name": "unused", "emptyDir": {}}]),
    (f"{WORKER}.{POD}.tolerations", [{"operator": "Exists"}]),
    ("spec.runPolicy", None),
    ("spec.runPolicy.backoffLimit", 0),
    ("spec.runPolicy.ttlSecondsAfterFinished", 0),
    ("spec.runPolicy.cleanPodPolicy", "None"),
    ("spec.runPolicy.cleanPodPolicy", ""),
    ("spec.runPolicy.managedBy", ""),
    ("spec.runPolicy.managedBy", "kueue.x-k8s.io/multikueue"),
    ("spec.runPolicy.schedulingPolicy", {"minAvailable": 3, "queue": "team-a", "minResources": {"cpu": 4}}),
    ("spec.runPolicy.exitCodeRules", [{"action": "RestartJob", "range": "128-255", "replicaTypes": ["Worker"]}]),
    ("spec.elasticPolicy", {"maxReplicas": 5}),
    ("spec.nprocPerNode", "8"),
]


@pytest.mark.parametrize(("at", "value"), GOOD, ids=[f"{row[0]}={row[1]!r:.40}" for row in GOOD])
def test_what_is_good_is_not_refused(make_job, changed, faults_of, at, value):
    assert faults_of(changed(make_job(Master=1, Worker=2), at, value)) == {}


@pytest.mark.parametrize(("replicas", "path"), [(10_000, None), (10_001, f"{WORKER}.replicas"), (2**31 - 1, WORKER)])
def test_replicas_are_bounded(make_job, faults_of, replicas, path):
    """kubernetes/kubernetes#27997: and nothing loops over what is beyond."""
    found = faults_of(make_job(Worker=replicas))
    assert [where.startswith(path) for where in found] == [True] * len(found) if path else found == {}
    assert bool(found) is bool(path)


@pytest.mark.parametrize(
    ("types", "path"),
    [
        ({"Master": 1}, None),
        ({"Worker": 2}, None),
        ({"Master": 1, "Worker": 0}, None),
        ({"Master": 0, "Worker": 2}, f"{PTJ}.Master.replicas"),
        ({"Worker": 0}, PTJ),
        ({"worker": 1}, None),
        ({"worker": 1, "WORKER": 1}, f"{PTJ}.WORKER"),
    ],
)
def test_which_types_make_a_pytorch_job(make_job, faults_of, types, path):
    assert list(faults_of(make_job(**types))) == ([path] if path else [])


@pytest.mark.parametrize(
    ("types", "success", "path"),
    [
        ({"Worker": 2}, None, None),
        ({"trainer": 2, "eval": 1}, None, None),
        ({"Master": 1, "Worker": 2}, None, None),
        ({"master": 2}, None, "spec.replicaSpecs.master.replicas"),
        ({"Master": 1, "Chief": 1}, None, "spec.replicaSpecs"),
        ({"Master": 1, "Chief": 1}, {"policy": "Leader", "type": "Chief"}, None),
        ({"a": 1, "A": 1}, None, "spec.replicaSpecs.A"),
        ({"a_b": 1}, None, "spec.replicaSpecs.a_b"),
        ({"Worker": 2}, {"policy": "Leader", "type": "Worker"}, "spec.replicaSpecs.Worker.replicas"),
        ({"Worker": 1}, {"policy": "Leader", "type": "worker"}, "spec.successPolicy.type"),
        ({"Worker": 1}, {"policy": "Leader"}, "spec.successPolicy.type"),
        ({"Worker": 1}, {"policy": "Any"}, "spec.successPolicy.policy"),
        ({"Worker": 2}, {"policy": "AnyReplica", "type": "Worker"}, None),
    ],
)
def test_who_leads_a_training_job(make_job, faults_of, types, success, path):
    job = make_job(kinds.TRAINING_JOB, **types)
    if success:
        job["spec"]["successPolicy"] = success
    assert list(faults_of(job, kinds.TRAINING_JOB)) == ([path] if path else [])


def test_a_misspelled_main_container_is_refused_beside_a_sidecar(make_job, changed, faults_of):
    """kubeflow/trainer#563"""
    containers = [{"name": "pytroch", "image": "i"}, {"name": "log-shipper", "image": "i"}]
    found = faults_of(changed(make_job(Worker=1), f"{WORKER}.{POD}.containers", containers))
    assert list(found) == [f"{WORKER}.{POD}.containers"]
    assert "a container named pytorch" in found[f"{WORKER}.{POD}.containers"]


def test_two_containers_of_one_name_are_refused(make_job, changed, faults_of):
    containers = [{"name": "pytorch", "image": "i"}, {"name": "pytorch", "image": "j"}]
    found = faults_of(changed(make_job(Worker=1), f"{WORKER}.{POD}.containers", containers))
    assert list(found) == [f"{WORKER}.{POD}.containers[1].name"]


def test_elastic_without_workers(make_job, changed, faults_of):
    """kubeflow/trainer#2278"""
    assert list(faults_of(changed(make_job(Master=1), "spec.elasticPolicy", {}))) == [WORKER]


@pytest.mark.parametrize(
    ("prefix", "path"), [("job-", None), ("7b-", "metadata.generateName"), ("j" * 52, "metadata.generateName")]
)
def test_generated_names(make_job, faults_of, prefix, path):
    job = make_job(Worker=2)
    job["metadata"] = {"generateName": prefix}
    assert list(faults_of(job)) == ([path] if path else [])


def test_every_rule_is_named_described_and_sourced():
    rules = [*RULES, *UPDATE_RULES, *WARNINGS]
    assert len({rule.name for rule in rules}) == len(rules)
    assert all(rule.doc.endswith(".") and rule.source for rule in rules)
