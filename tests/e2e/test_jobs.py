"""Whole lives of jobs, on the real API server with the fake kubelet."""

import json

import pytest
from click.testing import CliRunner

from signalbox.run_history import history

pytestmark = pytest.mark.cluster


@pytest.fixture
def submit(kubectl, namespace, job_manifest):
    def apply(name, **options):
        kubectl("apply", "-n", namespace, "-f", "-", stdin=job_manifest(name, **options))

    return apply


def show(signalbox, namespace, name):
    arguments = ["show", f"{namespace}/{name}", "--history-url", signalbox.history_url, "-o", "json"]
    found = CliRunner().invoke(history, arguments)
    return json.loads(found.stdout) if found.exit_code == 0 else None


def recorded(signalbox, namespace, name):
    shown = show(signalbox, namespace, name)
    return shown["job"]["status"] if shown else None


def test_the_example_succeeds_and_is_in_the_history(signalbox, kubectl, namespace, until):
    kubectl("apply", "-n", namespace, "-f", str(signalbox.examples / "pytorch-mnist.yaml"))
    kubectl("wait", "ptj/pytorch-mnist", "-n", namespace, "--for=condition=Succeeded", "--timeout=60s")
    job = signalbox.get("ptj", "pytorch-mnist", namespace)
    assert [row["type"] for row in job["status"]["conditions"]] == ["Created", "Pending", "Running", "Succeeded"]
    assert (job["status"]["restarts"], job["status"]["replicaSummary"]) == (0, "3/3")
    until(lambda: recorded(signalbox, namespace, "pytorch-mnist") == "Succeeded")
    shown = show(signalbox, namespace, "pytorch-mnist")
    assert sorted(pod["name"] for pod in shown["pods"]) == [
        "pytorch-mnist-master-0",
        "pytorch-mnist-worker-0",
        "pytorch-mnist-worker-1",
    ]
    assert {event["reason"] for event in shown["events"]} >= {"PyTorchJobRunning", "PyTorchJobSucceeded"}
    assert signalbox.events(namespace) == {"PyTorchJobRunning": 1, "PyTorchJobSucceeded": 1}


