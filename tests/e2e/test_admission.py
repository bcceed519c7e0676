"""What a user meets at kubectl apply, on the real API server."""

import json

import pytest

from signalbox.local.paths import deploy_dir

pytestmark = [pytest.mark.cluster, pytest.mark.site]

FAULTY = deploy_dir() / "examples-faulty" / "invalid.yaml"
FIVE_FAULTS = (
    "metadata.name",
    "spec.runPolicy.backoffLimit",
    "spec.runPolicy.cleanPodPolicy",
    "spec.runPolicy.schedulingPolicy.minAvailable",
    "spec.runPolicy.ttlSecondsAfterFinished",
)


def apply(kubectl, namespace, manifest, *flags, check=True):
    text = manifest if isinstance(manifest, str) else manifest.read_text()
    return kubectl("apply", "-n", namespace, *flags, "-f", "-", stdin=text, check=check)


def test_five_faults_of_five_layers_in_one_answer(signalbox, kubectl, namespace):
    refused = apply(kubectl, namespace, FAULTY, check=False)
    assert refused.returncode == 1
    for path in FIVE_FAULTS:
        assert refused.stderr.count(f"* {path}: must") == 1, refused.stderr
    assert refused.stderr.count("\n* ") == len(FIVE_FAULTS)


def test_server_side_apply_stops_at_the_api_servers_own_type_check(signalbox, kubectl, namespace):
    refused = apply(kubectl, namespace, FAULTY, "--server-side", check=False)
    assert ".spec.runPolicy.backoffLimit: expected numeric" in refused.stderr


@pytest.mark.parametrize("flags", [(), ("--server-side",)])
def test_the_minimal_job_is_filled_in_and_the_second_apply_changes_nothing(signalbox, kubectl, namespace, flags):
    """kubernetes/kubernetes#66450"""
    apply(kubectl, namespace, signalbox.examples / "trainingjob-minimal.yaml", *flags)
    first = signalbox.get("trainingjob", "minimal", namespace)
    worker = first["spec"]["replicaSpecs"]["Worker"]
    assert first["spec"]["runPolicy"] == {"cleanPodPolicy": "Running"}
    assert (worker["replicas"], worker["restartPolicy"]) == (1, "Never")
    assert worker["template"]["spec"]["containers"][0]["ports"] == [
        {"containerPort": 29500, "name": "main", "protocol": "TCP"}
    ]
    apply(kubectl, namespace, signalbox.examples / "trainingjob-minimal.yaml", *flags)
    second = signalbox.get("trainingjob", "minimal", namespace)
    assert (second["spec"], second["metadata"]["generation"]) == (first["spec"], 1)


@pytest.mark.parametrize("flags", [(), ("--server-side",)])
def test_lower_case_types_applied_twice(signalbox, kubectl, namespace, flags):
    """kubedl-io/kubedl#30"""
    text = (signalbox.examples / "pytorch-mnist.yaml").read_text()
    manifest = text.replace("    Master:", "    master:").replace("    Worker:", "    worker:")
    apply(kubectl, namespace, manifest, *flags)
    first = signalbox.get("pytorchjob", "pytorch-mnist", namespace)
    assert sorted(first["spec"]["pytorchReplicaSpecs"]) == ["Master", "Worker"]
    apply(kubectl, namespace, manifest, *flags)
    second = signalbox.get("pytorchjob", "pytorch-mnist", namespace)
    assert (second["spec"], second["metadata"]["generation"]) == (first["spec"], 1)


