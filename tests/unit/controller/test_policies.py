"""The controller's part in policies: who may run, who waits and why, and what stored jobs break."""

from datetime import UTC, datetime

import pytest

from controller.decide import decide
from controller.plan import Create, Snapshot
from controller.running import Places
from controller.scan import BY_USER, Findings, look, readiness, scan_status
from policy.catalog import Catalog, Contents
from schemas import defaults, kinds
from schemas.conditions import MAX_RUNNING_JOBS, find

KIND = kinds.TRAINING_JOB
NOW = datetime(2026, 6, 1, tzinfo=UTC)
STARTED = {"startTime": "2026-05-01T00:00:00Z"}
ENDED = {**STARTED, "conditions": [{"type": "Succeeded", "status": "True"}]}
POD = {"spec": {"containers": [{"name": "main", "image": "i"}]}}


def job(name, status=None, namespace="ns", **run_policy):
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": name,
        "creationTimestamp": f"2026-01-01T00:00:0{name[-1]}Z",
    }
    spec = {"replicaSpecs": {"Worker": {"template": POD}}, "runPolicy": run_policy}
    return {"metadata": metadata, "spec": spec, "status": status or {}}


def leaving(**counts):
    """A job that is being suspended: its start is forgotten, its pods are still there."""
    rows = [{"type": "Pending", "status": "True", "reason": "JobSuspending"}]
    return {"conditions": rows, "replicaStatuses": {"Worker": counts}}


def stored(name, **spec):
    metadata = {"name": name, "generation": 1, "resourceVersion": "1"}
    return {"apiVersion": "signalbox.dev/v1", "kind": "TrainingPolicy", "metadata": metadata, "spec": spec}


def contents(*policies):
    return Catalog().read(policies)


def told(*jobs):
    """Places that have seen these jobs."""
    places = Places()
    for item in jobs:
        places.saw(KIND, item)
    return places


def named(items):
    return [item["metadata"]["name"] for _, item in items]


ONE = contents(stored("one", limits={"maxRunningJobs": 1})).policies


@pytest.mark.parametrize(
    ("other", "waits"),
    [
        (job("a0"), False),
        (job("a0", STARTED), True),
        (job("a0", ENDED), False),
        (job("a0", STARTED, suspend=True), False),
        (job("a0", leaving(active=1), suspend=True), True),
        (job("a0", leaving(pending=2), suspend=True), True),
        (job("a0", leaving(active=1)), True),
        (job("a0", leaving(failed=1), suspend=True), False),
        (job("a0", {**leaving(active=1), **ENDED}), False),
        (job("a0", STARTED, namespace="other"), False),
    ],
)
def test_a_place_is_free_when_no_other_job_runs_in_the_namespace(other, waits):
    mine = job("b1")
    places = told(other, mine)
    assert bool(places.held(KIND, mine, ONE, {})) is waits


def test_two_jobs_at_once_get_one_place():
    """Neither has a status yet: the place that was given counts."""
    first, second = job("a0"), job("b1")
    places = told(first, second)
    assert places.held(KIND, first, ONE, {}) == ""
    said = places.held(KIND, second, ONE, {})
    assert said == "Policy one lets 1 job run at once in namespace ns, and 1 job runs."
    assert places.held(KIND, first, ONE, {}) == ""
    assert named(places.waiting()) == named(places.next("ns")) == ["b1"]
    assert places.saw(KIND, {**first, "status": ENDED})
    assert places.held(KIND, second, ONE, {}) == ""
    assert places.waiting() == places.next("ns") == []


def test_a_job_that_runs_is_never_held():
    running = [job(f"a{index}", STARTED) for index in range(3)]
    places = told(*running)
    assert all(places.held(KIND, item, ONE, {}) == "" for item in running)


def test_who_waits_waits_the_oldest_first():
    jobs = [job(name) for name in ("c3", "a1", "b2")]
    places = told(*jobs, job("z0", STARTED))
    assert all(places.held(KIND, item, ONE, {}) for item in jobs)
    assert named(places.waiting()) == ["a1", "b2", "c3"]
    assert named(places.next("ns")) == ["a1"]
    assert places.next("other") == []


