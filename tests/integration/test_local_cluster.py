"""The real control plane, and what our kwok stages make of a pod's annotations (deploy/local/README.md)."""

import io
import json
import subprocess
import time
import uuid

import pytest
from rich.console import Console

from signalbox.local import binaries, cluster, processes
from signalbox.local.cluster import PROCESSES
from signalbox.local.paths import deploy_dir

pytestmark = pytest.mark.cluster

PREFIX = "fate.signalbox.dev/"
SETTLED = 4.0
"""Seconds after which a pod that was told nothing about its run time has long ended."""


def eventually(seen, expected, seconds=15.0):
    """Wait until ``seen()`` contains everything in ``expected``."""
    deadline = time.monotonic() + seconds
    while not expected.items() <= (got := seen()).items():
        assert time.monotonic() < deadline, {key: got.get(key) for key in expected}
        time.sleep(0.1)


def pod(name, policy, fate, init=(), containers=("main",)):
    annotations = {PREFIX + key: value for key, value in fate.items()}
    spec = {
        "restartPolicy": policy,
        "initContainers": [{"image": "busybox", **container} for container in init],
        "containers": [{"name": container, "image": "busybox"} for container in containers],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations}, "spec": spec}


def summary(pod):
    """The facts about a pod that the table below names."""
    status = pod["status"]
    statuses = {
        item["name"]: item for item in status.get("initContainerStatuses", []) + status.get("containerStatuses", [])
    }
    return {
        "phase": status["phase"],
        "why": status.get("reason"),
        "ready": [
            item["type"] for item in status["conditions"] if item["type"] == "Ready" and item["status"] == "True"
        ],
        "disrupted": [item["reason"] for item in status["conditions"] if item["type"] == "DisruptionTarget"],
        "codes": {name: end["exitCode"] for name, item in statuses.items() if (end := item["state"].get("terminated"))},
        "reasons": {name: end["reason"] for name, item in statuses.items() if (end := item["state"].get("terminated"))},
        "waiting": {name: wait["reason"] for name, item in statuses.items() if (wait := item["state"].get("waiting"))},
        "running": [name for name, item in statuses.items() if item["state"].get("running")],
        "restarts": {name: item["restartCount"] for name, item in statuses.items() if item["restartCount"]},
        "last": {
            name: end["exitCode"] for name, item in statuses.items() if (end := item["lastState"].get("terminated"))
        },
    }


