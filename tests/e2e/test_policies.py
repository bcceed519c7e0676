"""What admins and users see of policies with kubectl, on the real API server, with the six shipped examples."""

import json
import re

import pytest
import yaml

pytestmark = [pytest.mark.cluster, pytest.mark.site]

NAMES = ("allowed-registries", "audit-only", "gpu-cap", "queue-required", "team-defaults", "ttl-required")
LONG = {"ttlSecondsAfterFinished": 9999999}
GOOD = {"ttlSecondsAfterFinished": 60, "suspend": True}


def manifest(name, run_policy=None, image="registry.example/train:1", gpus=None, replicas=1, labels=None, **pod):
    resources = {"resources": {"limits": {"nvidia.com/gpu": gpus}}} if gpus else {}
    template = {"spec": {"containers": [{"name": "main", "image": image, **resources}], **pod}}
    return {
        "apiVersion": "signalbox.dev/v1",
        "kind": "TrainingJob",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "runPolicy": GOOD if run_policy is None else run_policy,
            "replicaSpecs": {"Worker": {"replicas": replicas, "template": template}},
        },
    }


@pytest.fixture
def policies(signalbox, kubectl, namespace, until):
    """The six examples, in force for this namespace, and gone afterwards."""
    directory = signalbox.examples / "policies"
    kubectl("label", "namespace", namespace, "signalbox.example/team=vision", "signalbox.example/queue=vision")
    kubectl("apply", "-f", str(directory))
    until(lambda: "registry.example" in submit(kubectl, namespace, manifest("probe", image="x"), dry=True).stderr)
    until(lambda: in_force(kubectl, namespace))
    yield directory
    kubectl("delete", "-f", str(directory))


def in_force(kubectl, namespace):
    """Whether every worker of the webhook knows the policies: several refusals in a row, by the last that was made."""
    answers = [submit(kubectl, namespace, manifest("probe", run_policy=LONG), dry=True).stderr for _ in range(6)]
    return all("ttl-required" in answer for answer in answers)


def submit(kubectl, namespace, job, *, dry=False, check=False):
    flags = ("--dry-run=server",) if dry else ()
    return kubectl("apply", "-n", namespace, *flags, "-f", "-", stdin=json.dumps(job), check=check)


def status(kubectl, name):
    return json.loads(kubectl("get", "tpol", name, "-o", "json").stdout).get("status", {})


REFUSALS = [
    (
        manifest("a", image="docker.io/x"),
        "image: must be registry.example or mirror.example/*/train-*, says limit images of policy allowed-registries",
    ),
    (
        manifest("b", hostNetwork=True),
        "hostNetwork: must not be true, says limit forbid of policy allowed-registries (got true)",
    ),
    (
        manifest("d", run_policy=LONG),
        "must be at most 2592000, says limit ttlSecondsAfterFinished of policy ttl-required (got 9999999)",
    ),
    (
        manifest("e", gpus=8, replicas=9),
        "must ask for at most 64 nvidia.com/gpu in all pods together, "
        'says limit jobResources of policy gpu-cap (got "72")',
    ),
    (
        manifest("f", gpus=9),
        'must ask for at most 8 nvidia.com/gpu in one pod, says limit podResources of policy gpu-cap (got "9")',
    ),
]


def test_the_examples_refuse_what_they_say(signalbox, kubectl, namespace, policies):
    for job, words in REFUSALS:
        refused = submit(kubectl, namespace, job)
        assert refused.returncode == 1
        assert words in " ".join(refused.stderr.split()), refused.stderr


