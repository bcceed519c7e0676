"""The loop around decisions: holding after obstacles, coalescing counts, waiting for the history."""

from datetime import UTC, datetime, timedelta

import pytest

from controller.apply import Stop
from controller.clock import Clock
from controller.keys import Key
from controller.loop import Loop
from controller.settings import Settings
from kube import errors
from kube.queue import WorkQueue
from schemas import kinds
from schemas.records import NoRecorder

KIND = kinds.TRAINING_JOB
KEY = Key(KIND, "ns", "job")


class Server:
    """Keeps what is written, numbers it, and refuses pods while told to."""

    def __init__(self):
        self.version = 10
        self.refuse_pods = ""
        self.taken = False
        self.conflicts = 0
        self.job_status = {}
        self.log = []

    def _stored(self, body):
        self.version += 1
        metadata = {"uid": f"uid-{body['metadata']['name']}", **body["metadata"], "resourceVersion": str(self.version)}
        return {**body, "metadata": metadata}

    def create(self, path, body):
        self.log.append(("create", body["kind"]))
        if body["kind"] == "Pod" and self.refuse_pods:
            raise errors.Forbidden(self.refuse_pods)
        if body["kind"] == "Pod" and self.taken:
            raise errors.AlreadyExists("taken")
        return self._stored(body)

    def replace(self, path, body):
        if self.conflicts:
            self.conflicts -= 1
            raise errors.Conflict("changed")
        self.job_status = body["status"]
        self.log.append(("status", body["status"]["phase"]))
        return self._stored(body)

    def get(self, path):
        return {"count": 1, "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}

    def patch(self, path, body, *, kind):
        self.log.append(("patch", body))
        return self._stored({**body, "metadata": {"name": path.rpartition("/")[2], "namespace": "ns"}})

    def delete(self, path, *, uid, grace_seconds=None):
        self.log.append(("delete", path))

    def count(self, what):
        return sum(entry == what for entry in self.log)


class Time:
    def __init__(self):
        self.seconds = 0.0

    def clock(self):
        return Clock(lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds), lambda: self.seconds)


class Unsaved(NoRecorder):
    def saved(self, job_uid, resource_version):
        return False


def loop(server, time, recorder=None, queue=None, **settings):
    return Loop(server, (KIND,), recorder or NoRecorder(), Settings(**settings), time.clock(), queue or WorkQueue())


def stored(made, status=None, **spec):
    container = {"name": "main", "image": "i"}
    job = {
        "apiVersion": "signalbox.dev/v1",
        "kind": "TrainingJob",
        "metadata": {"name": "job", "namespace": "ns", "uid": "u", "generation": 1, "resourceVersion": "1"},
        "spec": {"replicaSpecs": {"Worker": {"template": {"spec": {"containers": [container]}}}}, **spec},
    }
    made.jobs[KIND].observe(job | ({"status": status} if status else {}))


def phase(made, pod_phase, version):
    pod = dict(made.pods.get("ns", "job-worker-0"))
    pod["status"] = {"phase": pod_phase}
    pod["metadata"] = {**pod["metadata"], "resourceVersion": str(version)}
    made.pods.observe(pod)


def test_a_new_job_takes_one_status_write():
    server = Server()
    made = loop(server, Time())
    stored(made)
    made.reconcile(KEY)
    assert server.log == [("create", "Service"), ("create", "Pod"), ("status", "Pending")]
    made.reconcile(KEY)
    assert len(server.log) == 3


def test_after_an_obstacle_creates_wait_longer_each_time():
    """PaddleFlow/paddle-operator#43: a handful of tries in five minutes, whatever wakes the job."""
    server, time = Server(), Time()
    server.refuse_pods = "exceeded quota"
    made = loop(server, time)
    stored(made)
    for _ in range(300):
        made.reconcile(KEY)
        time.seconds += 1
    assert 5 <= server.count(("create", "Pod")) <= 9
    assert server.count(("status", "Pending")) == 1
    server.refuse_pods = ""
    time.seconds += 60
    made.reconcile(KEY)
    assert made.pods.get("ns", "job-worker-0")
    rows = made.jobs[KIND].get("ns", "job")["status"]["conditions"]
    assert [row["status"] for row in rows if row["type"] == "Blocked"] == ["False"]


def test_a_gang_takes_one_status_write_and_follows_the_replicas():
    server = Server()
    made = loop(server, Time(), gang_scheduler="volcano")
    stored(made)
    made.reconcile(KEY)
    kinds_made = [kind for verb, kind in server.log if verb == "create"]
    assert kinds_made == ["PodGroup", "Service", "Pod"]
    group = made.extras["podgroups.scheduling.volcano.sh"].get("ns", "job")
    made.extras["podgroups.scheduling.volcano.sh"].observe(
        {**group, "metadata": {**group["metadata"], "resourceVersion": "900"}, "spec": {"minMember": 2}}
    )
    made.reconcile(KEY)
    [patched] = [entry for entry in server.log if entry[0] == "patch"]
    assert patched[1]["spec"]["minMember"] == 1


