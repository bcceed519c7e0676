"""A policy that cannot be meant is refused, with the path of every fault."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy.compile import check, compiled
from policy.model import Invalid, Policy

RULE = {"name": "r", "expression": "true"}
BAD = [
    ({"prioritty": 1}, "spec.prioritty", "did you mean priority?"),
    ({"limits": {"gpus": 1}}, "spec.limits.gpus", "must be a known field"),
    ({"enforcement": "enforce"}, "spec.enforcement", "must be one of Enforce, Warn, Audit"),
    ({"priority": "1"}, "spec.priority", "must be an integer"),
    ({"limits": {"replicas": {"min": 5, "max": 4}}}, "spec.limits.replicas.min", "must be at most max, 4"),
    ({"limits": {"replicaTypes": {"PS": {"min": 2, "max": 1}}}}, "spec.limits.replicaTypes.PS.min", "at most max, 1"),
    ({"limits": {"ttlSecondsAfterFinished": {"min": 9, "max": 8}}}, "spec.limits.ttlSecondsAfterFinished.min", "8"),
    (
        {"limits": {"jobResources": {"nvidia.com/gpu": {"min": "2k", "max": 1}}}},
        "spec.limits.jobResources[nvidia.com/gpu].min",
        "at most max, 1",
    ),
    (
        {"limits": {"podResources": {"cpu": {"max": "-1"}}}},
        "spec.limits.podResources.cpu.max",
        "must be a quantity ≥ 0",
    ),
    ({"limits": {"podResources": {"cpu": {"max": "lots"}}}}, "spec.limits.podResources.cpu.max", "must be a quantity"),
    ({"limits": {"images": []}}, "spec.limits.images", "must have an entry, or be left out"),
    ({"limits": {"forbid": ["HostPID"]}}, "spec.limits.forbid[0]", "must be one of HostNetwork"),
    ({"limits": {"requiredLabels": ["-team"]}}, "spec.limits.requiredLabels[0]", "must be a key, or key=value"),
    ({"match": {"kinds": ["PytorchJob"]}}, "spec.match.kinds[0]", "must match one of TrainingJob, PyTorchJob"),
    ({"match": {"namespaces": []}}, "spec.match.namespaces", "must have an entry"),
    ({"match": {"serviceAccounts": ["ci"]}}, "spec.match.serviceAccounts[0]", "must be namespace/name"),
    (
        {"match": {"objectSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}},
        "spec.match.objectSelector.matchExpressions[0].values",
        "must be set: the operator is In",
    ),
    ({"exclude": {}}, "spec.exclude", "must say which jobs"),
    (
        {"match": {"users": ["ann"]}, "limits": {"maxRunningJobs": 1}},
        "spec.match.users",
        "the controller does not know the user",
    ),
    ({"exclude": {"groups": ["g"]}, "limits": {"maxRunningJobs": 1}}, "spec.exclude.groups", "limits.maxRunningJobs"),
    ({"rules": [RULE, RULE]}, "spec.rules[1].name", "must be the only rule of this name"),
    ({"rules": [{"name": "images", "expression": "true"}]}, "spec.rules[0].name", "no limit's field"),
    ({"rules": [{"name": "R x", "expression": "true"}]}, "spec.rules[0].name", "must be a DNS label"),
    (
        {"rules": [{"name": "r", "expression": "object.spec."}]},
        "spec.rules[0].expression",
        "line 1, column 13: Syntax error",
    ),
    (
        {"rules": [{"name": "r", "expression": "true &&\n 1 + 'a' == 2"}]},
        "spec.rules[0].expression",
        "line 2, column 4: found no matching overload for '_+_' applied to '(int, string)'",
    ),
    (
        {"rules": [{"name": "r", "expression": "objekt.spec.x"}]},
        "spec.rules[0].expression",
        "undeclared reference to 'objekt",
    ),
    (
        {"rules": [{"name": "r", "expression": "size('a')"}]},
        "spec.rules[0].expression",
        "must give true or false, not INT",
    ),
    ({"rules": [{**RULE, "messageExpression": "1"}]}, "spec.rules[0].messageExpression", "must give a string, not INT"),
    ({"rules": [{**RULE, "fieldPath": "spec..x"}]}, "spec.rules[0].fieldPath", "must be a path"),
    ({"rules": [{"name": "r"}]}, "spec.rules[0].expression", "must be set"),
    ({"exceptions": [{"match": {"kinds": ["TFJob"]}}]}, "spec.exceptions[0].reason", "must be set"),
    ({"exceptions": [{"match": {}, "reason": "x"}]}, "spec.exceptions[0].match", "must say which jobs"),
    (
        {"exceptions": [{"match": {"kinds": ["TFJob"]}, "reason": "x", "rules": ["nope"]}]},
        "spec.exceptions[0].rules[0]",
        "must be the name of a rule",
    ),
    (
        {"exceptions": [{"match": {"kinds": ["TFJob"]}, "reason": "x", "until": "soon"}]},
        "spec.exceptions[0].until",
        "must be a time of RFC 3339",
    ),
    (
        {"defaults": {"runPolicy": {"ttlSecondsAfterFinished": 9}}, "limits": {"ttlSecondsAfterFinished": {"max": 8}}},
        "spec.defaults.runPolicy.ttlSecondsAfterFinished",
        "must be at most 8: the policy's own limit",
    ),
    (
        {"defaults": {"runPolicy": {"ttlSecondsAfterFinished": -9}}},
        "spec.defaults.runPolicy.ttlSecondsAfterFinished",
        "must be an integer ≥ 0",
    ),
    (
        {"defaults": {"replicas": {"*": {"replicas": 5}}}, "limits": {"replicas": {"max": 4}}},
        "spec.defaults.replicas[*].replicas",
        "must be at most 4",
    ),
    (
        {"defaults": {"replicas": {"PS": {"template": {"schedulerName": "a"}}}}, "limits": {"schedulers": ["b"]}},
        "spec.defaults.replicas.PS.template.schedulerName",
        "must be b: the policy's own limit schedulers",
    ),
    (
        {
            "defaults": {"replicas": {"*": {"template": {"resources": {"limits": {"nvidia.com/gpu": 8}}}}}},
            "limits": {"podResources": {"nvidia.com/gpu": {"max": 4}}},
        },
        "spec.defaults.replicas[*].template.resources.limits[nvidia.com/gpu]",
        "at most 4",
    ),
]


@pytest.mark.parametrize(("spec", "path", "words"), BAD, ids=[path for _, path, _ in BAD])
def test_bad_policies(written, spec, path, words):
    found = {fault.path: fault.message for fault in check(written(**spec))}
    assert list(found) == [path]
    assert words in found[path]


def test_every_fault_is_told_at_once(written):
    found = check(written(rules=[RULE, RULE], limits={"images": [], "replicas": {"min": 2, "max": 1}}))
    assert len(found) == 3


def test_what_the_schema_refuses_hides_nothing_beyond_it(written):
    """One answer, whatever the layers that find the faults."""
    spec = {
        "priority": "1",
        "match": {"kinds": [5, "Pod"]},
        "limits": {"replicas": {"min": 2, "max": 1}, "gpus": 1},
        "rules": [{"name": "r", "expression": "1 +"}, {"expression": 3}],
        "exceptions": [None, {"match": {"kinds": ["TFJob"]}, "rules": ["x"], "reason": "r"}],
    }
    assert [fault.path for fault in check(written(**spec))] == [
        "spec.exceptions[0]",
        "spec.exceptions[1].rules[0]",
        "spec.limits.gpus",
        "spec.limits.replicas.min",
        "spec.match.kinds[0]",
        "spec.match.kinds[1]",
        "spec.priority",
        "spec.rules[0].expression",
        "spec.rules[1].expression",
        "spec.rules[1].name",
    ]


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"match": None, "limits": {"replicas": None}, "rules": []},
        {"defaults": {"replicas": {"Worker": {"replicas": 2}}}, "limits": {"replicas": {"min": 4}}},
        {"limits": {"jobResources": {"cpu": {"min": "500m", "max": "0.5"}}}},
        {"rules": [{"name": "r", "expression": "object.spec.x == 1", "messageExpression": "'a' + object.spec.y"}]},
    ],
)
def test_good_policies(written, spec):
    assert isinstance(compiled(written(**spec)), Policy)


def test_an_invalid_policy_keeps_its_name(written):
    found = compiled(written("broken", priority="x"))
    assert isinstance(found, Invalid)
    assert (found.name, found.generation) == ("broken", 1)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(["match", "exclude", "limits", "defaults", "rules", "exceptions", "params", "priority"])


@given(st.one_of(JSON_VALUES, st.dictionaries(FIELDS, JSON_VALUES).map(lambda spec: {"spec": spec})))
def test_any_json_gives_a_policy_or_faults(value):
    found = compiled(value)
    assert isinstance(found, Policy) or found.faults


RICH = {
    "match": {"kinds": ["TFJob"], "objectSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}},
    "exclude": {"serviceAccounts": ["ci/bot"]},
    "limits": {"replicas": {"min": 1, "max": 2}, "podResources": {"cpu": {"max": "4"}}, "requiredLabels": ["team"]},
    "defaults": {"runPolicy": {"backoffLimit": 3}, "replicas": {"*": {"template": {"labels": {"a": "b"}}}}},
    "rules": [{"name": "r", "expression": "true", "fieldPath": "spec", "messageExpression": "'no'"}],
    "exceptions": [{"match": {"kinds": ["TFJob"]}, "rules": ["r"], "reason": "x", "until": "2030-01-01T00:00:00Z"}],
}


def damaged(draw, node):
    """``node`` with one value anywhere in it put in place of what was there."""
    if not node or not isinstance(node, dict | list) or draw(st.integers(0, 3)) == 0:
        return draw(JSON_VALUES)
    keys = list(node) if isinstance(node, dict) else range(len(node))
    key = draw(st.sampled_from(keys))
    copy = node.copy()
    copy[key] = damaged(draw, node[key])
    return copy


@given(st.data())
def test_a_damaged_policy_gives_a_policy_or_faults(data):
    spec = damaged(data.draw, damaged(data.draw, RICH))
    found = compiled({"metadata": {"name": "p"}, "spec": spec})
    assert isinstance(found, Policy) or found.faults
