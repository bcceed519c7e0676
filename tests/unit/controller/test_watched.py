"""What the watches tell wakes the job that it is about, and reaches the history."""

import pytest

from controller.clock import Clock
from controller.governor import Governor
from controller.keys import Key
from controller.snapshot import Reader
from controller.watched import GATHER, Watched
from kube.queue import WorkQueue
from kube.resources import PODS, SERVICES
from kube.store import Store
from schemas import kinds
from schemas.records import NoRecorder

KIND = kinds.TRAINING_JOB
KEY = Key(KIND, "ns", "job")
OWNER = {"controller": True, "apiVersion": "signalbox.dev/v1", "kind": "TrainingJob", "name": "job", "uid": "u"}


class Told(NoRecorder):
    def __init__(self):
        self.log = []

    def saw_job(self, job):
        self.log.append(("job", job["metadata"]["name"]))

    def saw_pod(self, pod, job_uid, replica_type):
        self.log.append((pod["metadata"]["name"], job_uid, replica_type))

    def lost_pod(self, pod, job_uid, replica_type):
        self.log.append(("lost", pod["metadata"]["name"]))


class Watching:
    """Stores with what watches them; time moves only by ``seconds``."""

    def __init__(self):
        self.seconds, self.recorder = 0.0, Told()
        self.jobs, self.pods, services = Store(), Store(), Store()
        self.queue = WorkQueue(monotonic=lambda: self.seconds)
        self.reader = Reader(self.pods, services)
        self.watched = Watched(
            {KIND: self.jobs},
            {"pods": self.pods, "services": services},
            queue=self.queue,
            reader=self.reader,
            governor=Governor(None, {KIND: self.jobs}, self.recorder, Clock(), 600.0),
            recorder=self.recorder,
        )
        self.job = {
            "metadata": {"name": "job", "namespace": "ns", "uid": "u", "generation": 1, "resourceVersion": "1"},
            "spec": {
                "replicaSpecs": {"Worker": {"template": {"spec": {"containers": [{"name": "main", "image": "i"}]}}}}
            },
        }
        self.jobs.observe(self.job)

    def woken(self):
        """The key that is due once a crowd has been gathered; None when nobody was woken."""
        assert self.queue.get(0) is None
        self.seconds += GATHER
        key = self.queue.get(0)
        self.queue.done(key)
        return key


@pytest.fixture
def watching():
    return Watching()


def pod(version=1, phase="Pending", **status):
    labels = {"signalbox.dev/replica-type": "worker", "signalbox.dev/replica-index": "0"}
    metadata = {"name": "p", "namespace": "ns", "uid": "p", "resourceVersion": str(version), "labels": labels}
    return {"metadata": metadata | {"ownerReferences": [OWNER]}, "status": {"phase": phase, **status}}


def test_children_wake_the_job_that_controls_them(watching):
    watching.watched.on_child("ADDED", pod(), PODS)
    watching.watched.on_child("MODIFIED", pod(2), PODS)
    assert watching.woken() == KEY
    watching.watched.on_child("DELETED", pod(3), SERVICES)
    assert watching.woken() == KEY
    watching.watched.on_child("ADDED", {"metadata": {"namespace": "ns", "name": "p"}}, PODS)
    assert watching.woken() is None


@pytest.mark.parametrize(
    ("change", "phase", "woken"),
    [
        ("MODIFIED", "Pending", None),
        ("MODIFIED", "Running", KEY),
        ("DELETED", "Pending", KEY),
    ],
)
def test_a_change_that_no_decision_sees_wakes_nobody(watching, change, phase, woken):
    watching.reader.read(KIND, watching.job)
    watching.watched.on_child(change, pod(2, phase, hostIP="10.0.0.1"), PODS, pod())
    assert watching.woken() == woken


def test_only_who_acts_tells_the_history(watching):
    watching.watched.on_child("ADDED", pod(), PODS)
    assert watching.recorder.log == []
    watching.watched.acting = True
    watching.watched.on_child("MODIFIED", pod(2), PODS)
    watching.watched.on_child("DELETED", pod(3), PODS)
    assert watching.recorder.log == [("p", "u", "Worker"), ("lost", "p")]


def test_a_new_leader_tells_all_that_is_there(watching):
    watching.pods.observe(pod())
    assert watching.watched.tell_all() == {KEY}
    assert watching.recorder.log == [("job", "job"), ("p", "u", "Worker")]
    assert watching.queue.get(0) == KEY


def test_what_this_process_wrote_is_known_and_told_once(watching):
    for _ in range(2):
        watching.watched.saw_child("pods", pod())
    watching.watched.saw_child("services", pod())
    assert watching.pods.get("ns", "p") == pod()
    assert watching.recorder.log == [("p", "u", "Worker")]
    written = watching.job | {"metadata": watching.job["metadata"] | {"resourceVersion": "2"}}
    watching.watched.saw_job(KIND, written)
    assert watching.jobs.get("ns", "job") == written