def test_a_free_place_wakes_the_oldest_of_each_policy():
    two = contents(
        stored("small", limits={"maxRunningJobs": 1}, match={"objectSelector": {"matchLabels": {"size": "small"}}}),
        stored("large", limits={"maxRunningJobs": 1}, match={"objectSelector": {"matchLabels": {"size": "large"}}}),
    ).policies

    def sized(name, size, status=None):
        item = job(name, status)
        return {**item, "metadata": {**item["metadata"], "labels": {"size": size}}}

    waiting = [sized("a1", "small"), sized("b2", "small"), sized("c3", "large"), sized("d4", "large")]
    places = told(sized("y8", "small", STARTED), sized("z9", "large", STARTED), *waiting)
    assert all(places.held(KIND, item, two, {}) for item in waiting)
    assert sorted(named(places.next("ns"))) == ["a1", "c3"]


@pytest.mark.parametrize(
    ("status", "goes_on"),
    [({}, False), (STARTED, True), (ENDED, True), ({"conditions": [{"type": "Pending", "status": "True"}]}, False)],
)
def test_others_go_on_when_a_job_starts_in_its_place_or_leaves_it(status, goes_on):
    mine = job("a0")
    places = told(mine)
    assert places.held(KIND, mine, ONE, {}) == ""
    assert places.saw(KIND, {**mine, "status": status}) is goes_on
    assert not places.saw(KIND, {**mine, "status": status})


def test_a_job_that_is_gone_leaves_its_place_once():
    mine = job("a0", STARTED)
    places = told(mine)
    assert places.lost(KIND, mine)
    assert not places.lost(KIND, mine)


def snapshot(item, held):
    return Snapshot(job=defaults.default(KIND, item), held=held)


def test_a_held_job_is_pending_with_the_reason_and_gets_no_children():
    plan = decide(KIND, snapshot(job("a0"), "Policy one says so."), NOW)
    assert plan.actions == ()
    pending = find(plan.status["conditions"], "Pending")
    assert (pending["status"], pending["reason"], pending["message"]) == (
        "True",
        MAX_RUNNING_JOBS,
        "Policy one says so.",
    )
    assert "startTime" not in plan.status
    assert plan.wake is not None
    again = decide(KIND, snapshot({**job("a0"), "status": plan.status}, "Policy one says so."), NOW)
    assert again.status == plan.status


def test_it_starts_when_it_is_held_no_more():
    waiting = decide(KIND, snapshot(job("a0"), "wait"), NOW).status
    plan = decide(KIND, snapshot({**job("a0"), "status": waiting}, ""), NOW)
    assert any(isinstance(action, Create) for action in plan.actions)
    assert find(plan.status["conditions"], "Pending")["reason"] == "JobPending"


def test_a_job_that_has_started_is_not_held():
    plan = decide(KIND, snapshot(job("a0", STARTED), "too late"), NOW)
    assert any(isinstance(action, Create) for action in plan.actions)


POLICIES = (
    stored("cap", limits={"ttlSecondsAfterFinished": {"required": True}}),
    stored("people", match={"users": ["ann"]}, limits={"ttlSecondsAfterFinished": {"required": True}}),
)


def test_a_look_at_stored_jobs():
    found = Findings()
    page = [(KIND, job("a0")), (KIND, job("b1", ttlSecondsAfterFinished=1))]
    known = contents(*POLICIES)
    look(found, page, known.policies, {"ns": {}}, NOW)
    assert (found.jobs["cap"], found.violating["cap"]) == (2, 1)
    [record] = found.records
    assert (record.name, record.operation, record.verdict, record.policy) == ("a0", "SCAN", "warned", "cap")
    assert "must be set, says limit ttlSecondsAfterFinished of policy cap" in record.errors[0]
    cap, people = known.policies.all
    assert scan_status(cap, found, NOW)["violating"] == 1
    assert scan_status(people, found, NOW)["notEvaluated"] == BY_USER


def test_ready_says_whether_a_policy_is_in_force():
    bad, good = stored("bad", priority="x"), stored("good")
    known = contents(bad, good)
    assert [policy.name for policy in known.policies.all] == ["good"]
    [row] = readiness(bad, known, NOW)["conditions"]
    assert (row["status"], row["reason"]) == ("False", "Invalid")
    assert 'spec.priority: must be an integer (got "x")' in row["message"]
    wanted = readiness(good, known, NOW)
    assert wanted["conditions"][0]["status"] == "True"
    assert readiness({**good, "status": wanted}, known, NOW) == {}


def test_exceptions_that_have_ended_are_reported():
    ended = {"match": {"namespaces": ["x"]}, "reason": "old", "until": "2026-01-01T00:00:00Z"}
    policy = stored("p", exceptions=[ended])
    assert readiness(policy, contents(policy), NOW)["expiredExceptions"] == ["exceptions[0]: old"]


def test_no_policies_hold_nobody():
    assert Places().held(KIND, job("a0"), Contents().policies, None) == ""
