import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import kinds
from schemas.unknown import _is_known, _search, must, nearest, object_schema, unknown_fields

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
WORKER = "spec.pytorchReplicaSpecs.Worker"
CONTAINER = f"{WORKER}.template.spec.containers.0"


@pytest.mark.parametrize(
    ("path", "value", "meant"),
    [
        ("metdata", {}, "metadata"),
        ("metadata.lables", {}, "labels"),
        ("metadata.generatename", "x", "generateName"),
        ("Spec", {}, "spec"),
        ("spec.runpolicy", {}, "runPolicy"),
        ("spec.replicaSpecs", {}, "pytorchReplicaSpecs"),
        ("spec.runPolicy.clean_pod_policy", "All", "cleanPodPolicy"),
        ("spec.runPolicy.backoffLimits", 3, "backoffLimit"),
        ("spec.runPolicy.suspend ", None, "suspend"),
        (f"{WORKER}.replica", 1, "replicas"),
        (f"{WORKER}.template.spec.nodeselector", {}, "nodeSelector"),
        (f"{CONTAINER}.volumeMounts", [{"name": "d", "mountpath": "/d"}], "mountPath"),
        (f"{CONTAINER}.enviroment", [], None),
        (f"{CONTAINER}.image-pull-policy", "Always", "imagePullPolicy"),
        ("status.phases", "x", "phase"),
        ("spec.xyzzy", 1, None),
    ],
)
def test_the_field_that_was_meant_is_named(make_job, changed, path, value, meant):
    (fault,) = unknown_fields(kinds.PYTORCH_JOB, changed(make_job(), path, value))
    assert fault.must.startswith("must be a known field: ")
    assert (f"did you mean {meant}?" in fault.must) is (meant is not None)
    assert fault.got == (value[0] and "mountpath" if meant == "mountPath" else path.rpartition(".")[2])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.labels", {"any.thing/at-all": "x"}),
        ("metadata.managedFields", [{"anything": 1}]),
        ("metadata.deletionTimestamp", "2030-01-01T00:00:00Z"),
        ("spec.pytorchReplicaSpecs.Anything", {}),  # a type, and no field: the rules have a better word for it
        ("spec.elasticPolicy", {"metrics": [{"type": "Resource", "resource": {"name": "cpu"}}]}),
        ("spec.runPolicy.schedulingPolicy", {"minResources": {"example.com/gpu": 1}}),
        ("spec.backoffLimit", 3),  # the old place has its own warning
        (f"{WORKER}.template.spec.containers.0.ports", [{"containerPort": 1}]),
        (f"{CONTAINER}.readinessProbe", {"httpGet": {"port": "web"}}),
        (f"{CONTAINER}.resources", {"limits": {"nvidia.com/gpu": 8}}),
        ("metadata", None),
        ("spec", "text"),
        (WORKER, None),
        (f"{WORKER}.template.spec.containers", {"name": "x"}),
    ],
)
def test_known_and_free_fields_pass(make_job, changed, path, value):
    found = list(unknown_fields(kinds.PYTORCH_JOB, changed(make_job(), path, value)))
    assert found == []


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: f"{kind.kind}.{kind.group}")
def test_a_good_job_of_any_kind_has_no_unknown_field(make_job, kind):
    job = make_job(kind)
    assert list(unknown_fields(kind, job)) == []
    (fault,) = unknown_fields(kind, {**job, "spec": {**job["spec"], "runPolcy": {}}})
    assert str(fault) == 'spec.runPolcy: must be a known field: did you mean runPolicy? (got "runPolcy")'


def test_an_odd_key_is_put_in_brackets(make_job, changed):
    (fault,) = unknown_fields(kinds.PYTORCH_JOB, changed(make_job(), "spec", {"a b": 1}))
    assert fault.path == "spec[a b]"


@pytest.mark.parametrize(
    ("key", "known", "expected"),
    [
        ("MOUNTPATH", ("mountPath", "subPath"), "mountPath"),
        ("mount_path", ("mountPath",), "mountPath"),
        ("subpath", ("subPathExpr", "subPath"), "subPath"),
        ("zzz", ("mountPath",), None),
        ("", ("a",), None),
        ("a", (), None),
        ("x" * 100_000, ("mountPath",), None),
    ],
)
def test_nearest(key, known, expected):
    assert nearest(key, known) == expected


def test_without_a_near_name_some_known_ones_are_listed():
    assert must("zzz", ("b", "a")) == "must be a known field: a, b"
    assert must("zzz", tuple("abcdefgh")) == "must be a known field: a, b, c, d, e, f, …"


@settings(deadline=None)
@given(JSON)
def test_any_json_is_searched(value):
    for kind in kinds.KINDS:
        for document in (value, {"metadata": value, "spec": value, "status": value}, {"spec": {kind.spec_key: value}}):
            assert all(fault.path for fault in unknown_fields(kind, document) if fault.got)


@given(st.dictionaries(st.sampled_from(["metadata", "spec", "status", "x"]), JSON))
def test_the_quick_answer_is_the_searchs(job):
    for kind in kinds.KINDS:
        assert _is_known(kind, job) == (not list(_search(object_schema(kind), job, ())))
