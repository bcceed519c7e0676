"""Defaults fill what is unset and nothing else."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy.compile import compiled
from policy.evaluate import filled
from policy.model import PolicySet
from policy.request import Request
from schemas import kinds

TEMPLATE = {
    "labels": {"team": "a"},
    "annotations": {"note": "n"},
    "nodeSelector": {"pool": "gpu"},
    "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
    "priorityClassName": "low",
    "schedulerName": "volcano",
    "imagePullSecrets": [{"name": "pull"}],
    "env": [{"name": "PROXY", "value": "p"}],
    "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "2Gi"}},
}
EVERYTHING = {"replicas": {"*": {"replicas": 3, "restartPolicy": "OnFailure", "template": TEMPLATE}}}


def test_everything_is_filled_into_a_bare_job(fill, good, job):
    found, applied = fill(job(Worker=None), good(defaults=EVERYTHING))
    worker = found["spec"]["replicaSpecs"]["Worker"]
    assert (worker["replicas"], worker["restartPolicy"]) == (3, "OnFailure")
    assert worker["template"] == {
        "metadata": {"labels": {"team": "a"}, "annotations": {"note": "n"}},
        "spec": {
            "nodeSelector": {"pool": "gpu"},
            "tolerations": TEMPLATE["tolerations"],
            "priorityClassName": "low",
            "schedulerName": "volcano",
            "imagePullSecrets": [{"name": "pull"}],
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example/team/train:1",
                    "env": TEMPLATE["env"],
                    "resources": TEMPLATE["resources"],
                }
            ],
        },
    }
    assert applied["spec.replicaSpecs.Worker.template.spec.containers[0].env[0]"] == {"name": "PROXY", "value": "p"}


@pytest.mark.parametrize(
    ("container", "kept"),
    [
        ({"resources": {"limits": {"cpu": "4"}}}, {"limits": {"cpu": "4", "memory": "2Gi"}}),
        ({"resources": {"requests": {"memory": "1Gi"}}}, {"requests": {"memory": "1Gi", "cpu": "1"}}),
    ],
)
def test_a_resource_that_the_author_names_gets_no_other_half(fill, good, job, container, kept):
    found, _ = fill(job(container=container), good(defaults=EVERYTHING))
    assert found["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["resources"] == kept


def test_items_are_added_by_key(fill, good, job):
    mine = {"env": [{"name": "PROXY", "value": "mine"}, {"name": "B"}]}
    pod = {"tolerations": [{"key": "gpu", "operator": "Exists"}], "imagePullSecrets": [{"name": "other"}]}
    found, _ = fill(job(container=mine, pod=pod), good(defaults=EVERYTHING))
    spec = found["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]
    assert spec["containers"][0]["env"] == mine["env"]
    assert spec["tolerations"] == [*pod["tolerations"], *TEMPLATE["tolerations"]]
    assert spec["imagePullSecrets"] == [{"name": "other"}, {"name": "pull"}]


def test_the_types_own_entry_comes_before_the_star(fill, good, job):
    defaults = {"replicas": {"*": {"replicas": 1, "restartPolicy": "Never"}, "Worker": {"replicas": 4}}}
    found, _ = fill(job(Worker=None, PS=None), good(defaults=defaults))
    entries = found["spec"]["replicaSpecs"]
    assert {name: (entry["replicas"], entry["restartPolicy"]) for name, entry in entries.items()} == {
        "Worker": (4, "Never"),
        "PS": (1, "Never"),
    }


def test_a_type_is_known_by_any_spelling(fill, good, job):
    defaults = {"replicas": {"Worker": {"replicas": 4}}}
    kind = kinds.PYTORCH_JOB
    found, _ = fill(job(kind, worker=None), good(defaults=defaults), kind=kind)
    assert found["spec"]["pytorchReplicaSpecs"]["worker"]["replicas"] == 4


def test_higher_priorities_come_first_and_names_break_ties(fill, good, job):
    def ttl(name, seconds, priority):
        return good(name, priority=priority, defaults={"runPolicy": {"ttlSecondsAfterFinished": seconds}})

    policies = [ttl("c", 1, 5), ttl("b", 2, 9), ttl("a", 3, 9)]
    for order in (policies, policies[::-1]):
        found, _ = fill(job(), *order)
        assert found["spec"]["runPolicy"] == {"ttlSecondsAfterFinished": 3}


def test_audited_defaults_are_told_and_not_set(good, job, request_of):
    policy = good(defaultsMode="Audit", defaults={"runPolicy": {"backoffLimit": 3}})
    found = filled(PolicySet([policy]), request_of(job()))
    assert found.object == job()
    assert [(item.path, item.value, item.audit) for item in found.applied] == [("spec.runPolicy.backoffLimit", 3, True)]


@pytest.mark.parametrize(
    ("stored", "expected"),
    [({"backoffLimit": 3}, {"backoffLimit": 3}), ({"backoffLimit": 4}, {}), ({}, {}), ({"backoffLimit": True}, {})],
)
def test_on_an_update_only_what_is_stored_already(fill, good, job, stored, expected):
    """A new policy changes no job that is there; the same manifest applied again stays the same job."""
    found, _ = fill(job(run_policy={}), good(defaults={"runPolicy": {"backoffLimit": 3}}), old=job(run_policy=stored))
    assert found["spec"]["runPolicy"] == expected


def test_the_same_manifest_again_gives_the_same_job(fill, good, job):
    policy = good(defaults={**EVERYTHING, "runPolicy": {"schedulingPolicy": {"queue": "q"}}})
    first, _ = fill(job(Worker=None), policy)
    again, _ = fill(job(Worker=None), policy, old=first)
    assert again == first


VALUES = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "a"])
ANY = st.recursive(
    VALUES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
)
FIELDS = ["metadata", "spec", "labels", "containers", "env", "resources", "limits", "cpu", "name", "tolerations"]
POD_LIKE = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=12,
)
ENTRIES = st.dictionaries(
    st.sampled_from(["Worker", "PS"]),
    ANY | st.fixed_dictionaries({}, optional={"replicas": VALUES, "restartPolicy": VALUES, "template": POD_LIKE}),
)
SPECS = ANY | st.fixed_dictionaries({}, optional={"runPolicy": ANY, "replicaSpecs": ENTRIES | ANY})


def leaves(value, at=()):
    """Every value that is set, with its place."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*at, key))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from leaves(item, (*at, index))
    elif value not in (None, "") and value != {} and value != []:
        yield at, value


@given(SPECS)
def test_policies_never_change_a_field_that_is_set(spec):
    value = {"metadata": {"name": "j"}, "spec": spec}
    before = copy.deepcopy(value)
    policy = compiled(
        {"metadata": {"name": "p"}, "spec": {"defaults": {**EVERYTHING, "runPolicy": {"backoffLimit": 3}}}}
    )
    found = filled(PolicySet([policy]), Request(kinds.TRAINING_JOB, value)).object
    assert value == before
    after = dict(leaves(found))
    assert {place: after.get(place) for place, _ in leaves(value)} == dict(leaves(value))
