"""What the API server may answer to a write, and what becomes of it. The fake injects answers, nothing else."""

from datetime import UTC, datetime

import pytest

from controller import apply
from controller.apply import Port, Stop
from controller.keys import resource_of
from controller.plan import Create, Delete, DeleteJob, Event, Obstacle, Update
from kube import errors
from schemas import kinds
from schemas.job import Job

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JOB = Job(kinds.PYTORCH_JOB, {"metadata": {"name": "job", "namespace": "ns", "uid": "job-uid"}})
RESOURCE = resource_of(kinds.PYTORCH_JOB)
POD = {
    "metadata": {
        "name": "job-worker-0",
        "labels": {"signalbox.dev/job-uid": "job-uid"},
        "ownerReferences": [{"controller": True, "uid": "job-uid", "kind": "PyTorchJob", "name": "job"}],
    }
}
CREATE = Create("pods", POD)


class Answers:
    """Answers each verb with what it was given: an object, or an error to raise."""

    def __init__(self, **answers):
        self.answers = answers
        self.calls = []

    def __getattr__(self, verb):
        def call(path, *args, **kwargs):
            self.calls.append((verb, path, args, kwargs))
            answer = self.answers.get(verb, {})
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


class Seen:
    def __init__(self, **answers):
        self.kube = Answers(**answers)
        self.children = []
        self.events = []
        self.port = Port(self.kube, lambda plural, child: self.children.append((plural, child)), self.events.append)

    def does(self, *actions):
        return apply.actions(self.port, JOB, RESOURCE, actions)


def other(**metadata):
    owner = {"controller": True, "uid": "other-uid", "kind": "PyTorchJob", "name": "other"}
    return {"metadata": {"name": "job-worker-0", "ownerReferences": [owner], **metadata}}


def test_what_was_created_is_known_at_once():
    seen = Seen(create=POD)
    assert seen.does(CREATE) is None
    assert seen.children == [("pods", POD)]


@pytest.mark.parametrize(
    ("error", "obstacle"),
    [
        (errors.Forbidden('pods "x" is forbidden: exceeded quota: q'), "QuotaExceeded"),
        (errors.Forbidden("admission webhook denied: label cost-center required"), "CreateRefused"),
        (errors.Forbidden("cannot set blockOwnerDeletion"), "CreateRefused"),
        (errors.Invalid("spec.containers[0].name: Required"), "CreateRefused"),
        (errors.ServerError("teapot", status=418), "CreateRefused"),
        (errors.Conflict('admission webhook "p" denied the request: no', status=409), "CreateRefused"),
        (errors.ServerError('failed calling webhook "p": refused', status=500), "CreateRefused"),
    ],
)
def test_a_refused_create_is_an_obstacle(error, obstacle):
    """PaddleFlow/paddle-operator#43, kyverno/kyverno#16477, kubeflow/trainer#1552 (blockOwnerDeletion)"""
    assert Seen(create=error).does(CREATE) == Obstacle(obstacle, error.message)


def test_after_an_obstacle_nothing_more_is_created_but_deletes_go_on():
    """The loop takes every delete of a plan for sent."""
    seen = Seen(create=errors.Forbidden("exceeded quota: few"))
    assert seen.does(CREATE, CREATE, Delete("pods", "job-worker-1", "u")) is not None
    assert [verb for verb, *_ in seen.kube.calls] == ["create", "delete"]


@pytest.mark.parametrize(
    "error",
    [
        errors.Forbidden('namespace "ns" because it is being terminated'),
        errors.NotFound('namespaces "ns" not found', reason="NotFound"),
    ],
)
def test_a_namespace_that_goes_away_is_final(error):
    with pytest.raises(Stop):
        Seen(create=error).does(CREATE)


@pytest.mark.parametrize(
    "error",
    [
        errors.Unreachable("x"),
        errors.ServerError("etcdserver: request timed out", status=500),
        errors.ServerError("Unauthorized", status=401),
        errors.TooManyRequests("x", status=429),
        errors.Conflict("x", status=409),
    ],
)
def test_passing_trouble_is_raised(error):
    with pytest.raises(type(error)):
        Seen(create=error).does(CREATE)


GROUP = Create("podgroups.scheduling.volcano.sh", {**POD, "kind": "PodGroup"})


def test_a_crd_that_is_missing_is_an_obstacle():
    """kubeflow/trainer#1630: the API server answers a path that it does not know without a Status."""
    obstacle = Seen(create=errors.NotFound("404 page not found")).does(GROUP)
    assert obstacle == Obstacle(
        "PodGroupNotInstalled",
        "The API server does not serve PodGroup (podgroups.scheduling.volcano.sh, v1beta1): its CRD is not installed.",
    )


UPDATE = Update("podgroups.scheduling.volcano.sh", "job", "u", {"spec": {"minMember": 2}})


def test_an_update_names_the_uid():
    seen = Seen(patch=POD)
    assert seen.does(UPDATE) is None
    [(verb, path, (change,), _)] = seen.kube.calls
    assert (verb, path) == ("patch", "/apis/scheduling.volcano.sh/v1beta1/namespaces/ns/podgroups/job")
    assert change == {"metadata": {"uid": "u"}, "spec": {"minMember": 2}}
    assert seen.children == [("podgroups.scheduling.volcano.sh", POD)]


