"""Gangs on the real API server, with Volcano's own PodGroup CRD and a test that plays the scheduler."""

import fcntl
import json
import subprocess
from pathlib import Path

import pytest

from signalbox.local.paths import cache_dir

pytestmark = [pytest.mark.cluster, pytest.mark.site]

PODGROUPS = Path(__file__).parents[1] / "podgroups"
SCHEDULER = "a-test-that-plays-the-scheduler"


def volcano_crd():
    """Volcano's CRD, generated from its Go types; once, then cached."""
    versions = (PODGROUPS / "go.mod").read_text().split()
    cached = cache_dir() / f"volcano-apis-{versions[versions.index('volcano.sh/apis') + 1]}"
    cached.mkdir(parents=True, exist_ok=True)
    made = cached / "scheduling.volcano.sh_podgroups.yaml"
    with (cached / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            types = "paths=volcano.sh/apis/pkg/apis/scheduling/v1beta1"
            command = ["go", "tool", "controller-gen", "crd", types, f"output:crd:dir={cached}"]
            subprocess.run(command, cwd=PODGROUPS, check=True)
    return made


CRDS = {
    "volcano": ("podgroups.scheduling.volcano.sh", volcano_crd),
    "scheduler-plugins": ("podgroups.scheduling.x-k8s.io", lambda: PODGROUPS / "scheduler-plugins.yaml"),
}


@pytest.fixture(params=CRDS)
def gang(request, signalbox, kubectl):
    """The controller with a gang scheduler: its PodGroups' resource, and how its CRD is installed."""
    resource, crd = CRDS[request.param]

    def install():
        kubectl("apply", "--server-side", "-f", str(crd()))
        kubectl("wait", f"crd/{resource}", "--for=condition=Established", "--timeout=30s")

    signalbox.control_with(f"--gang-scheduler={request.param}", f"--gang-scheduler-name={SCHEDULER}")
    yield resource, install
    kubectl("delete", f"crd/{resource}", "--ignore-not-found")


@pytest.fixture
def schedule(signalbox, kubectl, namespace):
    """Binds the pods of a gang once minMember of them are there; whether it has."""

    def play(resource):
        waiting = [pod for pod in signalbox.list("pods", namespace) if pod["spec"]["schedulerName"] == SCHEDULER]
        group = signalbox.get(resource, "job", namespace)
        assert {group_of(pod) for pod in waiting} <= {"job"}
        if len(waiting) < group["spec"]["minMember"]:
            return False
        for pod in waiting:
            if not pod["spec"].get("nodeName"):
                bind(kubectl, namespace, pod["metadata"]["name"])
        return True

    return play


def group_of(pod):
    metadata = pod["metadata"]
    annotation = metadata.get("annotations", {}).get("scheduling.k8s.io/group-name")
    return annotation or metadata["labels"]["scheduling.x-k8s.io/pod-group"]


def bind(kubectl, namespace, name):
    target = {"apiVersion": "v1", "kind": "Node", "name": "kwok-0"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
    kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(binding))


def blocked(signalbox, namespace):
    rows = signalbox.get("tj", "job", namespace).get("status", {}).get("conditions", [])
    found = next((row for row in rows if row["type"] == "Blocked"), {})
    return found.get("status"), found.get("reason")


def test_a_gang_from_a_missing_crd_to_its_end(signalbox, kubectl, namespace, until, job_manifest, gang, schedule):
    """kubeflow/trainer#1630, kubeflow/pytorch-operator#186"""
    resource, install = gang
    policy = {"schedulingPolicy": {"minAvailable": 3, "queue": "research", "scheduleTimeoutSeconds": 60}}
    manifest = job_manifest("job", replicas={"Master": 1, "Worker": 2}, run_policy=policy, never_ends="true")
    kubectl("apply", "-n", namespace, "-f", "-", stdin=manifest)
    until(lambda: blocked(signalbox, namespace) == ("True", "PodGroupNotInstalled"))
    assert (signalbox.pods(namespace), signalbox.list("services", namespace)) == ({}, [])
    install()
    until(lambda: len(signalbox.pods(namespace)) == 3, 90)
    until(lambda: blocked(signalbox, namespace)[0] == "False")
    assert signalbox.state("tj", "job", namespace) == "Pending"
    group = signalbox.get(resource, "job", namespace)
    assert (group["spec"]["minMember"], group["spec"].get("queue", "research")) == (3, "research")
    assert schedule(resource)
    until(lambda: signalbox.state("tj", "job", namespace) == "Running")
    version = signalbox.get(resource, "job", namespace)["metadata"]["resourceVersion"]
    assert version == group["metadata"]["resourceVersion"]  # what the API server filled in made no write

    kubectl("scale", "tj/job", "-n", namespace, "--replicas=4")
    until(lambda: len(signalbox.pods(namespace)) == 5)
    kubectl("patch", "tj", "job", "-n", namespace, "--type=merge", "-p", json.dumps(minimum(5)))
    until(lambda: signalbox.get(resource, "job", namespace)["spec"]["minMember"] == 5)
    assert until(lambda: schedule(resource))

    suspend(kubectl, namespace, suspended=True)
    until(lambda: signalbox.state("tj", "job", namespace) == "Suspended")
    assert (signalbox.pods(namespace), signalbox.list(resource, namespace)) == ({}, [])
    suspend(kubectl, namespace, suspended=False)
    until(lambda: len(signalbox.pods(namespace)) == 5)
    assert until(lambda: schedule(resource))
    kubectl("annotate", "pods", "--all", "-n", namespace, "fate.signalbox.dev/never-ends-")
    until(lambda: signalbox.state("tj", "job", namespace) == "Succeeded")
    until(lambda: not signalbox.list(resource, namespace))


def minimum(count):
    return {"spec": {"runPolicy": {"schedulingPolicy": {"minAvailable": count}}}}


def suspend(kubectl, namespace, *, suspended):
    change = json.dumps({"spec": {"runPolicy": {"suspend": suspended}}})
    kubectl("patch", "tj", "job", "-n", namespace, "--type=merge", "-p", change)


@pytest.mark.parametrize("gang", ["volcano"], indirect=True)
def test_no_part_of_a_gang_runs_alone(signalbox, kubectl, namespace, until, job_manifest, gang, schedule):
    """PaddleFlow/paddle-operator#43: a quota stops the second pod, so the first is not scheduled either."""
    resource, install = gang
    install()
    kubectl("create", "quota", "few", "--hard=pods=1", "-n", namespace)
    until(lambda: signalbox.get("quota", "few", namespace).get("status", {}).get("hard"))
    manifest = job_manifest("job", replicas={"Worker": 2}, run_seconds="1")
    kubectl("apply", "-n", namespace, "-f", "-", stdin=manifest)
    until(lambda: blocked(signalbox, namespace) == ("True", "QuotaExceeded"), 90)
    assert not schedule(resource)
    assert signalbox.state("tj", "job", namespace) == "Pending"
    kubectl("delete", "quota", "few", "-n", namespace)
    until(lambda: schedule(resource), 90)
    until(lambda: signalbox.state("tj", "job", namespace) == "Succeeded")


@pytest.mark.parametrize("gang", ["volcano"], indirect=True)
def test_a_strangers_pod_group_is_left_alone(signalbox, kubectl, namespace, until, job_manifest, gang):
    """kubernetes-sigs/jobset#18"""
    resource, install = gang
    install()
    stranger = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "job", "namespace": namespace},
        "spec": {"minMember": 7},
    }
    kubectl("create", "-f", "-", stdin=json.dumps(stranger))
    kubectl("apply", "-n", namespace, "-f", "-", stdin=job_manifest("job", replicas={"Worker": 1}, run_seconds="1"))
    until(lambda: blocked(signalbox, namespace) == ("True", "NameConflict"), 90)
    assert signalbox.get(resource, "job", namespace)["spec"]["minMember"] == 7
    assert signalbox.pods(namespace) == {}
    kubectl("delete", resource, "job", "-n", namespace)
    until(lambda: signalbox.pods(namespace), 90)