def test_the_pods_are_wired(signalbox, kubectl, namespace, until):
    kubectl("apply", "-n", namespace, "-f", str(signalbox.examples / "pytorch-mnist.yaml"))
    until(lambda: len(signalbox.pods(namespace)) == 3)
    pod = signalbox.get("pod", "pytorch-mnist-worker-1", namespace)
    variables = {item["name"]: item["value"] for item in pod["spec"]["containers"][0]["env"]}
    assert (variables["MASTER_ADDR"], variables["RANK"], variables["WORLD_SIZE"]) == (
        "pytorch-mnist-master-0",
        "2",
        "3",
    )
    job = signalbox.get("ptj", "pytorch-mnist", namespace)
    [owner] = pod["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (job["metadata"]["uid"], True, True)
    assert len(signalbox.list("services", namespace)) == 3
    listed = kubectl("get", "ptj", "-n", namespace).stdout.splitlines()
    assert listed[0].split() == ["NAME", "STATE", "REPLICAS", "RESTARTS", "AGE"]


@pytest.mark.site
@pytest.mark.parametrize("at", ["created", "running"])
def test_a_killed_controller_changes_no_outcome(signalbox, kubectl, namespace, until, at, submit):
    submit("job", replicas={"Worker": 3}, run_seconds="6", start_seconds="2" if at == "created" else "0.1")
    until(lambda: len(signalbox.pods(namespace)) == 3)
    if at == "running":
        until(lambda: signalbox.state("trainingjob", "job", namespace) == "Running")
    before = signalbox.pods(namespace)
    signalbox.kill("controller")
    signalbox.start()
    kubectl("wait", "tj/job", "-n", namespace, "--for=condition=Succeeded", "--timeout=60s")
    assert signalbox.pods(namespace) == before
    told = signalbox.events(namespace)  # a state that came and went while nobody looked is not told
    assert {"JobRunning": 1} | told == {"JobRunning": 1, "JobSucceeded": 1}


@pytest.mark.site
def test_pods_that_end_while_the_controller_is_down(signalbox, kubectl, namespace, until, submit):
    submit("job", replicas={"Worker": 2}, run_seconds="2")
    until(lambda: len(signalbox.pods(namespace)) == 2)
    signalbox.kill("controller")
    until(lambda: all(pod["status"]["phase"] == "Succeeded" for pod in signalbox.list("pods", namespace)))
    signalbox.start()
    kubectl("wait", "tj/job", "-n", namespace, "--for=condition=Succeeded", "--timeout=60s")


@pytest.mark.site
def test_a_job_deleted_while_the_controller_is_down_is_closed_in_the_history(
    signalbox, kubectl, namespace, until, submit
):
    """kubedl-io/kubedl: StopJob"""
    submit("job", replicas={"Worker": 1}, never_ends="true")
    until(lambda: recorded(signalbox, namespace, "job") == "Running")
    signalbox.kill("controller")
    kubectl("delete", "tj", "job", "-n", namespace)
    until(lambda: not signalbox.pods(namespace))
    signalbox.start()
    until(lambda: recorded(signalbox, namespace, "job") == "Stopped")


def test_a_job_deleted_while_running_takes_its_children_along(signalbox, kubectl, namespace, until, submit):
    submit("job", replicas={"Worker": 2}, never_ends="true")
    until(lambda: signalbox.state("trainingjob", "job", namespace) == "Running")
    kubectl("delete", "tj", "job", "-n", namespace)
    until(lambda: not signalbox.pods(namespace) and not signalbox.list("services", namespace))
    until(lambda: recorded(signalbox, namespace, "job") == "Stopped")


@pytest.mark.parametrize(
    ("policy", "fates", "state", "reason"),
    [
        ("Never", {"exit_code": "1"}, "Failed", "PodFailed"),
        ("ExitCode", {"exit_code": "1"}, "Failed", "PermanentExitCode"),
        ("ExitCode", {"exit_code": "137", "reason": "OOMKilled"}, "Failed", "BackoffLimitExceeded"),
        ("ExitCode", {"refused": "UnexpectedAdmissionError"}, "Failed", "BackoffLimitExceeded"),
        ("OnFailure", {"fails_in_place": "1"}, "Succeeded", "JobSucceeded"),
        ("OnFailure", {"fails_in_place": "9"}, "Failed", "BackoffLimitExceeded"),
        ("Never", {"evicted": "true"}, "Failed", "PodFailed"),
        ("Never", {"init_exit_code": "3"}, "Failed", "PodFailed"),
        ("Never", {"main_only": "true"}, "Succeeded", "JobSucceeded"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_how_pods_can_end(signalbox, kubectl, namespace, until, policy, fates, state, reason, job_manifest):
    job = json.loads(
        job_manifest(
            "job", replicas={"Worker": 1}, policy=policy, run_policy={"backoffLimit": 1}, run_seconds="1", **fates
        )
    )
    pod = job["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]
    if "init_exit_code" in fates:
        pod["initContainers"] = [{"name": "setup", "image": "registry.example/setup:1"}]
    if "main_only" in fates:
        pod["containers"].append({"name": "proxy", "image": "registry.example/proxy:1"})
    kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(job))
    until(lambda: signalbox.state("trainingjob", "job", namespace) == state, 60)
    last = signalbox.get("tj", "job", namespace)["status"]["conditions"][-1]
    assert (last["type"], last["status"], last["reason"]) == (state, "True", reason)


def test_a_replaced_pod_and_the_others(signalbox, kubectl, namespace, until, submit):
    submit("job", replicas={"Worker": 2}, policy="OnFailure", run_seconds="20")
    until(lambda: signalbox.state("trainingjob", "job", namespace) == "Running")
    before = signalbox.pods(namespace)
    kubectl("delete", "pod", "job-worker-1", "-n", namespace, "--wait=false")  # replaced at once, under its name
    until(lambda: signalbox.pods(namespace).get("job-worker-1") not in (None, before["job-worker-1"]))
    until(lambda: signalbox.state("trainingjob", "job", namespace) == "Running")
    assert signalbox.pods(namespace)["job-worker-0"] == before["job-worker-0"]
    status = signalbox.get("tj", "job", namespace)["status"]
    assert (status["restarts"], status.get("restartsCounted", 0), status["restartHistory"][0]["reason"]) == (
        1,
        0,
        "Deleted",
    )


def test_an_exceeded_quota_blocks_and_passes(signalbox, kubectl, namespace, until, submit):
    """PaddleFlow/paddle-operator#43"""
    kubectl("create", "quota", "few", "--hard=pods=1", "-n", namespace)
    until(lambda: signalbox.get("quota", "few", namespace).get("status", {}).get("hard"))
    submit("job", replicas={"Worker": 2}, run_seconds="30")

    def blocked():
        rows = signalbox.get("tj", "job", namespace).get("status", {}).get("conditions", [])
        return next((row for row in rows if row["type"] == "Blocked"), None)

    assert until(blocked)["reason"] == "QuotaExceeded"
    assert "exceeded quota: few" in blocked()["message"]
    assert signalbox.state("trainingjob", "job", namespace) == "Pending"
    kubectl("delete", "quota", "few", "-n", namespace)
    until(lambda: signalbox.state("trainingjob", "job", namespace) == "Running", 60)
    assert blocked()["status"] == "False"
    assert signalbox.get("tj", "job", namespace)["status"]["restarts"] == 0


def test_a_strangers_pod_is_left_alone(signalbox, kubectl, namespace, until, submit):
    """kubernetes-sigs/jobset#18"""
    kubectl(
        "run",
        "job-worker-0",
        "--image=registry.example/x:1",
        "-n",
        namespace,
        "--annotations=fate.signalbox.dev/never-ends=true",
    )
    stranger = signalbox.pods(namespace)["job-worker-0"]
    submit("job", replicas={"Worker": 1}, run_seconds="1")
    until(lambda: signalbox.events(namespace).get("NameConflict"))
    until(lambda: signalbox.state("tj", "job", namespace) == "Pending")
    assert signalbox.pods(namespace)["job-worker-0"] == stranger
    kubectl("delete", "pod", "job-worker-0", "-n", namespace, "--wait=false")
    until(lambda: signalbox.state("trainingjob", "job", namespace) == "Succeeded", 60)


def test_deadline_suspend_and_ttl(signalbox, kubectl, namespace, until, submit):
    submit("late", replicas={"Worker": 1}, run_policy={"activeDeadlineSeconds": 3}, never_ends="true")
    submit("held", replicas={"Worker": 2}, run_policy={"suspend": True}, run_seconds="1")
    submit("brief", replicas={"Worker": 1}, run_policy={"ttlSecondsAfterFinished": 0}, run_seconds="1")
    until(lambda: signalbox.state("trainingjob", "held", namespace) == "Suspended")
    assert not any(name.startswith("held") for name in signalbox.pods(namespace))
    kubectl("patch", "tj", "held", "-n", namespace, "--type=merge", '-p={"spec":{"runPolicy":{"suspend":false}}}')
    until(lambda: signalbox.state("trainingjob", "held", namespace) == "Succeeded")
    until(lambda: signalbox.state("trainingjob", "late", namespace) == "Failed")
    until(lambda: "late-worker-0" not in signalbox.pods(namespace))
    until(lambda: kubectl("get", "tj", "brief", "-n", namespace, check=False).returncode == 1)
    until(lambda: recorded(signalbox, namespace, "brief") == "Succeeded")


def test_scaling(signalbox, kubectl, namespace, until, submit):
    submit("job", replicas={"Worker": 1}, never_ends="true")
    until(lambda: signalbox.state("trainingjob", "job", namespace) == "Running")
    # on a busy machine the webhook may not read the job within its 500 ms, and refuses then
    until(lambda: kubectl("scale", "tj/job", "-n", namespace, "--replicas=3", check=False).returncode == 0, 60)
    until(lambda: len(signalbox.pods(namespace)) == 3)
    until(lambda: signalbox.state("trainingjob", "job", namespace) == "Running")
    until(lambda: kubectl("scale", "tj/job", "-n", namespace, "--replicas=1", check=False).returncode == 0, 60)
    until(lambda: list(signalbox.pods(namespace)) == ["job-worker-0"])
    refused = ("scale", "tj/job", "-n", namespace, "--replicas=0")
    until(lambda: "must have at least 1 replica in all (got 0)" in kubectl(*refused, check=False).stderr, 60)


def test_a_namespace_full_of_jobs_goes_in_seconds(signalbox, kubectl, namespace, until, job_manifest):
    """zalando-incubator/kopf#75"""
    jobs = [json.loads(job_manifest(f"job-{n}", replicas={"Worker": 1}, never_ends="true")) for n in range(10)]
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": jobs})
    kubectl("apply", "-n", namespace, "-f", "-", stdin=manifest)
    until(lambda: len(signalbox.pods(namespace)) == 10)
    kubectl("delete", "namespace", namespace, "--timeout=60s")


def test_a_very_large_job_runs_and_can_be_deleted(signalbox, kubectl, namespace, until, job_manifest):
    """nolar/kopf#1087: no annotation holds a copy of the spec."""
    job = json.loads(job_manifest("large", replicas={"Worker": 1}, never_ends="true"))
    [container] = job["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    container["env"] = [{"name": f"V{n}", "value": "x" * 1000} for n in range(250)]
    kubectl("apply", "-n", namespace, "--server-side", "-f", "-", stdin=json.dumps(job))
    until(lambda: signalbox.state("tj", "large", namespace) == "Running", 60)
    stored = signalbox.get("tj", "large", namespace)
    assert len(json.dumps(stored["metadata"])) < 2000
    kubectl("delete", "tj", "large", "-n", namespace, "--timeout=60s")
    until(lambda: not signalbox.pods(namespace), 60)


def test_jobs_deleted_as_soon_as_they_are_created_leave_nothing(signalbox, kubectl, namespace, until, submit):
    """nolar/kopf#1088"""
    for n in range(4):
        submit(f"job-{n}", replicas={"Worker": 2}, never_ends="true")
        kubectl("delete", "tj", f"job-{n}", "-n", namespace, "--wait=false")
    submit("last", replicas={"Worker": 1}, run_seconds="1")
    until(lambda: signalbox.state("tj", "last", namespace) == "Succeeded", 60)
    until(lambda: list(signalbox.pods(namespace)) == ["last-worker-0"], 60)


@pytest.mark.site
def test_an_idle_job_is_not_written(signalbox, kubectl, namespace, until, submit):
    """strimzi/strimzi-kafka-operator#13079: also not by a controller that starts anew."""
    submit("idle", replicas={"Worker": 1}, never_ends="true")
    until(lambda: signalbox.state("tj", "idle", namespace) == "Running", 60)
    before = signalbox.get("tj", "idle", namespace)["metadata"]["resourceVersion"]
    signalbox.kill("controller")
    signalbox.start()
    submit("other", replicas={"Worker": 1}, run_seconds="1")
    until(lambda: signalbox.state("tj", "other", namespace) == "Succeeded", 60)
    assert signalbox.get("tj", "idle", namespace)["metadata"]["resourceVersion"] == before