SHORT = {"run-seconds": "0.3"}
BOTH = ("main", "side")
INIT = ({"name": "first"}, {"name": "second"})
FATES = {
    "no annotation, Never": (
        pod("plain-never", "Never", {}),
        {"phase": "Succeeded", "codes": {"main": 0}, "reasons": {"main": "Completed"}, "ready": []},
    ),
    "no annotation, OnFailure": (pod("plain-onfailure", "OnFailure", {}), {"phase": "Succeeded", "codes": {"main": 0}}),
    "two containers": (
        pod("two", "Never", SHORT, containers=BOTH),
        {"phase": "Succeeded", "codes": {"main": 0, "side": 0}},
    ),
    "exit-code": (
        pod("code", "Never", {**SHORT, "exit-code": "3"}, containers=BOTH),
        {"phase": "Failed", "codes": {"main": 3, "side": 0}, "reasons": {"main": "Error", "side": "Completed"}},
    ),
    "container": (
        pod("named", "Never", {**SHORT, "exit-code": "3", "container": "side"}, containers=BOTH),
        {"phase": "Failed", "codes": {"main": 0, "side": 3}},
    ),
    "reason": (
        pod("oom", "Never", {**SHORT, "reason": "OOMKilled"}),
        {"phase": "Failed", "codes": {"main": 137}, "reasons": {"main": "OOMKilled"}},
    ),
    "evicted": (
        pod("evicted", "Never", {**SHORT, "evicted": "true"}),
        {"phase": "Failed", "why": "Evicted", "disrupted": ["TerminationByKubelet"], "codes": {"main": 137}},
    ),
    "evicted for a reason": (
        pod("shutdown", "OnFailure", {**SHORT, "evicted": "NodeShutdown"}),
        {"phase": "Failed", "why": "NodeShutdown"},
    ),
    "refused": (
        pod("refused", "Never", {"refused": "true"}),
        {"phase": "Failed", "why": "UnexpectedAdmissionError", "codes": {}, "waiting": {}, "running": []},
    ),
    "refused for a reason": (pod("full", "OnFailure", {"refused": "OutOfcpu"}), {"phase": "Failed", "why": "OutOfcpu"}),
    "main-only": (
        pod("main-only", "Never", {**SHORT, "main-only": "true"}, containers=BOTH),
        {"phase": "Running", "codes": {"main": 0}, "running": ["side"], "ready": []},
    ),
    "fails-in-place, OnFailure": (
        pod("recovers", "OnFailure", {**SHORT, "fails-in-place": "2"}),
        {"phase": "Succeeded", "restarts": {"main": 2}, "last": {"main": 1}, "codes": {"main": 0}},
    ),
    "fails-in-place, Always": (
        pod("recovers-always", "Always", {**SHORT, "fails-in-place": "2", "exit-code": "7"}),
        {"phase": "Running", "restarts": {"main": 2}, "last": {"main": 7}, "running": ["main"]},
    ),
    "fails-in-place, Never": (
        pod("no-retry", "Never", {**SHORT, "fails-in-place": "2"}),
        {"phase": "Failed", "restarts": {}, "codes": {"main": 1}},
    ),
    "init containers": (
        pod("init", "Never", SHORT, init=(*INIT, {"name": "proxy", "restartPolicy": "Always"})),
        {"phase": "Succeeded", "codes": {"first": 0, "second": 0, "proxy": 0, "main": 0}},
    ),
    "init-exit-code": (
        pod("init-fails", "Never", {"init-exit-code": "5"}, init=INIT),
        {"phase": "Failed", "codes": {"first": 5}, "waiting": {"second": "PodInitializing", "main": "PodInitializing"}},
    ),
}
FATES_FOR_GOOD = {
    "no annotation, Always": (
        pod("plain-always", "Always", {}),
        {"phase": "Running", "restarts": {}, "ready": ["Ready"]},
    ),
    "never-ends": (pod("endless", "Never", {"never-ends": "true"}), {"phase": "Running", "running": ["main"]}),
    "never-starts": (
        pod("stuck", "Never", {"never-starts": "true"}),
        {"phase": "Pending", "waiting": {"main": "ContainerCreating"}},
    ),
    "waiting-reason": (
        pod("no-image", "Never", {"waiting-reason": "ImagePullBackOff"}),
        {"phase": "Pending", "waiting": {"main": "ImagePullBackOff"}},
    ),
    "start-seconds": (
        pod("late", "Never", {"start-seconds": "60"}),
        {"phase": "Pending", "waiting": {}, "running": []},
    ),
    "init-seconds": (
        pod("slow-init", "Never", {"init-seconds": "60"}, init=INIT),
        {"phase": "Pending", "running": ["first"]},
    ),
    "run-seconds": (pod("long", "Never", {"run-seconds": "60"}), {"phase": "Running", "running": ["main"]}),
}
FATES_AGAIN_AND_AGAIN = {
    "failed runs, OnFailure": pod("crashes", "OnFailure", {**SHORT, "exit-code": "1"}),
    "failed runs, Always": pod("crashes-always", "Always", {**SHORT, "exit-code": "1"}),
    "good runs, Always": pod("repeats", "Always", SHORT),
    "failed init container": pod(
        "init-crashes", "OnFailure", {"init-exit-code": "1", "init-seconds": "0.3"}, init=INIT
    ),
}


