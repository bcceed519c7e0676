"""Matching, rules, exceptions, enforcement, and what an update may keep."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy.compile import compiled
from policy.evaluate import filled, judged
from policy.model import PolicySet
from policy.request import Request
from policy.verdicts import annotations
from schemas import kinds

TTL = {"ttlSecondsAfterFinished": {"max": 60}}
TOO_LONG = {"ttlSecondsAfterFinished": 61}


@pytest.mark.parametrize(
    ("match", "holds"),
    [
        ({}, True),
        ({"kinds": ["TrainingJob"]}, True),
        ({"kinds": ["PyTorch*"]}, False),
        ({"namespaces": ["team-*"]}, True),
        ({"namespaces": ["x", "team-a"]}, True),
        ({"namespaces": ["*-a"]}, True),
        ({"namespaces": ["team"]}, False),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}}, False),
        ({"namespaceSelector": {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}}, True),
        ({"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}}, False),
        ({"objectSelector": {"matchExpressions": [{"key": "size", "operator": "In", "values": ["big"]}]}}, True),
        ({"objectSelector": {"matchLabels": {"size": "small"}}}, False),
        ({"users": ["ann"]}, True),
        ({"users": ["bob"]}, False),
        ({"groups": ["dev*"]}, True),
        ({"groups": ["ops"]}, False),
        ({"serviceAccounts": ["*/*"]}, False),
        ({"kinds": ["TrainingJob"], "namespaces": ["other"]}, False),
    ],
)
def test_match_and_exclude(good, job, request_of, now, match, holds):
    request = request_of(job(run_policy=TOO_LONG, labels={"size": "big"}))
    assert bool(judged(PolicySet([good(match=match, limits=TTL)]), request, now).violations) is holds
    if match:
        policies = PolicySet([good(exclude=match, limits=TTL)])
        assert bool(judged(policies, request, now).violations) is not holds


def test_service_accounts(good, job, request_of, now):
    policies = PolicySet([good(match={"serviceAccounts": ["ci/*"]}, limits=TTL)])
    request = request_of(job(run_policy=TOO_LONG), user="system:serviceaccount:ci:runner")
    assert judged(policies, request, now).matched == ("p",)


@pytest.mark.parametrize(("failure", "refused"), [("Fail", 1), ("Ignore", 0)])
def test_unknown_labels_follow_the_failure_policy(good, job, request_of, now, failure, refused):
    selector = {"namespaceSelector": {"matchLabels": {"team": "a"}}}
    policies = PolicySet([good(failurePolicy=failure, match=selector, limits=TTL)])
    assert policies.asks_for_namespace_labels
    found = judged(policies, request_of(job(), namespace_labels=None), now)
    assert len(found.faults) == refused
    assert all("labels can be read" in fault.must for fault in found.faults)


def test_a_refusal_names_policy_rule_field_limit_and_value(good, job, request_of, now):
    found = judged(PolicySet([good("short", limits=TTL)]), request_of(job(run_policy=TOO_LONG)), now)
    assert [str(fault) for fault in found.faults] == [
        "spec.runPolicy.ttlSecondsAfterFinished: must be at most 60, "
        "says limit ttlSecondsAfterFinished of policy short (got 61)"
    ]


RULE = {"name": "r", "expression": "object.spec.runPolicy.ttlSecondsAfterFinished <= params.most"}


def test_rules_read_the_names_of_admission_policies(broken, job):
    expression = (
        "object.metadata.name == 'job' && oldObject == null && request.operation == 'CREATE' && "
        "request.userInfo.username == 'ann' && 'devs' in request.userInfo.groups && "
        "namespaceObject.metadata.labels.team == 'a' && params.most == 60 && request.kind.kind == 'TrainingJob'"
    )
    assert broken({"params": {"most": 60}, "rules": [{"name": "r", "expression": expression}]}, job()) == []


@pytest.mark.parametrize(
    ("more", "must"),
    [
        ({}, "must satisfy object.spec.runPolicy.ttlSecondsAfterFinished <= params.most"),
        ({"message": "too\nlong"}, "too long"),
        ({"message": "m", "messageExpression": "'at most ' + string(params.most)"}, "at most 60"),
        ({"message": "m", "messageExpression": "object.nope"}, "m"),
    ],
)
def test_messages(broken, job, more, must):
    spec = {"params": {"most": 60}, "rules": [{**RULE, **more, "fieldPath": ".spec.runPolicy"}]}
    assert broken(spec, job(run_policy=TOO_LONG)) == [("r", "spec.runPolicy", must)]


@pytest.mark.parametrize(("failure", "found"), [("Fail", 1), ("Ignore", 0)])
def test_a_rule_that_cannot_be_evaluated(broken, job, failure, found):
    spec = {"failurePolicy": failure, "params": {"most": 60}, "rules": [RULE]}
    said = broken(spec, job())
    assert len(said) == found
    assert all("must be evaluated: Key not found" in must for _, _, must in said)


def test_no_rule_holds_a_review_for_long(broken, job):
    """A loop over all pairs of pairs ends with an error, not after a minute."""
    numbers = "[" + ",".join(map(str, range(100))) + "]"
    loop = f"{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, a + b + c >= 0)))"
    [(_, _, must)] = broken({"rules": [{"name": "r", "expression": loop}]}, job())
    assert "Iteration budget exceeded" in must


def test_a_late_review_evaluates_no_more_rules(good, job, request_of, now):
    late = iter([False, True])
    policies = PolicySet([good(rules=[{"name": "a", "expression": "true"}, {"name": "b", "expression": "true"}])])
    found = judged(policies, request_of(job()), now, lambda: next(late))
    assert [(item.rule, item.must) for item in found.violations] == [
        ("b", "must be evaluated: the review's time is up")
    ]


EXCEPTION = {"match": {"namespaces": ["team-a"]}, "reason": "migration"}


@pytest.mark.parametrize(
    ("exception", "violations"),
    [
        ({}, 0),
        ({"rules": ["ttlSecondsAfterFinished"]}, 0),
        ({"rules": ["backoffLimit"]}, 1),
        ({"until": "2026-06-01T00:00:01Z"}, 0),
        ({"until": "2026-06-01T00:00:00Z"}, 1),
        ({"match": {"namespaces": ["team-b"]}}, 1),
    ],
)
def test_exceptions(good, job, request_of, now, exception, violations):
    policy = good(limits=TTL, exceptions=[{**EXCEPTION, **exception}])
    found = judged(PolicySet([policy]), request_of(job(run_policy=TOO_LONG)), now)
    assert len(found.violations) == violations
    assert found.expired == (("p/exceptions[0]: migration",) if exception.get("until", "").endswith("00Z") else ())


@pytest.mark.parametrize(
    ("enforcement", "faults", "warnings", "audited"), [("Enforce", 1, 0, 0), ("Warn", 0, 1, 0), ("Audit", 0, 0, 1)]
)
def test_enforcement(good, job, request_of, now, enforcement, faults, warnings, audited):
    policies = PolicySet([good(enforcement=enforcement, limits=TTL)])
    found = judged(policies, request_of(job(run_policy=TOO_LONG)), now)
    assert (len(found.faults), len(found.warnings), len(found.of("audited"))) == (faults, warnings, audited)
    assert '"limit":60' in annotations((), found)["policy-violations"]


@pytest.mark.parametrize(("before", "refused"), [(60, True), (61, False), (90, False), (70, False), (None, True)])
def test_what_the_stored_job_broke_is_a_warning(good, job, request_of, now, before, refused):
    old = job(run_policy={} if before is None else {"ttlSecondsAfterFinished": before})
    found = judged(PolicySet([good(limits=TTL)]), request_of(job(run_policy=TOO_LONG), old=old), now)
    assert bool(found.faults) is refused
    assert bool(found.warnings) is not refused


def test_warnings_are_short(good, job, request_of, now):
    policies = PolicySet([good("a-policy-with-a-long-name-for-a-test", enforcement="Warn", limits={"images": ["x"]})])
    [warning] = judged(policies, request_of(job()), now).warnings
    assert len(warning) <= 120
    assert "a-policy-with-a-long-name-for-a-test" in warning


SPECS = st.fixed_dictionaries(
    {},
    optional={
        "limits": st.sampled_from([TTL, {"replicas": {"min": 9}}, {"images": ["x"]}]),
        "defaults": st.sampled_from([{"runPolicy": {"backoffLimit": 1}}, {"replicas": {"*": {"replicas": 2}}}]),
        "rules": st.sampled_from([[{"name": "r", "expression": "false"}], [{"name": "r", "expression": "object.x"}]]),
        "failurePolicy": st.sampled_from(["Fail", "Ignore"]),
    },
)
JOB = {"metadata": {"name": "j"}, "spec": {"runPolicy": TOO_LONG, "replicaSpecs": {"Worker": {}}}}
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def answer(policies, value):
    """All that the job's author can notice."""
    found = filled(policies, Request(kinds.TRAINING_JOB, value))
    verdict = judged(policies, Request(kinds.TRAINING_JOB, found.object), NOW)
    return found.object, [str(fault) for fault in verdict.faults], verdict.warnings


