"""The shipped manifests on the real API server: accepted, restricted, in nobody's way, and gone without a trace."""

import json

import pytest
import yaml
from click.testing import CliRunner

from signalbox.local.commands import down, status
from signalbox.manifests import manifests

pytestmark = [pytest.mark.cluster, pytest.mark.site]

SYSTEM = "signalbox-system"
OURS = ("controller", "history", "webhook")
CONFIGURATIONS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


def printed(*arguments):
    result = CliRunner().invoke(manifests, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


def pods(*options):
    """One Pod for each template that is printed, as the controllers of the cluster would create it."""
    for each in yaml.load_all(printed(*options), Loader=yaml.CSafeLoader):
        template = each.get("spec", {}).get("template")
        if each["kind"] == "CronJob":
            template = each["spec"]["jobTemplate"]["spec"]["template"]
        if template:
            metadata = {"name": each["metadata"]["name"], "labels": template["metadata"]["labels"]}
            yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("-k", "trainingjob", "-k", "pytorchjob", "--gang-scheduler", "volcano"),
        ("--history-volume",),
        ("--history-page",),
    ],
    ids=["plain", "kubeflow", "volume", "page"],
)
def test_the_api_server_accepts_every_field(signalbox, kubectl, options):
    strict = ("--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts")
    done = kubectl("apply", *strict, "-f", "-", stdin=printed(*options))
    assert "deployment.apps/signalbox-controller" in done.stdout
    assert "Warning" not in done.stderr


def test_our_pods_meet_the_restricted_standard(signalbox, kubectl):
    """The namespace enforces it: what the API server creates there in a dry run, it would create."""
    wanted = [*pods("--history-page"), *pods("--history-volume")]
    create = ("create", "--dry-run=server", "-n", SYSTEM, "-f", "-")
    assert {pod["metadata"]["name"] for pod in wanted} == {f"signalbox-{name}" for name in OURS}
    for pod in wanted:
        assert "Warning" not in kubectl(*create, stdin=json.dumps(pod)).stderr
    wanted[0]["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    refused = kubectl(*create, stdin=json.dumps(wanted[0]), check=False)
    assert 'violates PodSecurity "restricted' in refused.stderr


def test_a_webhook_that_is_gone_stops_nothing_but_changes_of_jobs(signalbox, kubectl, namespace, until, job_manifest):
    """open-policy-agent/gatekeeper#2423, kubernetes-sigs/controller-runtime#249: nothing else waits for it."""
    kubectl("apply", "-n", namespace, "-f", "-", stdin=job_manifest("old", replicas={"Worker": 1}, never_ends="true"))
    until(lambda: signalbox.state("trainingjob", "old", namespace) == "Running")
    signalbox.stop("webhook")
    for pod in pods():
        kubectl("create", "-n", SYSTEM, "--dry-run=server", "-f", "-", stdin=json.dumps(pod))
    kubectl("create", "namespace", f"{namespace}-more")
    kubectl("delete", "namespace", f"{namespace}-more", "--wait=false")
    kubectl("create", "deployment", "unrelated", "--image=registry.example/web:1", "-n", namespace)
    refused = kubectl(
        "create", "-n", namespace, "-f", "-", stdin=job_manifest("new", replicas={"Worker": 1}), check=False
    )
    assert 'failed calling webhook "validate.signalbox.dev"' in refused.stderr
    patch = '{"status":{"phase":"Running","replicaSummary":"seen"}}'
    kubectl("patch", "tj", "old", "-n", namespace, "--subresource=status", "--type=merge", f"-p={patch}")
    kubectl("delete", "pod", "old-worker-0", "-n", namespace, "--wait=false")
    until(lambda: signalbox.get("tj", "old", namespace)["status"].get("restarts"))
    kubectl("delete", "tj", "old", "-n", namespace, "--timeout=30s")


def test_owner_references_need_the_right_that_the_controller_has(signalbox, kubectl, namespace, job_manifest):
    """kubeflow/trainer#1552: without `update` on finalizers the API server refuses the pods of a job."""
    job = {**json.loads(job_manifest("job", replicas={"Worker": 1})), "metadata": {"name": "job"}}
    job["spec"]["runPolicy"] = {"suspend": True}
    kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(job))
    uid = signalbox.get("tj", "job", namespace)["metadata"]["uid"]
    owner = {"apiVersion": "signalbox.dev/v1", "kind": "TrainingJob", "name": "job", "uid": uid}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod", "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}]},
        "spec": {"containers": [{"name": "main", "image": "registry.example/x:1"}]},
    }
    kubectl("create", "role", "pods", "--verb=create", "--resource=pods", "-n", namespace)
    kubectl("create", "rolebinding", "pods", "--role=pods", f"--serviceaccount={namespace}:nobody", "-n", namespace)
    create = ("create", "-n", namespace, "--dry-run=server", "-f", "-")
    refused = kubectl(*create, f"--as=system:serviceaccount:{namespace}:nobody", stdin=json.dumps(pod), check=False)
    assert "cannot set blockOwnerDeletion" in refused.stderr
    kubectl(*create, f"--as=system:serviceaccount:{SYSTEM}:signalbox-controller", stdin=json.dumps(pod))