def test_the_controller_owns_nothing_under_spec(signalbox, kubectl, namespace, until):
    """rabbitmq/cluster-operator#2121: appliers never meet a conflict with us."""
    manifest = signalbox.examples / "pytorch-mnist.yaml"
    apply(kubectl, namespace, manifest, "--server-side", "--field-manager=ci")
    until(lambda: signalbox.state("pytorchjob", "pytorch-mnist", namespace) == "Running")
    for manager in ("ci", "gitops"):
        apply(kubectl, namespace, manifest, "--server-side", f"--field-manager={manager}")
    job = json.loads(
        kubectl("get", "ptj", "pytorch-mnist", "-n", namespace, "-o", "json", "--show-managed-fields").stdout
    )
    managers = job["metadata"]["managedFields"]
    assert {entry["manager"] for entry in managers if "f:spec" in entry["fieldsV1"]} == {"ci", "gitops"}
    assert any("f:status" in entry["fieldsV1"] for entry in managers)


def test_a_dry_run_leaves_nothing(signalbox, kubectl, namespace):
    """kubernetes/autoscaler#2278"""
    apply(kubectl, namespace, signalbox.examples / "trainingjob-minimal.yaml", "--dry-run=server")
    assert signalbox.list("trainingjobs", namespace) == []
    refused = apply(kubectl, namespace, FAULTY, "--dry-run=server", check=False)
    assert refused.stderr.count("\n* ") == len(FIVE_FAULTS)


def test_a_warning_reaches_the_user(signalbox, kubectl, namespace):
    text = (signalbox.examples / "trainingjob-minimal.yaml").read_text()
    applied = apply(kubectl, namespace, text.replace("spec:\n", "spec:\n  cleanPodPolicy: All\n", 1))
    assert "Warning: spec.cleanPodPolicy: has no effect: use spec.runPolicy.cleanPodPolicy" in applied.stderr


def test_the_crds_explain_themselves_and_are_structural(signalbox, kubectl, tmp_path):
    for kind, field in (
        ("trainingjob", "replicaSpecs"),
        ("pytorchjob", "pytorchReplicaSpecs.template.spec.containers"),
    ):
        assert "FIELDS:" in kubectl("explain", f"{kind}.spec.{field}").stdout
    for name in ("trainingjobs.signalbox.dev", "pytorchjobs.kubeflow.org"):
        conditions = json.loads(kubectl("get", "crd", name, "-o", "json").stdout)["status"]["conditions"]
        assert {row["type"]: row["status"] for row in conditions} == {"NamesAccepted": "True", "Established": "True"}
    assert kubectl("apply", "--dry-run=server", "-f", str(signalbox.examples.parent / "crds" / "trainingjob.yaml"))


def test_strict_field_validation_names_an_unknown_field(signalbox, kubectl, namespace):
    text = (signalbox.examples / "trainingjob-minimal.yaml").read_text().replace("image:", "imagee:")
    refused = apply(kubectl, namespace, text, check=False)
    assert 'unknown field "spec.replicaSpecs.Worker.template.spec.containers[0].imagee"' in refused.stderr


def test_a_webhook_that_is_down_hits_only_our_kinds(signalbox, kubectl, namespace, until, job_manifest):
    """open-policy-agent/gatekeeper#2423, kubeedge/kubeedge#7178"""
    apply(kubectl, namespace, job_manifest("running", replicas={"Worker": 1}, run_seconds="6"))
    until(lambda: signalbox.state("trainingjob", "running", namespace) == "Running")
    signalbox.stop("webhook")
    kubectl("create", "configmap", "unrelated", "-n", namespace)
    kubectl("create", "deployment", "unrelated", "--image=registry.example/x:1", "-n", namespace)
    refused = apply(kubectl, namespace, job_manifest("new", replicas={"Worker": 1}), check=False)
    assert 'failed calling webhook "validate.signalbox.dev"' in refused.stderr
    # the controller's status writes go on, and a job can be deleted
    until(lambda: signalbox.state("trainingjob", "running", namespace) == "Succeeded")
    kubectl("delete", "trainingjob", "running", "-n", namespace, "--cascade=foreground", "--timeout=20s")
    signalbox.start()
    apply(kubectl, namespace, job_manifest("new", replicas={"Worker": 1}))
