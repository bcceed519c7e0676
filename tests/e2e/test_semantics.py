"""What becomes of jobs in trouble, on the real API server with the fake kubelet: many at once, each with its fate."""

import json
import uuid

import pytest

from schemas import kinds

pytestmark = pytest.mark.cluster

PATIENCE = 120
PREFIX = "fate.signalbox.dev/"


def pod(container, init=False, sidecar=False, **fates):
    annotations = {PREFIX + key.replace("_", "-"): value for key, value in fates.items()}
    names = [container, "proxy"] if sidecar else [container]
    spec = {"containers": [{"name": name, "image": "registry.example/train:1"} for name in names]}
    if init:
        spec["initContainers"] = [{"name": "setup", "image": "registry.example/setup:1"}]
    return {"metadata": {"annotations": annotations}, "spec": spec}


def job(name, types, kind=kinds.TRAINING_JOB, **run_policy):
    """``types`` maps a replica type to (replicas, restartPolicy, fates)."""
    specs = {
        key: {"replicas": replicas, "restartPolicy": policy, "template": pod(kind.container, **fates)}
        for key, (replicas, policy, fates) in types.items()
    }
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name},
        "spec": {kind.spec_key: specs, "runPolicy": run_policy},
    }


RUN = {"run_seconds": "1"}
LEADER = {"Master": (1, "Never", {"run_seconds": "8"})}
RULES = [
    {"codes": [42], "action": "Fail"},
    {"codes": [75], "action": "RestartJob"},
    {"range": "40-41", "action": "Ignore"},
    {"codes": [1], "action": "Restart"},
]


def with_rules(name, code, limit):
    worker = {"Worker": (1, "Never", {**RUN, "exit_code": code})}
    return job(name, {**LEADER, **worker}, exitCodeRules=RULES, backoffLimit=limit)


def one(name, policy, limit=0, **fates):
    return job(name, {"Worker": (1, policy, {**RUN, **fates})}, backoffLimit=limit)


ENDS = {
    # kubedl-io/kubedl#36: a permanent code ends the job
    "permanent": (one("permanent", "ExitCode", 3, exit_code="1"), "PermanentExitCode", 0, 1),
    # kubeflow/common#167: two retries, three pods
    "oom": (one("oom", "ExitCode", 2, reason="OOMKilled"), "BackoffLimitExceeded", 2, 3),
    # kubedl-io/kubedl#225: retryable, but not for ever
    "refused": (one("refused", "ExitCode", 1, refused="UnexpectedAdmissionError"), "BackoffLimitExceeded", 1, 2),
    # kubeflow/trainer#1183: the main container's end is the pod's, whatever its sidecar does
    "sidecar": (one("sidecar", "Never", 0, sidecar=True, main_only="true"), "JobSucceeded", 0, 1),
    "sidecar-fails": (
        one("sidecar-fails", "Never", 0, sidecar=True, main_only="true", exit_code="1"),
        "PodFailed",
        0,
        1,
    ),
    "init": (one("init", "ExitCode", 0, init=True, init_exit_code="3"), "PermanentExitCode", 0, 1),
    # kubernetes-sigs/kueue#4406: under Never a disruption ends the job
    "evicted": (one("evicted", "Never", 0, evicted="true"), "PodFailed", 0, 1),
    "in-place": (one("in-place", "OnFailure", 2, fails_in_place="2"), "JobSucceeded", 0, 1),
    "rule-fail": (with_rules("rule-fail", "42", 9), "JobFailed", 0, 1),
    "rule-restart": (with_rules("rule-restart", "1", 1), "BackoffLimitExceeded", 1, 2),
    "rule-restart-job": (with_rules("rule-restart-job", "75", 1), "BackoffLimitExceeded", 1, 2),
    "rule-ignore": (with_rules("rule-ignore", "40", 0), "JobSucceeded", 2, 3),
    # kubeflow/trainer#2001: the clock runs although no pod ever has
    "image": (
        job("image", {"Worker": (1, "OnFailure", {"waiting_reason": "ImagePullBackOff"})}, activeDeadlineSeconds=12),
        "DeadlineExceeded",
        0,
        1,
    ),
}


@pytest.fixture(scope="module")
def ends(running, kubectl):
    """All of them at once in one namespace; each is judged by its own test."""
    namespace = f"test-ends-{uuid.uuid4().hex[:10]}"  # one for each worker of the test run
    running.start()
    kubectl("create", "namespace", namespace)
    manifest = {"apiVersion": "v1", "kind": "List", "items": [row[0] for row in ENDS.values()]}
    kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(manifest))
    yield namespace
    kubectl("delete", "namespace", namespace, "--wait=false")


