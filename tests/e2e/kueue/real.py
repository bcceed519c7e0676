"""The real Kueue beside Signalbox, PyTorchJobs in a queue that fits one: ``make kueue``.

Kueue is built once, from the go.mod in this directory. Its webhooks are not needed: the jobs are created suspended.
"""

import json
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest
import yaml

from signalbox.local import ports, probes, processes
from signalbox.local.paths import cache_dir
from signalbox.local.processes import Program

HERE = Path(__file__).parent
MODULE = "sigs.k8s.io/kueue"
METRICS_CERTIFICATE = Path("/etc/kueue/metrics/certs")  # Kueue looks nowhere else
QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"
SELECTOR = {"kubernetes.io/os": "linux"}
OBJECTS = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: fake}
spec: {nodeLabels: {type: kwok}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: urgent}
value: 1000
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: one-job}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: fake, resources: [{name: cpu, nominalQuota: 4}]}]
"""
LOCAL_QUEUE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team}
spec: {clusterQueue: one-job}
"""

pytestmark = [pytest.mark.cluster, pytest.mark.site]


def go(*arguments):
    return subprocess.run(["go", *arguments], cwd=HERE, check=True, capture_output=True, text=True).stdout.strip()


def built():
    """The program, built when the cache has none of this version: minutes, 90 MB."""
    binary = cache_dir() / f"kueue-{go('list', '-m', '-f', '{{.Version}}', MODULE)}" / "kueue"
    if not binary.exists():
        go("build", "-trimpath", "-ldflags=-s -w", "-o", str(binary), f"{MODULE}/cmd/kueue")
    return binary


def definitions():
    """Kueue's CRDs without their conversion webhook: one version is all that is used."""
    bases = Path(go("list", "-m", "-f", "{{.Dir}}", MODULE)) / "config" / "components" / "crd" / "bases"
    found = [yaml.safe_load(file.read_text()) for file in sorted(bases.glob("*.yaml"))]
    for crd in found:
        crd["spec"].pop("conversion", None)
    return yaml.safe_dump_all(found)


@pytest.fixture(scope="session")
def kueue(running, cluster, kubectl):
    """Kueue, ended with the cluster; its log is in the cluster's directory."""
    chosen = ports.choose(("health", "metrics", "webhook"))
    directory = cluster.state_dir / "kueue"
    for certificates in (directory, METRICS_CERTIFICATE):
        certificates.mkdir(parents=True, exist_ok=True)
        for suffix in ("crt", "key"):
            shutil.copy(cluster.state_dir / "control-plane" / f"apiserver.{suffix}", certificates / f"tls.{suffix}")
    settings = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f"{ports.LOOPBACK}:{chosen['health']}"},
        "metrics": {"bindAddress": f"{ports.LOOPBACK}:{chosen['metrics']}"},
        "webhook": {"host": ports.LOOPBACK, "port": chosen["webhook"], "certDir": str(directory)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "integrations": {"frameworks": ["kubeflow.org/pytorchjob"]},
    }
    (directory / "config.yaml").write_text(yaml.safe_dump(settings))
    kubectl("create", "namespace", "kueue-system")
    kubectl("apply", "--server-side", "-f", "-", stdin=definitions())
    kubectl("wait", "--for=condition=Established", "--all", "crd", "--timeout=60s")
    argv = (str(built()), f"--config={directory / 'config.yaml'}", "--feature-gates=VisibilityOnDemand=false")
    program = Program("kueue", argv, env={"KUBECONFIG": str(cluster.kubeconfig)})
    health = f"http://{ports.LOOPBACK}:{chosen['health']}/readyz"
    processes.start(cluster.state_dir, program, partial(probes.answers_ok, health), timeout=180)
    kubectl("apply", "-f", "-", stdin=OBJECTS)