def test_a_kind_is_left_to_the_operator_that_serves_it(signalbox, kubectl, namespace, until):
    """Kubeflow's training operator, by its Deployment; without a restart on either side."""
    kubectl("create", "deployment", "training-operator", "--image=registry.example/operator:1", "-n", namespace)

    def not_served():
        shown = CliRunner().invoke(status, ["--state-dir", str(signalbox.state_dir), "-o", "json"])
        return json.loads(shown.stdout)["not_served"]

    reason = f"Kubeflow's training operator is at work: Deployment {namespace}/training-operator"
    until(lambda: not_served().get("PyTorchJob.kubeflow.org") == reason, 90)
    assert "TrainingJob.signalbox.dev" not in not_served()
    shown = CliRunner().invoke(status, ["--state-dir", str(signalbox.state_dir)])
    assert f"PyTorchJob.kubeflow.org is not served: {reason}" in shown.stdout
    kubectl("apply", "-n", namespace, "-f", str(signalbox.examples / "trainingjob-minimal.yaml"))
    kubectl("apply", "-n", namespace, "-f", str(signalbox.examples / "pytorch-mnist.yaml"))
    kubectl("wait", "tj", "--all", "-n", namespace, "--for=condition=Succeeded", "--timeout=60s")
    assert "status" not in signalbox.get("ptj", "pytorch-mnist", namespace)
    kubectl("scale", "deployment", "training-operator", "--replicas=0", "-n", namespace)
    kubectl("wait", "ptj/pytorch-mnist", "-n", namespace, "--for=condition=Succeeded", "--timeout=120s")
    assert not_served() == {}


def test_uninstalling_leaves_the_jobs_and_nothing_that_could_refuse_them(
    signalbox, cluster, kubectl, namespace, job_manifest
):
    kubectl("create", "-n", namespace, "-f", "-", stdin=job_manifest("kept", replicas={"Worker": 1}, run_seconds="1"))
    signalbox.stop("controller")
    signalbox.stop("webhook")
    try:
        done = CliRunner().invoke(down, ["--kubeconfig", str(cluster.kubeconfig)])
        assert done.exit_code == 0, done.output
        first = [line.split('"')[1] for line in done.output.splitlines()][:2]
        assert first == ["signalbox-mutating", "signalbox-validating"]
        left = kubectl("get", ",".join((*CONFIGURATIONS, "clusterroles", "clusterrolebindings")), "-o", "name").stdout
        assert "signalbox" not in left
        assert kubectl("get", "namespace", SYSTEM, check=False).returncode == 1
        kubectl("create", "-n", namespace, "-f", "-", stdin=job_manifest("new", replicas={"Worker": 1}))
        kubectl("get", "tj", "kept", "new", "-n", namespace)
    finally:
        signalbox.install()