@pytest.fixture(scope="module")
def pods(kubectl):
    """All pods of the tables, created at once; returns a function from name to summary."""
    namespace = f"fates-{uuid.uuid4().hex[:10]}"
    kubectl("create", "namespace", namespace)
    rows = [made for made, _ in (*FATES.values(), *FATES_FOR_GOOD.values())] + list(FATES_AGAIN_AND_AGAIN.values())
    kubectl("create", f"--namespace={namespace}", "-f", "-", stdin=json.dumps(as_list(rows)))
    created = time.monotonic()

    def look(name):
        look.age = time.monotonic() - created
        return summary(json.loads(kubectl("get", "pod", name, f"--namespace={namespace}", "-o", "json").stdout))

    yield look
    kubectl("delete", "namespace", namespace, "--wait=false")


def as_list(items):
    return {"apiVersion": "v1", "kind": "List", "items": items}


def name_of(made):
    return made["metadata"]["name"]


@pytest.mark.parametrize(("made", "expected"), FATES.values(), ids=FATES)
def test_fate(pods, made, expected):
    eventually(lambda: pods(name_of(made)), expected)


@pytest.mark.parametrize(("made", "expected"), FATES_FOR_GOOD.values(), ids=FATES_FOR_GOOD)
def test_fate_for_good(pods, made, expected):
    pods(name_of(made))
    time.sleep(max(0.0, SETTLED - pods.age))
    got = pods(name_of(made))
    assert {key: got[key] for key in expected} == expected


@pytest.mark.parametrize("made", FATES_AGAIN_AND_AGAIN.values(), ids=FATES_AGAIN_AND_AGAIN)
def test_fate_again_and_again(pods, made):
    before = max(pods(name_of(made))["restarts"].values(), default=0)
    eventually(lambda: {"more": max(pods(name_of(made))["restarts"].values(), default=0) >= before + 2}, {"more": True})


def test_every_annotation_is_in_the_readme():
    documented = (deploy_dir() / "local" / "README.md").read_text()
    stages = "".join(path.read_text() for path in (deploy_dir() / "local" / "stages").glob("pod-*.yaml"))
    names = {line.split()[1] for line in stages.splitlines() if line.startswith(f"#   {PREFIX}")}
    assert names
    assert [name for name in sorted(names) if f"`{name.removeprefix(PREFIX)}`" not in documented] == []


@pytest.fixture
def running_pod(kubectl, namespace):
    """Creates a pod that never ends by itself and waits until it runs; returns a look at it (None: gone)."""

    def create(fate):
        made = pod("p", "Never", {"never-ends": "true", **fate})
        kubectl("create", f"--namespace={namespace}", "-f", "-", stdin=json.dumps(made))
        kubectl("wait", f"--namespace={namespace}", "pod/p", "--for=condition=Ready", "--timeout=15s")

        def look():
            done = kubectl("get", "pod", "p", f"--namespace={namespace}", "--ignore-not-found", "-o", "json")
            return {"gone": not done.stdout} | (summary(json.loads(done.stdout)) if done.stdout else {})

        return look

    return create


def delete(kubectl, namespace, *flags):
    kubectl("delete", "pod", "p", f"--namespace={namespace}", "--wait=false", *flags)


def test_a_deleted_pod_is_gone_at_once(kubectl, namespace, running_pod):
    look = running_pod({})
    delete(kubectl, namespace)
    eventually(look, {"gone": True}, seconds=3)


def test_a_deleted_pod_can_report_how_it_ended_before_it_goes(kubectl, namespace, running_pod):
    look = running_pod({"stopped-exit-code": "143", "stop-seconds": "1.5"})
    delete(kubectl, namespace)
    eventually(look, {"phase": "Failed", "codes": {"main": 143}}, seconds=1.5)
    eventually(look, {"gone": True})