def test_what_a_job_waits_for_is_in_its_condition(signalbox, ends, until):
    """kubeflow/trainer#2001"""

    def message():
        rows = signalbox.get("tj", "image", ends).get("status", {}).get("conditions", [])
        return next((row["message"] for row in rows if row["type"] == "Pending" and "Image" in row["message"]), None)

    assert until(message, PATIENCE).startswith("Pod image-worker-0: ImagePullBackOff")


@pytest.mark.parametrize("name", ENDS)
def test_how_a_job_ends(signalbox, ends, until, name):
    _, reason, restarts, pods = ENDS[name]
    until(lambda: signalbox.state("tj", name, ends) in ("Succeeded", "Failed"), PATIENCE)
    status = signalbox.get("tj", name, ends)["status"]
    last = status["conditions"][-1]
    assert (last["reason"], last["status"], bool(status["completionTime"])) == (reason, "True", True)
    seen = [entry for entry in status.get("restartHistory", []) if entry["replicaType"] == "Worker"]
    if name == "rule-ignore":  # as often as the master's life allows
        assert (len(seen) >= 1, status.get("restartsCounted", 0)) == (True, 0)
        return
    assert (len(seen), status["restarts"]) == (pods - 1, restarts)
    if name == "oom":
        assert {(entry["reason"], entry["exitCode"]) for entry in seen} == {("OOMKilled", 137)}
    if name == "rule-restart-job":
        assert status["round"] == 1
    others = [row["type"] for row in status["conditions"][:-1] if row["status"] == "True"]
    assert others == ["Created"]


def apply(kubectl, namespace, *jobs):
    kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": jobs}))


def test_a_side_roles_signal_exit_does_not_fail_the_job(signalbox, kubectl, namespace, until):
    """kubeflow/common#186"""
    quiet = (2, "ExitCode", {"never_ends": "true"})
    types = {
        "Chief": (1, "ExitCode", {"run_seconds": "10"}),
        "PS": quiet,
        "Worker": quiet,
        "Evaluator": (1, "ExitCode", {"run_seconds": "3", "exit_code": "137"}),
    }
    apply(kubectl, namespace, job("job", types, kinds.TF_JOB))
    until(lambda: signalbox.state("tfjob", "job", namespace) == "Running", PATIENCE)
    before = signalbox.pods(namespace)
    until(lambda: signalbox.pods(namespace).get("job-evaluator-0") not in (None, before["job-evaluator-0"]), PATIENCE)
    after = signalbox.pods(namespace)
    assert [name for name in before if after.get(name) != before[name]] == ["job-evaluator-0"]
    kubectl("wait", "tfjob/job", "-n", namespace, "--for=condition=Succeeded", f"--timeout={PATIENCE}s")
    assert signalbox.events(namespace)["TFJobRestarting"] >= 1


def test_disruptions_use_up_nothing_and_a_lost_pod_is_replaced(signalbox, kubectl, namespace, until):
    """kubeflow/trainer#1570, kubernetes-sigs/kueue#4406, kubeflow/trainer#156"""
    apply(kubectl, namespace, job("job", {"Worker": (3, "OnFailure", {"never_ends": "true"})}, backoffLimit=0))
    until(lambda: signalbox.state("tj", "job", namespace) == "Running", PATIENCE)
    before = signalbox.pods(namespace)
    kubectl("annotate", "pod", "job-worker-0", "-n", namespace, f"{PREFIX}evicted=NodeShutdown")
    kubectl("delete", "pod", "job-worker-1", "-n", namespace, "--wait=false")
    until(lambda: {before[f"job-worker-{n}"] for n in (0, 1)}.isdisjoint(signalbox.pods(namespace).values()), PATIENCE)
    until(lambda: signalbox.state("tj", "job", namespace) == "Running", PATIENCE)
    status = signalbox.get("tj", "job", namespace)["status"]
    assert (status["restarts"], status.get("restartsCounted", 0)) == (2, 0)
    assert {entry["reason"] for entry in status["restartHistory"]} >= {"Deleted"}
    assert signalbox.pods(namespace)["job-worker-2"] == before["job-worker-2"]