def policy_of(index, spec):
    return compiled({"metadata": {"name": f"p{index}"}, "spec": spec})


@given(st.lists(SPECS, max_size=3), SPECS)
def test_audit_never_changes_an_answer(others, audited):
    policies = [policy_of(index, spec) for index, spec in enumerate(others)]
    silent = policy_of(9, {**audited, "enforcement": "Audit", "defaultsMode": "Audit", "priority": 9})
    assert answer(PolicySet([*policies, silent]), JOB) == answer(PolicySet(policies), JOB)


@given(st.lists(st.tuples(st.integers(-1, 1), SPECS), max_size=3))
def test_only_priority_and_name_order_policies(specs):
    policies = [policy_of(index, {**spec, "priority": priority}) for index, (priority, spec) in enumerate(specs)]
    answers = [answer(PolicySet(order), JOB) for order in itertools.permutations(policies)]
    assert all(found == answers[0] for found in answers)


def test_the_index_loses_no_policy(good, job, request_of, now):
    """Whatever a policy matches by, a set finds it."""
    matches = [
        {"namespaces": ["team-*"]}, {"namespaces": ["*"]}, {"namespaceSelector": {"matchLabels": {"team": "a"}}},
        {"objectSelector": {"matchLabels": {"size": "big"}}}, {"users": ["a*"]}, {"groups": ["devs"]},
        {"kinds": ["Training*"]}, {"objectSelector": {"matchExpressions": [{"key": "size", "operator": "Exists"}]}}, {},
    ]  # fmt: skip
    policies = [good(f"p{index}", match=match, limits=TTL) for index, match in enumerate(matches)]
    policies += [good(f"other{index}", match={"namespaces": [f"other-{index}"]}) for index in range(50)]
    found = judged(PolicySet(policies), request_of(job(labels={"size": "big"})), now)
    assert found.matched == tuple(f"p{index}" for index in range(len(matches)))
    assert len(PolicySet(policies).candidates(request_of(job(labels={"size": "big"})))) == len(matches)


def test_until_is_a_moment(good, now):
    policy = good(exceptions=[{**EXCEPTION, "until": "2026-06-01T02:00:00+02:00"}])
    assert policy.expired(now)
    assert not policy.expired(now - timedelta(seconds=1))