def test_count_changes_wait_for_the_interval():
    server, time = Server(), Time()
    made = loop(server, time, status_interval=1.0)
    stored(
        made,
        replicaSpecs={
            "Worker": {"replicas": 2, "template": {"spec": {"containers": [{"name": "main", "image": "i"}]}}}
        },
    )
    made.reconcile(KEY)
    phase(made, "Running", 900)  # one of two runs: the state stays Pending, only counts move
    made.reconcile(KEY)
    assert server.count(("status", "Pending")) == 1
    time.seconds += 1.1
    made.reconcile(KEY)
    assert server.count(("status", "Pending")) == 2


def test_a_condition_change_is_written_at_once():
    server = Server()
    made = loop(server, Time(), status_interval=60.0)
    stored(made)
    made.reconcile(KEY)
    phase(made, "Running", 900)
    made.reconcile(KEY)
    assert server.log[-2:] == [("status", "Running"), ("create", "Event")]


@pytest.mark.parametrize(("saved", "seconds", "deleted"), [(True, 0, True), (False, 0, False), (False, 700, True)])
def test_ttl_waits_for_the_history_within_its_grace(saved, seconds, deleted):
    """argoproj/argo-workflows#3880"""
    server, time = Server(), Time()
    made = loop(server, time, NoRecorder() if saved else Unsaved(), history_grace=600.0)
    stored(made, runPolicy={"ttlSecondsAfterFinished": 0, "cleanPodPolicy": "None"})
    made.reconcile(KEY)
    phase(made, "Succeeded", 900)
    made.reconcile(KEY)
    time.seconds += seconds
    made.reconcile(KEY)
    assert (("delete", "/apis/signalbox.dev/v1/namespaces/ns/trainingjobs/job") in server.log) is deleted


def test_a_job_long_blocked_is_tried_seldom_by_a_new_process_too():
    """apache/spark-kubernetes-operator#847: one Event, whose count grows at the rate of the backoff."""
    server, time = Server(), Time()
    server.refuse_pods = "exceeded quota"
    for _ in range(6):  # an hour in six lives of the controller
        made = loop(server, time)
        stored(made, status=server.job_status)
        for _ in range(600):
            made.reconcile(KEY)
            time.seconds += 1
    assert server.count(("create", "Pod")) <= 6 + 60
    assert server.count(("create", "Event")) == server.count(("create", "Pod"))


def test_a_taken_name_whose_holder_leaves_is_tried_again_without_any_event():
    """kubernetes-sigs/jobset#18"""
    server, time = Server(), Time()
    server.taken = True
    made = loop(server, time)
    stored(made)
    made.reconcile(KEY)
    assert made.jobs[KIND].get("ns", "job")["status"]["phase"] == "Pending"
    assert [row["type"] for row in made.jobs[KIND].get("ns", "job")["status"]["conditions"]] == ["Created", "Pending"]
    server.taken = False
    time.seconds += 1
    made.reconcile(KEY)
    assert made.pods.get("ns", "job-worker-0")
    assert server.count(("create", "Event")) == 0