@pytest.mark.site
def test_a_finished_workers_pod_is_not_run_again_and_nothing_is_after_the_end(signalbox, kubectl, namespace, until):
    """kubeflow/trainer#1997, kubeflow/trainer#3737, kubeflow/mpi-operator#86"""
    types = {"Master": (1, "Never", {"run_seconds": "8"}), "Worker": (1, "Never", RUN)}
    apply(kubectl, namespace, job("job", types, kinds.PYTORCH_JOB, cleanPodPolicy="None"))
    succeeded = "{.status.replicaStatuses.Worker.succeeded}"
    until(lambda: kubectl("get", "ptj/job", "-n", namespace, "-o", f"jsonpath={succeeded}").stdout == "1", PATIENCE)
    kubectl("delete", "pod", "job-worker-0", "-n", namespace)
    kubectl("wait", "ptj/job", "-n", namespace, "--for=condition=Succeeded", f"--timeout={PATIENCE}s")
    assert list(signalbox.pods(namespace)) == ["job-master-0"]
    ended = signalbox.get("ptj", "job", namespace)
    assert ended["status"]["replicaStatuses"]["Worker"]["succeeded"] == 1

    kubectl("delete", "pods,services", "--all", "-n", namespace)
    signalbox.kill("controller")
    signalbox.start()
    apply(kubectl, namespace, job("other", {"Worker": (1, "Never", RUN)}))
    kubectl("wait", "tj/other", "-n", namespace, "--for=condition=Succeeded", f"--timeout={PATIENCE}s")
    again = signalbox.get("ptj", "job", namespace)
    assert not [name for name in signalbox.pods(namespace) if name.startswith("job")]
    assert again["status"]["conditions"] == ended["status"]["conditions"]
    assert again["status"]["completionTime"] == ended["status"]["completionTime"]


SCALED = [kind for kind in kinds.KINDS if not kind.types or "Worker" in {row.name for row in kind.types}]


def lasting(kind):
    leader = next((row for row in kind.types if row.name in kind.leaders), None)
    fate = (1, "Never", {"never_ends": "true"})
    return job(kind.kind.lower(), {**({leader.name: fate} if leader else {}), "Worker": fate}, kind)


def test_kubectl_scale_on_every_kind_with_workers(signalbox, kubectl, namespace, until):
    apply(kubectl, namespace, *(lasting(kind) for kind in SCALED))

    def workers(kind):
        return sum(name.startswith(f"{kind.kind.lower()}-worker-") for name in signalbox.pods(namespace))

    def state(kind):
        return signalbox.state(f"{kind.plural}.{kind.group}", kind.kind.lower(), namespace)

    def scale(kind, replicas):
        """Tried again: on a busy machine the webhook may not read the job within its 500 ms, and refuses then."""
        job = f"{kind.plural}.{kind.group}/{kind.kind.lower()}"
        command = ("scale", job, "-n", namespace, f"--replicas={replicas}")
        until(lambda: kubectl(*command, check=False).returncode == 0, PATIENCE)

    for kind in SCALED:
        until(lambda kind=kind: state(kind) == "Running", PATIENCE)
        scale(kind, 3)
    for kind in SCALED:
        until(lambda kind=kind: (workers(kind), state(kind)) == (3, "Running"), PATIENCE)
        scale(kind, 1)
    for kind in SCALED:
        until(lambda kind=kind: (workers(kind), state(kind)) == (1, "Running"), PATIENCE)
        status = signalbox.get(f"{kind.plural}.{kind.group}", kind.kind.lower(), namespace)["status"]
        assert (status["restarts"], status["replicaStatuses"]["Worker"]["initial"]) == (0, 1)
        assert "Scaling" in [row["type"] for row in status["conditions"]]


CLEANED = {"All": 0, "Running": 1, "None": 3}


@pytest.mark.parametrize("end", ["succeeded", "failed", "backoff", "deadline"])
def test_clean_pod_policies(signalbox, kubectl, namespace, until, end):
    """kubeflow/trainer#3419, #1579, #1191: one pod ends the job while another runs and a third is pending."""
    leader = {
        "succeeded": {"run_seconds": "4"},
        "failed": {"run_seconds": "4", "exit_code": "1"},
        "backoff": {"run_seconds": "4", "exit_code": "137"},
        "deadline": {"never_ends": "true"},
    }[end]
    types = {
        "Master": (1, "ExitCode", leader),
        "Ps": (1, "Never", {"never_ends": "true"}),
        "Slow": (1, "Never", {"never_starts": "true"}),
    }
    more = {"deadline": {"activeDeadlineSeconds": 5}, "backoff": {"backoffLimit": 0}}.get(end, {})
    apply(kubectl, namespace, *(job(p.lower(), types, cleanPodPolicy=p, **more) for p in CLEANED))
    state = "Succeeded" if end == "succeeded" else "Failed"

    def left(policy):
        return sum(name.startswith(f"{policy.lower()}-") for name in signalbox.pods(namespace))

    for policy, pods in CLEANED.items():
        until(lambda policy=policy: signalbox.state("tj", policy.lower(), namespace) == state, PATIENCE)
        expected = 0 if end == "deadline" else pods
        until(lambda policy=policy, expected=expected: left(policy) == expected, PATIENCE)
    services = {item["metadata"]["name"] for item in signalbox.list("services", namespace)}
    assert services == {"none"}