@pytest.mark.parametrize(
    ("error", "obstacle"),
    [
        (errors.NotFound("gone"), None),
        (errors.Conflict("another UID"), None),
        (errors.Forbidden("may not"), Obstacle("UpdateRefused", "may not")),
        (errors.Invalid("immutable"), Obstacle("UpdateRefused", "immutable")),
    ],
)
def test_an_update_that_does_not_go_through(error, obstacle):
    assert Seen(patch=error).does(UPDATE) == obstacle


TAKEN = errors.AlreadyExists("exists")


@pytest.mark.parametrize(
    ("found", "obstacle"),
    [
        (POD, None),
        (other(), Obstacle("NameConflict", "Pod job-worker-0 exists and belongs to PyTorchJob other.")),
        (
            {"metadata": {"name": "job-worker-0"}},
            Obstacle("NameConflict", "Pod job-worker-0 exists and belongs to nobody we know."),
        ),
        (other(deletionTimestamp="2026-01-01T00:00:00Z"), apply.LEAVING),
        (errors.NotFound("gone meanwhile"), apply.LEAVING),
    ],
)
def test_a_name_that_is_taken(found, obstacle):
    """kubernetes-sigs/jobset#18: neither adopted nor counted, and told."""
    seen = Seen(create=TAKEN, get=found)
    assert seen.does(CREATE) == obstacle
    assert len(seen.children) == (1 if found is POD else 0)


def test_our_child_without_our_label_gets_it():
    bare = {"metadata": {**POD["metadata"], "labels": {"a": "b"}}}
    seen = Seen(create=TAKEN, get=bare, patch=POD)
    assert seen.does(CREATE) is None
    assert seen.children == [("pods", POD)]
    assert seen.kube.calls[-1][0] == "patch"


def test_the_first_obstacle_ends_the_list():
    seen = Seen(create=errors.Forbidden("no"))
    seen.does(CREATE, CREATE)
    assert len(seen.kube.calls) == 1


def test_a_delete_that_meets_another_object_is_decided_again():
    with pytest.raises(errors.Conflict):
        Seen(delete=errors.Conflict("uid")).does(Delete("pods", "job-worker-0", "u"))


@pytest.mark.parametrize("error", [None, errors.NotFound("x")])
def test_deletes_name_the_uid_and_take_gone_for_done(error):
    seen = Seen(delete=error or {})
    forced = Delete("pods", "job-worker-1", "v", force=True)
    assert seen.does(Delete("pods", "job-worker-0", "u"), forced, DeleteJob(NOW)) is None
    assert [(path, kwargs) for _, path, _, kwargs in seen.kube.calls] == [
        ("/api/v1/namespaces/ns/pods/job-worker-0", {"uid": "u", "grace_seconds": None}),
        ("/api/v1/namespaces/ns/pods/job-worker-1", {"uid": "v", "grace_seconds": 0}),
        ("/apis/kubeflow.org/v1/namespaces/ns/pytorchjobs/job", {"uid": "job-uid", "grace_seconds": None}),
    ]


def test_a_status_that_lost_the_race_is_not_written():
    """kubeflow/trainer#1492"""
    assert apply.status(Seen(replace=errors.Conflict("changed")).port, dict(JOB.raw), RESOURCE, {}) is None


def test_a_status_of_a_job_that_is_gone_is_nothing_more_to_do():
    """kubeflow/trainer#1492"""
    with pytest.raises(Stop):
        apply.status(Seen(replace=errors.NotFound("gone")).port, dict(JOB.raw), RESOURCE, {})


@pytest.mark.parametrize(
    ("subject", "same"), [(None, False), ("", True), ("x", True)], ids=["the message", "the reason", "one subject"]
)
def test_what_makes_two_events_the_same(subject, same):
    """VictoriaMetrics/operator#2113"""
    first, second = (apply.event_manifest(JOB, Event("Warning", "R", text, subject), NOW) for text in ("a", "b"))
    assert first == apply.event_manifest(JOB, Event("Warning", "R", "a", subject), NOW)
    assert (first["metadata"]["name"] == second["metadata"]["name"]) is same
    assert first["involvedObject"]["uid"] == "job-uid"


def test_a_repeated_event_is_counted_and_says_the_latest():
    """apache/spark-kubernetes-operator#847"""
    seen = Seen(create=TAKEN, get={"count": 4}, patch={"count": 5})
    apply.event(seen.port, JOB, Event("Warning", "R", "used: pods=2", ""), NOW)
    assert [verb for verb, *_ in seen.kube.calls] == ["create", "get", "patch"]
    change = seen.kube.calls[-1][2][0]
    assert (change["count"], change["message"]) == (5, "used: pods=2")


def test_a_notice_is_not_counted():
    seen = Seen(create=TAKEN)
    apply.notice(seen.port, JOB, Event("Warning", "R", "m"), NOW)
    assert [verb for verb, *_ in seen.kube.calls] == ["create"]