def test_what_lasts_is_told_once_in_the_life_of_a_process():
    server, time = Server(), Time()
    made = loop(server, time)
    ended = {"type": "Failed", "status": "True", "reason": "JobFailed", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status = {"conditions": [ended], "phase": "Failed", "completionTime": "2026-01-02T00:00:00Z"}
    stored(made, status=status, runPolicy={"ttlSecondsAfterFinished": 5})
    for _ in range(5):
        made.reconcile(KEY)
    assert server.log == [("create", "Event")]


def test_a_status_write_that_meets_a_conflict_twice_is_made_again_and_nothing_twice():
    """kubeflow/trainer#1492"""
    server = Server()
    server.conflicts = 2
    made = loop(server, Time())
    stored(made)
    for _ in range(4):
        made.reconcile(KEY)
    assert server.log.count(("create", "Pod")) == 1
    assert server.log[-1] == ("status", "Pending")
    assert server.count(("create", "Event")) == 0
    assert server.conflicts == 0


def test_a_job_that_is_gone_is_forgotten():
    server = Server()
    loop(server, Time()).reconcile(KEY)
    assert server.log == []


class Told(NoRecorder):
    def __init__(self):
        self.jobs = []

    def saw_job(self, job):
        self.jobs.append(job["metadata"]["name"])

    def lost_job(self, job):
        self.jobs.append(f"lost {job['metadata']['name']}")


def test_a_standby_keeps_its_queue_and_records_nothing():
    recorder = Told()
    made = loop(Server(), Time(), recorder)
    made.stand_by()
    stored(made)
    made.watched.on_job(KIND, "ADDED", made.jobs[KIND].get("ns", "job"))
    made.watched.on_job(KIND, "DELETED", {"metadata": {"namespace": "ns", "name": "other", "uid": "o"}})
    assert (made.queue.get(0), recorder.jobs) == (None, [])
    made.act()
    assert recorder.jobs == ["job"]
    assert {made.queue.get(0), made.queue.get(0)} == {KEY, Key(KIND, "ns", "other")}


def test_a_new_leader_reads_a_job_anew_before_it_acts():
    """The last status of the leader before may still be on its way to our cache, its deletes already here."""
    server = Server()
    made = loop(server, Time())
    stored(made)
    old = made.jobs[KIND].get("ns", "job")
    metadata = {**old["metadata"], "resourceVersion": "5", "generation": 2}
    newest = {**old, "metadata": metadata, "spec": {**old["spec"], "runPolicy": {"suspend": True}}}
    server.get = lambda path: newest
    made.act()
    made.reconcile(KEY)
    assert server.count(("create", "Pod")) == 0
    assert made.jobs[KIND].get("ns", "job")["status"]["phase"] == "Suspended"


def test_a_new_leader_does_nothing_for_a_job_that_is_gone():
    server = Server()
    made = loop(server, Time())
    stored(made)

    def gone(path):
        raise errors.NotFound("gone")

    server.get = gone
    made.act()
    with pytest.raises(Stop):
        made.reconcile(KEY)
    assert server.log == []


def test_a_fenced_write_leaves_the_key_in_the_queue():
    server, time = Server(), Time()
    made = loop(server, time)
    stored(made)

    def fenced(path, body):
        raise errors.NotLeading("not sent")

    server.create = fenced
    made._reconciled(KEY)
    assert made.queue.get(1) == KEY


def test_a_delete_is_sent_once_however_late_the_watch_shows_it():
    server = Server()
    made = loop(server, Time())
    stored(made)
    made.reconcile(KEY)
    phase(made, "Succeeded", 900)
    for _ in range(4):
        made.reconcile(KEY)
    assert [entry for entry in server.log if entry[0] == "delete"] == [("delete", "/api/v1/namespaces/ns/services/job")]


def test_what_wakes_a_held_job_does_not_cost_it_its_retry():
    """Of several turns asked for the queue keeps the earliest: that of a child's change, not that of the retry."""
    server, time = Server(), Time()
    server.refuse_pods = "exceeded quota"
    made = loop(server, time, queue=WorkQueue(monotonic=lambda: time.seconds))
    stored(made)
    made.reconcile(KEY)
    made.queue.add_after(KEY, 0.1)
    time.seconds = 1
    assert made.queue.get(0) == KEY
    made.reconcile(KEY)
    made.queue.done(KEY)
    assert (made.queue.get(0), server.count(("create", "Pod"))) == (None, 1)
    time.seconds = 6
    assert made.queue.get(0) == KEY
    made.reconcile(KEY)
    assert server.count(("create", "Pod")) == 2


def test_a_kind_that_is_not_served_is_left_alone_until_it_is():
    server = Server()
    made = loop(server, Time())
    stored(made)
    made.serving.unserved[KIND] = "its CRD drops status.restarts"
    made.reconcile(KEY)
    assert server.log == []
    made.serving.unserved.clear()
    made.watched.look_again(KIND)
    assert made.queue.get(0) == KEY
    made.reconcile(KEY)
    assert ("create", "Pod") in server.log


def test_the_end_that_is_written_wakes_who_waits_for_the_place():
    """The watch tells nothing about our own write: waiting for it cost the next job half a minute."""
    made = loop(Server(), Time())
    policy = {"metadata": {"name": "one", "resourceVersion": "1"}, "spec": {"limits": {"maxRunningJobs": 1}}}
    made.governor.policies.observe({"apiVersion": "signalbox.dev/v1", "kind": "TrainingPolicy", **policy})
    made.watched.on_policy()
    stored(made)
    made.reconcile(KEY)
    first = made.jobs[KIND].get("ns", "job")
    second = {**first, "metadata": {**first["metadata"], "name": "next", "uid": "v"}, "status": {}}
    made.jobs[KIND].observe(second)
    waiting = Key(KIND, "ns", "next")
    made.reconcile(waiting)
    assert made.jobs[KIND].get("ns", "next")["status"]["conditions"][-1]["reason"] == "MaxRunningJobs"
    while (key := made.queue.get(0)) is not None:
        made.queue.done(key)
    phase(made, "Succeeded", 900)
    made.reconcile(KEY)
    assert waiting in (made.queue.get(0), made.queue.get(0))