def test_changed_deadlines_and_ttls_take_effect(signalbox, kubectl, namespace, until):
    """kubeflow/trainer#3358, kubeflow/trainer#1533"""
    endless = {"Worker": (1, "OnFailure", {"never_ends": "true"})}
    apply(
        kubectl,
        namespace,
        job("late", endless, activeDeadlineSeconds=3600),
        job("kept", {"Worker": (1, "Never", RUN)}, ttlSecondsAfterFinished=3600),
    )
    until(lambda: signalbox.state("tj", "late", namespace) == "Running", PATIENCE)
    patch(kubectl, namespace, "late", activeDeadlineSeconds=1)
    until(lambda: signalbox.state("tj", "late", namespace) == "Failed", PATIENCE)
    until(lambda: signalbox.state("tj", "kept", namespace) == "Succeeded", PATIENCE)
    patch(kubectl, namespace, "kept", ttlSecondsAfterFinished=1)
    until(lambda: kubectl("get", "tj", "kept", "-n", namespace, check=False).returncode == 1, PATIENCE)
    until(lambda: not [name for name in signalbox.pods(namespace) if name.startswith("kept")], PATIENCE)


def patch(kubectl, namespace, name, **run_policy):
    change = json.dumps({"spec": {"runPolicy": run_policy}})
    kubectl("patch", "tj", name, "-n", namespace, "--type=merge", f"-p={change}")


def test_suspend_while_running_and_resume(signalbox, kubectl, namespace, until):
    """kubernetes-sigs/kueue: no child exists while suspended, and quota is freed only when the pods are gone."""
    types = {"Worker": (2, "OnFailure", {"run_seconds": "5", "stop_seconds": "2"})}
    apply(kubectl, namespace, job("job", types, cleanPodPolicy="None"))
    until(lambda: signalbox.state("tj", "job", namespace) == "Running", PATIENCE)
    patch(kubectl, namespace, "job", suspend=True)
    until(lambda: signalbox.state("tj", "job", namespace) == "Suspended", PATIENCE)
    assert (signalbox.pods(namespace), signalbox.list("services", namespace)) == ({}, [])
    status = signalbox.get("tj", "job", namespace)["status"]
    assert ("startTime" in status, status["replicaStatuses"]["Worker"].get("active", 0)) == (False, 0)
    patch(kubectl, namespace, "job", suspend=False)
    kubectl("wait", "tj/job", "-n", namespace, "--for=condition=Succeeded", f"--timeout={PATIENCE}s")
    resumed = next(r for r in signalbox.get("tj", "job", namespace)["status"]["conditions"] if r["type"] == "Suspended")
    assert (resumed["status"], resumed["reason"]) == ("False", "JobResumed")


def test_an_elastic_job_scales_within_its_bounds_and_ends_with_its_first_worker(signalbox, kubectl, namespace, until):
    """kubeflow/trainer#1751"""
    elastic = job("job", {"Worker": (2, "OnFailure", {"never_ends": "true"})}, kinds.PYTORCH_JOB)
    elastic["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 3}
    apply(kubectl, namespace, elastic)
    until(lambda: signalbox.state("ptj", "job", namespace) == "Running", PATIENCE)
    refused = ("scale", "ptj/job", "-n", namespace, "--replicas=4")
    until(lambda: "maxReplicas" in kubectl(*refused, check=False).stderr, PATIENCE)
    until(lambda: kubectl("scale", "ptj/job", "-n", namespace, "--replicas=3", check=False).returncode == 0, PATIENCE)
    until(lambda: len(signalbox.pods(namespace)) == 3, PATIENCE)
    kubectl("annotate", "pod", "job-worker-2", "-n", namespace, f"{PREFIX}never-ends-")
    until(lambda: signalbox.state("ptj", "job", namespace) == "Succeeded", PATIENCE)


def prune(crd):
    """The status as Kubeflow's own CRDs have it: what they do not know is dropped."""
    properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    for field in ("restarts", "restartsCounted", "restartHistory", "pendingRestarts", "round", "phase"):
        del properties["status"]["properties"][field]
    return crd


@pytest.mark.site
def test_a_kind_whose_crd_prunes_our_status_is_not_served_until_it_is_replaced(signalbox, kubectl, namespace, until):
    name, path = "jaxjobs.kubeflow.org", signalbox.examples.parent / "crds" / "jaxjob.yaml"
    pruned = prune(json.loads(kubectl("get", "crd", name, "-o", "json").stdout))
    pruned["metadata"] = {"name": name}
    pruned.pop("status")
    try:
        kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(pruned))
        until(lambda: "status.restarts is dropped" in signalbox.unserved().get("JAXJob.kubeflow.org", ""), PATIENCE)
        assert "-k deploy/overlays/kubeflow" in signalbox.unserved()["JAXJob.kubeflow.org"]
        until(lambda: signalbox.metric('signalbox_kind_served{group="kubeflow.org",kind="JAXJob"}') == 0, PATIENCE)
        apply(
            kubectl,
            namespace,
            job("job", {"Worker": (1, "Never", RUN)}, kinds.JAX_JOB),
            job("other", {"Worker": (1, "Never", RUN)}),
        )
        until(lambda: signalbox.state("tj", "other", namespace) == "Succeeded", PATIENCE)
        assert signalbox.get("jaxjob", "job", namespace).get("status") is None
    finally:
        kubectl("apply", "--server-side", "--force-conflicts", "-f", str(path))
    until(lambda: signalbox.state("jaxjob", "job", namespace) == "Succeeded", PATIENCE)
    assert signalbox.unserved() == {}


