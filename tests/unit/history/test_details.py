"""What a job and the webhook tell beside the seed's rows."""

from datetime import UTC, datetime, timedelta, timezone

import orjson
import pytest

from history import details
from schemas.records import Admission

WHEN = datetime(2026, 11, 30, 12, tzinfo=UTC)
NAIVE = WHEN.replace(tzinfo=None)


def answer(**changed):
    submitted = {"kind": "TrainingJob", "metadata": {"name": "train", "managedFields": [1]}, "spec": {}, "status": {}}
    plain = {
        "time": WHEN,
        "review": "review-1",
        "uid": "",
        "user": "ann",
        "groups": ("devs",),
        "namespace": "team",
        "name": "train",
        "kind": "TrainingJob",
        "operation": "CREATE",
        "verdict": "refused",
        "errors": ("spec.x: must be set",),
        "object": submitted,
    }
    return Admission(**(plain | changed))


def test_conditions_are_transitions(make_job, moment):
    (created, running) = details.conditions(make_job("a", 1, ("Running", 10)))

    assert (created.type, created.gmt_changed, created.status) == ("Created", moment(0), "True")
    assert (running.job_id, running.type, running.gmt_changed) == ("a", "Running", moment(10))
    assert (running.reason, running.message) == ("JobRunning", "said so")


# a lost pod has no UID, no exit code and no container (kubernetes: a node that is gone)
@pytest.mark.parametrize(
    ("line", "name", "code", "counted"),
    [
        ({"uid": "p1", "exitCode": 137, "counted": True, "reason": "OOMKilled"}, "p1", 137, 1),
        ({"counted": False}, "Worker/3/2026-11-30T12:00:05Z", None, 0),
        ({"counted": "yes", "exitCode": "1"}, "Worker/3/2026-11-30T12:00:05Z", None, None),
    ],
)
def test_restarts(make_job, moment, line, name, code, counted):
    job = make_job("a")
    job["status"]["restartHistory"] = [{"time": "2026-11-30T12:00:05Z", "replicaType": "Worker", "index": 3, **line}]
    (restart,) = details.restarts(job)

    assert (restart.restart_id, restart.exit_code, restart.counted) == (name, code, counted)
    assert (restart.gmt_restarted, restart.replica_type, restart.replica_index) == (moment(5), "Worker", 3)


@pytest.mark.parametrize("thing", [{}, {"status": {"conditions": [{"type": 1}], "restartHistory": [None, {}]}}])
def test_half_an_object_tells_nothing(thing):
    assert [*details.conditions(thing), *details.restarts(thing)] == []
    assert details.stored(thing) is None


def test_an_answer_is_stored_in_utc(moment):
    record = details.admission(answer(time=WHEN.astimezone(timezone(timedelta(hours=5)))))

    assert (record.gmt_created, record.job_id, record.username, record.verdict) == (NAIVE, None, "ann", "refused")
    assert (orjson.loads(record.errors), orjson.loads(record.user_groups)) == (["spec.x: must be set"], ["devs"])
    assert record.defaults is None


def test_an_answer_that_is_too_long_is_cut_between_two_faults():
    record = details.admission(answer(errors=("\0x" * 1000,) * 100))

    assert len(record.errors) <= 65_535
    assert set(orjson.loads(record.errors)) == {"x" * 1000}


@pytest.mark.parametrize(("uid", "generation"), [("", 5), ("a", 5), ("a", "x")])
def test_a_submission_is_known_by_its_review(uid, generation):
    """A refused update carries the generation that is stored: it must not take the place of what is."""
    obj = answer().object | {"metadata": {"name": "train", "generation": generation, "managedFields": [1]}}
    record = details.submitted(answer(uid=uid, object=obj))

    assert (record.uid, record.generation) == ("review-1", 0)
    assert (record.name, record.username) == ("train", "ann")
    assert orjson.loads(record.object) == {
        "kind": "TrainingJob",
        "metadata": {"name": "train", "generation": generation},
        "spec": {},
    }


def test_equal_specs_have_equal_hashes(make_job):
    one, other = make_job("a"), make_job("b", status=None)
    other["spec"] = dict(reversed(other["spec"].items()))

    assert details.stored(one).spec_hash == details.stored(other).spec_hash
    assert details.stored(one | {"spec": {}}).spec_hash != details.stored(one).spec_hash


def test_an_object_that_is_no_json_or_too_large_is_not_kept(make_job):
    assert details.stored(make_job("a") | {"spec": {"x": {1, 2}}}) is None
    assert details.stored(make_job("a") | {"spec": "x" * details.LARGEST_OBJECT}) is None


def test_no_value_of_a_variable_is_kept(make_job):
    """People put tokens there: neither the spec nor kubectl's copy of it may tell."""
    job = make_job("a", annotations={details.LAST_APPLIED: "s3cret", "team": "x"})
    container = job["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    source = {"secretKeyRef": {"name": "s", "key": "value"}}
    container["env"] = [{"name": "TOKEN", "value": "s3cret"}, {"name": "OTHER", "valueFrom": source}]
    kept = details.stored(job).object

    assert "s3cret" not in kept
    found = orjson.loads(kept)
    variables = found["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["env"]
    assert variables == [{"name": "TOKEN", "value": "(not kept)"}, {"name": "OTHER", "valueFrom": source}]
    assert found["metadata"]["annotations"] == {"team": "x"}
