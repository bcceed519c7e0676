"""Kueue's part played over the API: what it writes to a PyTorchJob, and the few fields it reads of one.

The real Kueue runs in ``make kueue``; this test says which of its steps fails, without its build.
"""

import copy
import json

import pytest

pytestmark = pytest.mark.cluster

POD = {
    "metadata": {"annotations": {"fate.signalbox.dev/run-seconds": "4", "fate.signalbox.dev/stop-seconds": "2"}},
    "spec": {
        "containers": [{"name": "pytorch", "image": "registry.example/train:1"}],
        "nodeSelector": {"kubernetes.io/os": "linux"},
    },
}
JOB = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "queued", "labels": {"kueue.x-k8s.io/queue-name": "team"}},
    "spec": {
        "runPolicy": {"suspend": True},  # Kueue's webhook sets it
        "pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": POD}, "Worker": {"replicas": 2, "template": POD}},
    },
}


class Kueue:
    """Writes a job as Kueue's job framework does, whole and with its resourceVersion, and reads no more than it."""

    def __init__(self, signalbox, kubectl, namespace):
        self._signalbox, self._kubectl, self._namespace = signalbox, kubectl, namespace

    def read(self):
        return self._signalbox.get("pytorchjob", "queued", self._namespace)

    def update(self, change):
        """Again from what is stored, as Kueue does, when the job was written in between."""
        while "Error from server (Conflict)" in (written := self._replace(change)).stderr:
            pass
        assert written.returncode == 0, written.stderr

    def _replace(self, change):
        job = self.read()
        change(job["spec"]["runPolicy"], [entry["template"] for entry in job["spec"]["pytorchReplicaSpecs"].values()])
        return self._kubectl("replace", "-n", self._namespace, "-f", "-", stdin=json.dumps(job), check=False)

    def admit(self, flavor):
        """The node labels of a flavor, tolerations and labels come with the update that starts it."""

        def change(policy, templates):
            policy["suspend"] = False
            for template in templates:
                template["spec"].setdefault("nodeSelector", {}).update(flavor)
                template["spec"]["tolerations"] = [{"key": "reserved", "operator": "Exists"}]
                template["metadata"].setdefault("labels", {})["kueue.x-k8s.io/podset"] = "any"

        self.update(change)

    def evict(self):
        """Suspends and restores the templates in one update."""

        def change(policy, templates):
            policy["suspend"] = True
            for template in templates:
                template["spec"] = copy.deepcopy(POD["spec"])
                del template["metadata"]["labels"]

        self.update(change)

    def true_conditions(self):
        return {row["type"] for row in self.read().get("status", {}).get("conditions", []) if row["status"] == "True"}

    def is_active(self):
        """While this is true the quota stays taken."""
        return any(entry.get("active") for entry in self.read().get("status", {}).get("replicaStatuses", {}).values())

    def is_finished(self):
        return bool(self.true_conditions() & {"Succeeded", "Failed"})


@pytest.fixture
def kueue(signalbox, kubectl, namespace, until):
    kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(JOB))
    found = Kueue(signalbox, kubectl, namespace)
    until(lambda: "Suspended" in found.true_conditions())
    return found


def lasting(policy, templates):
    """The pods run until they are stopped: an eviction is never too late."""
    for template in templates:
        template["metadata"]["annotations"]["fate.signalbox.dev/never-ends"] = "true"


def ending(policy, templates):
    for template in templates:
        del template["metadata"]["annotations"]["fate.signalbox.dev/never-ends"]


def selectors(signalbox, namespace):
    return [pod["spec"].get("nodeSelector") for pod in signalbox.list("pods", namespace)]


def test_a_queued_job_has_no_children(kueue, signalbox, namespace):
    assert not kueue.is_active()
    assert (signalbox.list("pods", namespace), signalbox.list("services", namespace)) == ([], [])


def test_an_admitted_job_runs_where_kueue_says_until_it_ends(kueue, signalbox, namespace, until):
    kueue.admit({"type": "kwok"})
    until(lambda: "Running" in kueue.true_conditions())
    assert kueue.is_active()
    assert selectors(signalbox, namespace) == [{"kubernetes.io/os": "linux", "type": "kwok"}] * 3
    assert {pod["metadata"]["labels"]["kueue.x-k8s.io/podset"] for pod in signalbox.list("pods", namespace)} == {"any"}
    until(kueue.is_finished)
    assert "Succeeded" in kueue.true_conditions()
    until(lambda: not kueue.is_active())


def test_pods_are_ready_only_when_all_run(kueue, kubectl, signalbox, namespace, until):
    def stuck(policy, templates):
        templates[-1]["metadata"]["annotations"]["fate.signalbox.dev/never-starts"] = "true"

    kueue.update(stuck)
    kueue.admit({"type": "kwok"})
    until(kueue.is_active)
    assert "Running" not in kueue.true_conditions()


def test_an_evicted_job_frees_its_quota_only_when_its_pods_are_gone(kueue, signalbox, namespace, until):
    kueue.update(lasting)
    kueue.admit({"type": "kwok"})
    until(lambda: "Running" in kueue.true_conditions())
    kueue.evict()
    seen = 0
    while kueue.is_active():
        seen += 1
    assert seen, "the pods stop for two seconds: the quota was free at once"
    assert signalbox.list("pods", namespace) == []
    until(lambda: "Suspended" in kueue.true_conditions())
    assert "Running" not in kueue.true_conditions()
    until(lambda: signalbox.list("services", namespace) == [])


def test_an_evicted_job_can_be_admitted_elsewhere(kueue, signalbox, namespace, until):
    kueue.update(lasting)
    kueue.admit({"type": "kwok"})
    until(lambda: "Running" in kueue.true_conditions())
    kueue.evict()
    kueue.update(ending)
    kueue.admit({"kubernetes.io/hostname": "kwok-1"})  # at once: the suspension is completed first
    until(
        lambda: (
            selectors(signalbox, namespace) == [{"kubernetes.io/os": "linux", "kubernetes.io/hostname": "kwok-1"}] * 3
        )
    )
    until(kueue.is_finished)
    assert "Succeeded" in kueue.true_conditions()