def test_a_job_gets_its_teams_defaults(signalbox, kubectl, namespace, policies, until):
    submit(kubectl, namespace, manifest("filled", run_policy={"suspend": True}), check=True)
    job = signalbox.get("trainingjob", "filled", namespace)
    assert job["spec"]["runPolicy"] == {
        "suspend": True,
        "ttlSecondsAfterFinished": 604800,
        "backoffLimit": 3,
        "cleanPodPolicy": "Running",
    }
    worker = job["spec"]["replicaSpecs"]["Worker"]
    assert worker["restartPolicy"] == "OnFailure"
    assert worker["template"]["metadata"]["labels"] == {"cost-center": "vision"}
    submit(kubectl, namespace, manifest("filled", run_policy={"suspend": True}), check=True)
    assert signalbox.get("trainingjob", "filled", namespace)["metadata"]["generation"] == 1
    until(lambda: status(kubectl, "team-defaults").get("defaulted", 0) >= 1)


def test_the_queue_of_the_namespace_is_required(signalbox, kubectl, namespace, policies):
    job = yaml.safe_load((signalbox.examples / "pytorch-mnist.yaml").read_text())
    text = re.sub(r'"image": "[^"]*"', '"image": "registry.example/t:1"', json.dumps(job))
    job = json.loads(text)
    job["spec"].setdefault("runPolicy", {}).update(GOOD)
    refused = submit(kubectl, namespace, job)
    words = f"must be vision, the queue of {namespace}, says rule own-queue of policy queue-required"
    assert words in " ".join(refused.stderr.split()), refused.stderr
    job["spec"]["runPolicy"]["schedulingPolicy"] = {"queue": "vision"}
    submit(kubectl, namespace, job, check=True)


def test_a_rollout_from_audit_to_enforce(signalbox, kubectl, namespace, policies, until):
    def say(name):
        return submit(kubectl, namespace, manifest(name))

    silent = say("audited")
    assert (silent.returncode, silent.stderr) == (0, "")
    counted = until(lambda: status(kubectl, "audit-only").get("audited", 0) and status(kubectl, "audit-only"))
    assert counted["defaulted"] >= 1
    assert "activeDeadlineSeconds" not in signalbox.get("trainingjob", "audited", namespace)["spec"]["runPolicy"]

    kubectl("patch", "tpol", "audit-only", "--type=merge", "-p", '{"spec":{"enforcement":"Warn"}}')
    until(lambda: "policy audit-only, requiredLabels" in submit(kubectl, namespace, manifest("w"), dry=True).stderr)
    kubectl("patch", "tpol", "audit-only", "--type=merge", "-p", '{"spec":{"enforcement":"Enforce"}}')
    until(lambda: all("is invalid" in submit(kubectl, namespace, manifest("e"), dry=True).stderr for _ in range(6)))
    # what was there before may still be suspended, labelled and deleted
    kubectl("label", "trainingjob", "audited", "-n", namespace, "a=b")
    kubectl("delete", "trainingjob", "audited", "-n", namespace)


def test_bad_policies_are_refused_with_the_place(signalbox, kubectl):
    policy = {"apiVersion": "signalbox.dev/v1", "kind": "TrainingPolicy", "metadata": {"name": "bad"}}
    bad = {**policy, "spec": {"priority": 1, "rules": [{"name": "r", "expression": "object.spec."}]}}
    refused = kubectl("apply", "-f", "-", stdin=json.dumps(bad), check=False)
    assert "rules[0].expression: must be valid CEL: line 1, column 13" in " ".join(refused.stderr.split())
    bad["spec"] = {"limits": {"replicas": {"min": 3, "max": 2}}}
    refused = kubectl("apply", "-f", "-", stdin=json.dumps(bad), check=False)
    assert "spec.limits.replicas.min: must be at most max, 2 (got 3)" in refused.stderr