class Team:
    """A namespace with a queue."""

    def __init__(self, signalbox, kubectl, namespace):
        self._signalbox, self._kubectl, self._namespace = signalbox, kubectl, namespace
        kubectl("apply", "-n", namespace, "-f", "-", stdin=LOCAL_QUEUE)

    def submit(self, name, *, seconds, **labels):
        fate = {"run-seconds": str(seconds), "stop-seconds": "3"}
        container = {"name": "pytorch", "image": "registry.example/train:1", "resources": {"requests": {"cpu": "1"}}}
        pod = {
            "metadata": {"annotations": {f"fate.signalbox.dev/{key}": value for key, value in fate.items()}},
            "spec": {"containers": [container], "nodeSelector": SELECTOR},
        }
        rules = [{"codes": [3], "action": "Ignore"}]  # a field of ours that Kueue's types do not know
        job = {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {"name": name, "labels": {QUEUE: "team", **labels}},
            "spec": {
                "runPolicy": {"suspend": True, "exitCodeRules": rules},
                "pytorchReplicaSpecs": {
                    "Master": {"replicas": 1, "template": pod},
                    "Worker": {"replicas": 3, "template": pod},
                },
            },
        }
        self._kubectl("create", "-n", self._namespace, "-f", "-", stdin=json.dumps(job))

    def job(self, name):
        return self._signalbox.get("pytorchjob", name, self._namespace)

    def jobs(self):
        return self._signalbox.list("pytorchjobs", self._namespace)

    def state(self, name):
        return self._signalbox.state("pytorchjob", name, self._namespace)

    def is_admitted(self, name):
        return not self.job(name)["spec"]["runPolicy"]["suspend"]

    def selectors(self, name):
        entries = self.job(name)["spec"]["pytorchReplicaSpecs"].values()
        return [entry["template"]["spec"].get("nodeSelector") for entry in entries]

    def pods(self, name):
        return [
            pod for pod in self._signalbox.list("pods", self._namespace) if pod["metadata"]["name"].startswith(name)
        ]


@pytest.fixture
def tell(request):
    """Prints a line of the result."""
    return request.config.get_terminal_writer().line


@pytest.fixture
def team(kueue, signalbox, kubectl, namespace):
    return Team(signalbox, kubectl, namespace)


def test_three_jobs_run_one_after_another(team, until, tell):
    for name in ("a", "b", "c"):
        team.submit(name, seconds=3)
    order = []

    def all_succeeded():
        jobs = team.jobs()
        admitted = [job for job in jobs if not job["spec"]["runPolicy"]["suspend"]]
        order.extend(name for job in admitted if (name := job["metadata"]["name"]) not in order)
        running = [job["metadata"]["name"] for job in admitted if job["status"].get("phase") != "Succeeded"]
        assert len(running) <= 1, running
        return len(jobs) == 3 and all(job["status"].get("phase") == "Succeeded" for job in jobs)

    until(all_succeeded, seconds=300)
    tell(f"\nthree jobs, quota for one: admitted in the order {order}, never two at once")
    assert sorted(order) == ["a", "b", "c"]


def test_preemption_restores_the_template_and_waits_for_the_pods(team, until, tell):
    team.submit("low", seconds=10)
    until(lambda: team.state("low") == "Running", seconds=120)
    assert team.selectors("low") == [SELECTOR | {"type": "kwok"}] * 2
    team.submit("high", seconds=2, **{PRIORITY: "urgent"})
    left = 0
    while not team.is_admitted("high"):  # read first: what is gone then stays gone
        left = max(left, len(team.pods("low")))
    assert team.pods("low") == []
    assert team.selectors("low") == [SELECTOR] * 2
    tell(f"\npreempted while {left} pods ran; admitted the other job once they were gone; template restored")
    until(lambda: team.state("high") == "Succeeded", seconds=120)
    until(lambda: team.state("low") == "Succeeded", seconds=180)
    assert team.job("low")["spec"]["runPolicy"]["exitCodeRules"] == [{"codes": [3], "action": "Ignore"}]
    tell("the preempted job was admitted again and succeeded; fields that Kueue does not know are still there")
