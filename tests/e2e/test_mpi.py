"""An MPIJob's life with the shipped rights: what mpirun needs comes, goes with a suspension and comes back."""

import json
import subprocess

import pytest
import yaml

from signalbox.local.paths import deploy_dir

pytestmark = [pytest.mark.cluster, pytest.mark.site]

SORTS = "configmaps,serviceaccounts,roles,rolebindings"
OURS = "-l=signalbox.dev/job-uid"
FOUR = [
    "configmap/mpi-horovod-config",
    "role.rbac.authorization.k8s.io/mpi-horovod-launcher",
    "rolebinding.rbac.authorization.k8s.io/mpi-horovod-launcher",
    "serviceaccount/mpi-horovod-launcher",
]


@pytest.fixture
def controller_account(signalbox, kubectl, tmp_path):
    """The shipped account with the rights of the overlay for kubeflow.org: a kubeconfig that works as it."""
    rendered = subprocess.check_output(["kubectl", "kustomize", str(deploy_dir() / "overlays" / "kubeflow")], text=True)
    kinds = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding")
    shipped = [
        each
        for each in yaml.load_all(rendered, Loader=yaml.CSafeLoader)
        if each["kind"] in kinds and each["metadata"]["name"].startswith("signalbox-controller")
    ]
    kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(shipped))
    return signalbox.kubeconfig_of("signalbox-controller", tmp_path / "kubeconfig")


def test_an_mpi_job_with_the_shipped_rights(signalbox, kubectl, namespace, until, controller_account):
    role = str(deploy_dir() / "overlays" / "mpi" / "rbac-controller.yaml")
    kubectl("delete", "-f", role, "--ignore-not-found")
    signalbox.control_with(kubeconfig=controller_account)
    job = yaml.safe_load((signalbox.examples / "mpi-horovod.yaml").read_text())
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["metadata"]["annotations"]
    launcher["fate.signalbox.dev/never-ends"] = "true"
    kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(job))

    def blocked():
        rows = signalbox.get("mpijob", "mpi-horovod", namespace).get("status", {}).get("conditions", [])
        return next((row for row in rows if row["type"] == "Blocked"), {"status": None})

    def state():
        return signalbox.state("mpijob", "mpi-horovod", namespace)

    def four():
        return sorted(kubectl("get", SORTS, OURS, "-n", namespace, "-o", "name").stdout.split())

    # without the overlay the job says what is missing, and goes on by itself once it is there
    until(lambda: blocked()["status"] == "True")
    assert blocked()["reason"] == "CreateRefused"
    assert 'cannot create resource "configmaps"' in blocked()["message"]
    assert signalbox.pods(namespace) == {}
    kubectl("apply", "--server-side", "-f", role)
    until(lambda: state() == "Running", 120)
    assert four() == FOUR
    hosts = signalbox.get("configmap", "mpi-horovod-config", namespace)["data"]
    assert hosts["hostfile"] == "mpi-horovod-worker-0 slots=2\nmpi-horovod-worker-1 slots=2\n"

    def discovered():
        script = signalbox.get("configmap", "mpi-horovod-config", namespace)["data"]["discover_hosts.sh"]
        return script.splitlines()[1:]

    until(lambda: discovered() == ["echo mpi-horovod-worker-0:2", "echo mpi-horovod-worker-1:2"])
    who = f"--as=system:serviceaccount:{namespace}:mpi-horovod-launcher"
    for pod, answer in (("mpi-horovod-worker-1", "yes"), ("mpi-horovod-launcher", "no")):
        question = ("create", f"pods/{pod}", "--subresource=exec", who, "-n", namespace)
        assert kubectl("auth", "can-i", *question, check=False).stdout.strip() == answer

    suspend(kubectl, namespace, suspended=True)
    until(lambda: state() == "Suspended")
    assert (four(), signalbox.pods(namespace)) == ([], {})
    suspend(kubectl, namespace, suspended=False)
    until(lambda: state() == "Running", 90)
    assert four() == FOUR

    kubectl("annotate", "pod", "mpi-horovod-launcher", "-n", namespace, "fate.signalbox.dev/never-ends-")
    until(lambda: state() == "Succeeded")
    assert four() == FOUR
    kubectl("delete", "mpijob", "mpi-horovod", "-n", namespace)
    until(lambda: four() == [])


def suspend(kubectl, namespace, *, suspended):
    change = json.dumps({"spec": {"runPolicy": {"suspend": suspended}}})
    kubectl("patch", "mpijob", "mpi-horovod", "-n", namespace, "--type=merge", "-p", change)
