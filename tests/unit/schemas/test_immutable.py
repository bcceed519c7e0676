"""Every field that must stay, of every kind, in both directions: the table is made from the schemas."""

import pytest

from schemas import kinds
from schemas.loader import job_schema
from schemas.rules.updates import ALWAYS_MUTABLE

SAMPLES = {"string": "x", "boolean": True, "integer": 7, "array": [{"x": "y"}], "object": {"x": 1}}
WORDS = {("runPolicy", "managedBy"): "must not change"}
SUSPENDED_ONLY = "must not change unless the job is suspended"


def leaves(schema, at=()):
    """Paths of the fields that have none below, above the pod template; a list and a map count as one field."""
    if "properties" not in schema or at[-1:] == ("template",):
        yield at, schema
        return
    for name, value in schema["properties"].items():
        yield from leaves(value, (*at, name))


def fields(kind):
    """The fields of a kind's spec, its replica map as one entry, Worker."""
    properties = job_schema(kind)["properties"]["spec"]["properties"]
    entry = properties[kind.spec_key]["additionalProperties"]
    rest = {"properties": {name: value for name, value in properties.items() if name != kind.spec_key}}
    yield from leaves(rest)
    yield from leaves(entry, (kind.spec_key, "Worker"))


def sample(schema):
    return schema["enum"][-1] if "enum" in schema else SAMPLES[schema.get("type", "integer")]


def table():
    for kind in kinds.KINDS:
        mutable = {*ALWAYS_MUTABLE, (kind.spec_key, "Worker", "replicas")}
        for at, schema in fields(kind):
            if at not in mutable and at[-1] != "template":
                yield pytest.param(kind, at, sample(schema), id=f"{kind.kind}-{'.'.join(at)}")


TABLE = list(table())


def with_suspend(job, changed, *, suspend):
    return changed(job, "spec.runPolicy.suspend", suspend)


def good_job(make_job, kind):
    return make_job(kind, **dict.fromkeys(kind.leaders[:1], 1), Worker=2)


def named(found, at):
    """The messages of the faults at or below a field."""
    path = "spec." + ".".join(at)
    return [message for where, message in found.items() if where == path or where.startswith((path + ".", path + "["))]


@pytest.mark.parametrize(("kind", "at", "value"), TABLE)
def test_it_is_refused_in_both_directions(make_job, changed, faults_of, kind, at, value):
    """kubernetes-sigs/jobset#624; a value that breaks another rule too is named with the more telling words."""
    absent = good_job(make_job, kind)
    present = changed(absent, "spec." + ".".join(at), value)
    assert named(faults_of(present, kind, absent), at)
    [message] = named(faults_of(absent, kind, present), at)
    assert message.startswith(WORDS.get(at, SUSPENDED_ONLY))


@pytest.mark.parametrize(("kind", "at", "value"), TABLE)
def test_it_may_change_together_with_suspend(make_job, changed, faults_of, kind, at, value):
    running = good_job(make_job, kind)
    paused = with_suspend(running, changed, suspend=True)
    present = changed(running, "spec." + ".".join(at), value)
    for new, old in ((running, with_suspend(present, changed, suspend=True)), (paused, present)):
        found = named(faults_of(new, kind, old), at)
        assert bool(found) == (at in WORDS)


def test_every_kind_has_rows():
    assert {row.values[0] for row in TABLE} == set(kinds.KINDS)
    assert {row.values[1][:2] for row in TABLE if row.values[0] is kinds.TF_JOB} >= {
        ("successPolicy",),
        ("enableDynamicWorker",),
        ("runPolicy", "managedBy"),
        ("runPolicy", "schedulingPolicy"),
        ("tfReplicaSpecs", "Worker"),
    }


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: kind.kind)
@pytest.mark.parametrize("at", [*ALWAYS_MUTABLE, ("replicas",)], ids=".".join)
def test_the_others_may_always_change(make_job, changed, faults_of, kind, at):
    schemas = dict(fields(kind))
    path = (kind.spec_key, "Worker", "replicas") if at == ("replicas",) else at
    if path not in schemas:
        return
    old = good_job(make_job, kind)
    if "elasticPolicy" in path:
        old = changed(old, "spec.elasticPolicy", {"minReplicas": 1, "maxReplicas": 3})
    new = changed(old, "spec." + ".".join(path), 2 if schemas[path]["type"] == "integer" else sample(schemas[path]))
    assert faults_of(new, kind, old) == {}
    assert faults_of(old, kind, new) == {}
