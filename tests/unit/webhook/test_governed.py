"""Reviews with policies: what is filled in, refused, warned of, recorded and counted."""

import base64

import jsonpatch
import orjson
import pytest

from policy.compile import compiled
from policy.model import PolicySet
from schemas import kinds
from webhook import accounts, policy_review, review, scale
from webhook.governed import LONG_AGO, Ground
from webhook.mutate import mutate
from webhook.validate import validate

POD = {"spec": {"containers": [{"name": "main", "image": "i"}]}}
CAP = {"limits": {"replicas": {"max": 2}, "ttlSecondsAfterFinished": {"required": True, "max": 60}}}
FILL = {"defaults": {"runPolicy": {"cleanPodPolicy": "All", "ttlSecondsAfterFinished": 30}}}


def ground(*specs, **fields):
    policies = [compiled({"metadata": {"name": f"p{index}"}, "spec": spec}) for index, spec in enumerate(specs)]
    return Ground(PolicySet(policies), {"team": "a"}, LONG_AGO, **fields)


def job(replicas=1, **run_policy):
    spec = {"replicaSpecs": {"Worker": {"replicas": replicas, "template": POD}}, "runPolicy": run_policy}
    return {"metadata": {"name": "job", "namespace": "ns"}, "spec": spec}


def asked(obj, old=None, **fields):
    request = {
        "uid": "u-1",
        "kind": {"group": "signalbox.dev", "version": "v1", "kind": "TrainingJob"},
        "operation": "UPDATE" if old else "CREATE",
        "object": obj,
        "oldObject": old,
        "namespace": "ns",
        "userInfo": {"username": "ann", "groups": ["devs"]},
        **fields,
    }
    return review.read(orjson.dumps({"apiVersion": review.API_VERSION, "kind": "AdmissionReview", "request": request}))


def response(asked_for, verdict):
    return orjson.loads(review.answer(asked_for, verdict))["response"]


def test_policies_fill_in_before_the_built_in_defaults():
    told = response(asked(job()), mutate(asked(job()), ground(FILL)))
    patched = jsonpatch.JsonPatch(orjson.loads(base64.b64decode(told["patch"]))).apply(job())
    assert patched["spec"]["runPolicy"] == {"cleanPodPolicy": "All", "ttlSecondsAfterFinished": 30}
    assert orjson.loads(told["auditAnnotations"]["policy-defaults"])[0] == {
        "path": "spec.runPolicy.cleanPodPolicy",
        "value": "All",
        "policy": "p0",
    }
    again = mutate(asked(patched, patched), ground(FILL))
    assert (again.patch, again.applied) == ((), ())


def test_a_refusal_lists_faults_and_violations_in_one_answer():
    bad = asked(job(3, backoffLimit="x"))
    told = response(bad, mutate(bad, ground(CAP)))
    assert [cause["field"] for cause in told["status"]["details"]["causes"]] == [
        "spec.replicaSpecs",
        "spec.runPolicy.backoffLimit",
        "spec.runPolicy.ttlSecondsAfterFinished",
    ]
    assert "must be at most 2 replicas in all, says limit replicas of policy p0 (got 3)" in told["status"]["message"]


def test_mutate_and_validate_agree():
    for number in (1, 3):
        request = asked(job(number, ttlSecondsAfterFinished=1))
        assert mutate(request, ground(CAP)).faults == validate(request, ground(CAP)).faults


@pytest.mark.parametrize(
    "change",
    [{"suspend": True}, {}],
)
def test_an_update_of_suspend_or_metadata_is_never_refused(change):
    """kubernetes-sigs/kueue: a job must be suspended whatever policies say by now."""
    old, new = job(3), job(3, **change)
    new["metadata"]["labels"] = {"a": "b"}
    for judge in (mutate, validate):
        assert judge(asked(new, old), ground(CAP, {"rules": [{"name": "no", "expression": "false"}]})).allowed
        assert judge(asked(new, old), ground(CAP, loaded=False)).allowed


def test_what_the_stored_job_broke_is_a_warning():
    verdict = validate(asked(job(3, backoffLimit=2), job(3)), ground(CAP))
    assert verdict.allowed
    assert any("at most 2 replicas" in warning for warning in verdict.warnings)
    assert not validate(asked(job(4, backoffLimit=2), job(3)), ground(CAP)).allowed


def test_policies_that_are_not_read_yet_refuse():
    [fault] = validate(asked(job()), ground(loaded=False)).faults
    assert "try again" in fault.must