def test_a_deleted_pod_can_stay_until_it_is_forced(kubectl, namespace, running_pod):
    look = running_pod({"never-deletes": "true"})
    delete(kubectl, namespace)
    time.sleep(1.5)
    assert look()["phase"] == "Running"
    delete(kubectl, namespace, "--force", "--grace-period=0")
    eventually(look, {"gone": True})


def annotate(kubectl, namespace, *changes):
    kubectl("annotate", "pod", "p", f"--namespace={namespace}", *(PREFIX + change for change in changes))


def test_an_annotation_added_later_counts(kubectl, namespace, running_pod):
    look = running_pod({})
    annotate(kubectl, namespace, "evicted=true")
    eventually(look, {"phase": "Failed", "why": "Evicted"})


def test_an_annotation_taken_away_counts(kubectl, namespace):
    made = pod("p", "Never", {"waiting-reason": "ImagePullBackOff"})
    kubectl("create", f"--namespace={namespace}", "-f", "-", stdin=json.dumps(made))
    waits = "--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=ImagePullBackOff"
    kubectl("wait", f"--namespace={namespace}", "pod/p", waits, "--timeout=15s")
    annotate(kubectl, namespace, "waiting-reason-")
    kubectl("wait", f"--namespace={namespace}", "pod/p", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=15s")


def test_discovery_reports_the_version_in_go_mod(kubectl):
    module = binaries.read_module(deploy_dir() / "local")
    assert json.loads(kubectl("get", "--raw", "/version").stdout)["gitVersion"] == module.kubernetes_version


def test_both_nodes_are_ready(kubectl):
    nodes = json.loads(kubectl("get", "nodes", "-o", "json").stdout)["items"]
    ready = [
        node["metadata"]["name"]
        for node in nodes
        for condition in node["status"]["conditions"]
        if condition["type"] == "Ready" and condition["status"] == "True"
    ]
    assert ready == ["kwok-0", "kwok-1"]


def test_a_pod_is_scheduled_gets_an_address_and_tells_when_it_ran(kubectl, namespace):
    flags = ("--image=busybox", "--restart=Never", f"--namespace={namespace}")
    kubectl("run", "p", *flags)
    kubectl("wait", "pod/p", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=15s", f"--namespace={namespace}")
    found = json.loads(kubectl("get", "pod", "p", f"--namespace={namespace}", "-o", "json").stdout)
    ended = found["status"]["containerStatuses"][0]["state"]["terminated"]
    assert found["spec"]["nodeName"] in ("kwok-0", "kwok-1")
    assert found["status"]["podIP"].startswith("10.")
    assert found["status"]["startTime"] <= ended["startedAt"] < ended["finishedAt"]


def test_rbac_is_enforced(kubectl):
    assert kubectl("auth", "can-i", "create", "pods", "--as=somebody", check=False).stdout.strip() == "no"


@pytest.fixture
def own_state_dir(tmp_path):
    yield tmp_path / "state"
    cluster.stop(tmp_path / "state")


def pids(state_dir):
    return {name: record.pid for name in PROCESSES if (record := processes.running(state_dir, name))}


def test_start_again_repair_and_stop(own_state_dir):
    console = Console(file=io.StringIO())
    first = cluster.start_control_plane(own_state_dir, console=console)
    started = pids(own_state_dir)
    assert set(started) == set(PROCESSES)

    assert cluster.start_control_plane(own_state_dir, console=console) == first
    assert pids(own_state_dir) == started

    processes.stop(own_state_dir, "kube-scheduler")
    cluster.start_control_plane(own_state_dir, console=console)
    repaired = pids(own_state_dir)
    assert {name for name in PROCESSES if repaired[name] != started[name]} == {"kube-scheduler"}

    with subprocess.Popen(["sleep", "60"]) as outsider:
        assert set(cluster.stop(own_state_dir)) == set(PROCESSES)
        assert outsider.poll() is None
        outsider.kill()
    assert pids(own_state_dir) == {}
    assert cluster.stop(own_state_dir) == []