def test_a_namespace_runs_one_job_at_a_time(signalbox, kubectl, namespace, job_manifest, until):
    policy = {
        "apiVersion": "signalbox.dev/v1",
        "kind": "TrainingPolicy",
        "metadata": {"name": f"one-{namespace}"},
        "spec": {"match": {"namespaces": [namespace]}, "limits": {"maxRunningJobs": 1}},
    }
    kubectl("apply", "-f", "-", stdin=json.dumps(policy))
    try:
        until(lambda: status(kubectl, policy["metadata"]["name"]).get("conditions"))
        [ready] = status(kubectl, policy["metadata"]["name"])["conditions"]
        assert (ready["type"], ready["status"], ready["observedGeneration"]) == ("Ready", "True", 1)
        for name in ("first", "second"):
            kubectl(
                "apply", "-n", namespace, "-f", "-", stdin=job_manifest(name, replicas={"Worker": 1}, run_time="600s")
            )
            until(lambda name=name: signalbox.state("trainingjob", name, namespace))
        until(lambda: signalbox.state("trainingjob", "first", namespace) == "Running")
        held = signalbox.get("trainingjob", "second", namespace)["status"]["conditions"][-1]
        assert (held["type"], held["reason"]) == ("Pending", "MaxRunningJobs")
        assert policy["metadata"]["name"] in held["message"]
        assert list(signalbox.pods(namespace)) == ["first-worker-0"]
        suspend = '{"spec":{"runPolicy":{"suspend":true}}}'
        kubectl("patch", "trainingjob", "first", "-n", namespace, "--type=merge", "-p", suspend)
        until(lambda: signalbox.state("trainingjob", "second", namespace) == "Running")
    finally:
        kubectl("delete", "tpol", policy["metadata"]["name"])


@pytest.fixture
def unchecked(signalbox, kubectl):
    """The API server takes policies as they come, without asking the webhook; afterwards it asks again."""
    drop = '[{"op":"test","path":"/webhooks/1/name","value":"validate-policy.signalbox.dev"},' + (
        '{"op":"remove","path":"/webhooks/1"}]'
    )
    kubectl("patch", "validatingwebhookconfiguration", "signalbox-validating", "--type=json", "-p", drop)
    yield
    kubectl("delete", "tpol", "broken", "--ignore-not-found")
    signalbox.install()


def test_an_invalid_policy_that_gets_in_says_so_and_blocks_nobody(signalbox, kubectl, namespace, unchecked, until):
    policy = {"apiVersion": "signalbox.dev/v1", "kind": "TrainingPolicy", "metadata": {"name": "broken"}}
    limits = {"replicas": {"min": 3, "max": 2}, "requiredLabels": ["team"]}
    until(
        lambda: (
            not kubectl(
                "apply", "-f", "-", stdin=json.dumps({**policy, "spec": {"limits": limits}}), check=False
            ).returncode
        )
    )
    [ready] = until(lambda: status(kubectl, "broken").get("conditions"))
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "False", "Invalid")
    assert "spec.limits.replicas.min: must be at most max, 2 (got 3)" in ready["message"]
    submit(kubectl, namespace, manifest("free"), check=True)
    assert "matched" not in status(kubectl, "broken")


def test_stored_jobs_that_break_a_policy_are_counted(signalbox, kubectl, namespace, until):
    """A policy made after the jobs: nobody submits anything, and its status still says whom it would refuse."""
    for name, labels in (("with", {"team": "vision"}), ("without", {}), ("neither", {})):
        submit(kubectl, namespace, manifest(name, labels=labels), check=True)
    policy = {"apiVersion": "signalbox.dev/v1", "kind": "TrainingPolicy", "metadata": {"name": f"late-{namespace}"}}
    policy["spec"] = {"match": {"namespaces": [namespace]}, "limits": {"requiredLabels": ["team"]}}
    signalbox.control_with("--policy-scan", "1")
    try:
        kubectl("apply", "-f", "-", stdin=json.dumps(policy))
        scan = until(lambda: status(kubectl, policy["metadata"]["name"]).get("scan"))
        assert (scan["jobs"], scan["violating"]) == (3, 2)
        kubectl("label", "trainingjob", "neither", "-n", namespace, "team=speech")
        until(lambda: status(kubectl, policy["metadata"]["name"])["scan"]["violating"] == 1)
    finally:
        kubectl("delete", "tpol", policy["metadata"]["name"])
        signalbox.start()