def test_a_rule_that_fails_adds_nothing_to_an_invalid_job():
    rule = {"rules": [{"name": "r", "expression": "object.spec.nope == 1"}]}
    assert [fault.path for fault in validate(asked(job(backoffLimit="x")), ground(rule)).faults] == [
        "spec.runPolicy.backoffLimit"
    ]
    [fault] = validate(asked(job()), ground(rule)).faults
    assert "must be evaluated" in fault.must


def test_scaling_beyond_a_limit_is_refused():
    wanted = {"spec": {"replicas": 3}}
    kind = kinds.TRAINING_JOB
    request = review.Review(
        "u", "UPDATE", "scale", kind, "autoscaling", "Scale", "ns", "job", wanted, None, dry_run=False
    )
    stored = job(1, ttlSecondsAfterFinished=1)
    assert scale.judge(request, lambda *_: stored, ground(CAP)).faults[0].path == "spec.replicaSpecs"
    assert scale.judge(request, lambda *_: stored, ground()).allowed


def policy_review_of(value, operation="CREATE"):
    kind = {"group": "signalbox.dev", "version": "v1", "kind": "TrainingPolicy"}
    return policy_review.judge(asked(value, kind=kind, operation=operation), ground())


def test_an_invalid_policy_is_refused_with_the_place():
    policy = {"apiVersion": "signalbox.dev/v1", "kind": "TrainingPolicy", "metadata": {"name": "p"}}
    bad = {**policy, "spec": {"rules": [{"name": "r", "expression": "object.spec."}]}}
    [fault] = policy_review_of(bad).faults
    assert fault.path == "spec.rules[0].expression"
    assert "line 1, column 13" in fault.must
    assert policy_review_of({**policy, "spec": {}}).allowed
    assert policy_review_of(bad, "DELETE").allowed


AUDITED = {**CAP, "enforcement": "Audit"}
NOTHING = {"limits": {"replicas": {"max": 9}}}


@pytest.mark.parametrize(
    ("path", "spec", "number", "word", "kept", "counted"),
    [
        ("mutate", FILL, 1, "defaulted", True, {("p0", "defaulted"): 1}),
        ("mutate", {**FILL, "defaultsMode": "Audit"}, 1, "allowed", True, {("p0", "defaulted"): 1}),
        ("mutate", NOTHING, 1, "", True, {}),
        ("mutate", AUDITED, 3, "", True, {}),
        ("mutate", CAP, 3, "refused", True, {("p0", "matched"): 1, ("p0", "denied"): 1}),
        ("validate", FILL, 1, "allowed", False, {("p0", "matched"): 1}),
        ("validate", CAP, 3, "refused", True, {("p0", "matched"): 1, ("p0", "denied"): 1}),
        ("validate", {**CAP, "enforcement": "Warn"}, 3, "warned", False, {("p0", "matched"): 1, ("p0", "warned"): 1}),
        ("validate", AUDITED, 3, "allowed", False, {("p0", "matched"): 1, ("p0", "audited"): 1}),
    ],
)
def test_what_is_recorded_and_counted(path, spec, number, word, kept, counted):
    request = asked(job(number))
    verdict = (mutate if path == "mutate" else validate)(request, ground(spec))
    record = accounts.admission(path, request, verdict, LONG_AGO)
    assert (record.verdict, record.object is not None) == (word, kept)
    assert (record.user, record.namespace, record.name, record.kind) == ("ann", "ns", "job", "TrainingJob")
    assert bool(record.errors) is bool(verdict.judgement.violations)
    assert bool(record.defaults) is (word == "defaulted")
    assert accounts.counts(path, request, verdict) == counted


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        (job(1), job(2), "allowed"),
        (job(1), job(1), None),
        (job(1), {**job(1), "metadata": {**job(1)["metadata"], "labels": {"a": "b"}}}, None),
        (job(1), {**job(2), "metadata": {**job(1)["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}, None),
    ],
)
def test_an_update_is_recorded_when_it_changes_the_spec(old, new, word):
    request = asked(new, old)
    record = accounts.admission("validate", request, validate(request, ground(NOTHING)), LONG_AGO)
    assert (record and record.verdict) == word
    assert record is None or record.object == new
    assert accounts.admission("mutate", request, mutate(request, ground(NOTHING)), LONG_AGO) is None


def test_dry_runs_leave_no_trace():
    request = asked(job(3), dryRun=True)
    verdict = mutate(request, ground(CAP))
    assert not verdict.allowed
    assert accounts.admission("mutate", request, verdict, LONG_AGO) is None
    assert not accounts.counts("mutate", request, verdict)