DENY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: test-cost-center}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  validations: [{expression: "has(object.metadata.labels.cost)", message: label cost is required}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: test-cost-center}
spec:
  policyName: test-cost-center
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAMESPACE}}}
"""


@pytest.mark.site
def test_a_policy_that_refuses_pods_blocks_the_job_with_one_event(signalbox, kubectl, namespace, until):
    """kyverno/kyverno#16477, apache/spark-kubernetes-operator#847: also over restarts of the controller."""
    policy = DENY.replace("NAMESPACE", namespace)
    try:
        kubectl("apply", "-f", "-", stdin=policy)
        bare = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": pod("main")["spec"]}
        dry = ("apply", "--dry-run=server", "-n", namespace, "-f", "-")
        until(lambda: kubectl(*dry, stdin=json.dumps(bare), check=False).returncode, PATIENCE)
        apply(kubectl, namespace, job("job", {"Worker": (2, "OnFailure", RUN)}))
        until(lambda: signalbox.events(namespace).get("CreateRefused"), PATIENCE)
        for _ in range(3):
            signalbox.kill("controller")
            signalbox.start()
        until(lambda: signalbox.events(namespace)["CreateRefused"] >= 3, PATIENCE)
        found = signalbox.list("events", namespace)
        assert len([event for event in found if event["involvedObject"]["name"] == "job"]) == 1
        status = signalbox.get("tj", "job", namespace)["status"]
        blocked = next(row for row in status["conditions"] if row["type"] == "Blocked")
        assert (blocked["status"], "label cost is required" in blocked["message"]) == ("True", True)
        assert (status["restarts"], status["phase"]) == (0, "Pending")
    finally:
        kubectl("delete", "-f", "-", stdin=policy)
    until(lambda: signalbox.state("tj", "job", namespace) == "Succeeded", PATIENCE)


@pytest.mark.site
def test_a_pod_of_a_dead_node_is_replaced_only_if_the_administrator_allows_it(signalbox, kubectl, namespace, until):
    """kubeflow/trainer#956"""
    apply(kubectl, namespace, job("job", {"Worker": (2, "OnFailure", {"never_deletes": "true", "never_ends": "true"})}))
    until(lambda: signalbox.state("tj", "job", namespace) == "Running", PATIENCE)
    first = signalbox.pods(namespace)
    kubectl("delete", "pod", "job-worker-1", "-n", namespace, "--grace-period=1", "--wait=false")
    until(lambda: signalbox.state("tj", "job", namespace) == "Restarting", PATIENCE)
    told = "pod job-worker-1 (Worker 1) was deleted: it is replaced."
    until(lambda: told in [event["message"] for event in signalbox.list("events", namespace)], PATIENCE)
    assert signalbox.pods(namespace) == first
    signalbox.stop("controller")
    with signalbox.controller("--force-delete-after=1"):
        until(lambda: signalbox.pods(namespace).get("job-worker-1") not in (None, first["job-worker-1"]), PATIENCE)
        until(lambda: signalbox.state("tj", "job", namespace) == "Running", PATIENCE)
    assert signalbox.pods(namespace)["job-worker-0"] == first["job-worker-0"]
    assert signalbox.events(namespace)["ForceDeleted"] == 1
    kubectl("delete", "pod", "--all", "-n", namespace, "--grace-period=0", "--force", "--wait=false")
