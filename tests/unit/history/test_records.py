"""Raw objects to rows: a table per column, and anything at all."""

import json

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from history.fields import TEXT, moment, text
from history.models import event_info, job_info, replica_info
from history.records import STATUSES, event_record, job_record, pod_record

TABLES = {"JobRecord": job_info, "PodRecord": replica_info, "EventRecord": event_info}


def conditions(**states):
    return [
        {"type": kind, "status": status, "lastTransitionTime": "2026-11-30T12:00:00Z"}
        for kind, status in states.items()
    ]


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (conditions(), "Created"),
        (conditions(Created="True"), "Created"),
        (conditions(Running="True", Created="True"), "Running"),
        (conditions(Succeeded="True", Running="True"), "Succeeded"),
        (conditions(Running="True", Failed="True", Suspended="True"), "Failed"),
        (conditions(Pending="True", Suspended="True"), "Suspended"),
        (conditions(Running="True", Scaling="True"), "Scaling"),
        (conditions(Scaling="True", Restarting="True"), "Restarting"),
        (conditions(Restarting="True", Pending="True"), "Pending"),
        (conditions(Succeeded="False", Running="Unknown", Pending="True"), "Pending"),
        (conditions(Blocked="True", Nonsense="True"), "Created"),
        ("no list", "Created"),
        ([None, "x", {"type": ["Failed"], "status": "True"}, {"status": "True"}], "Created"),
    ],
)
def test_status_is_read_by_type_and_status(make_job, found, status):
    job = make_job() | {"status": {"conditions": found}}

    assert job_record(job).status == status


@pytest.mark.parametrize(
    ("annotations", "tenant", "owner", "region"),
    [
        ({}, None, None, None),
        ({"kubedl.io/tenancy": '{"tenant": "t", "user": "u", "region": "r"}'}, "t", "u", "r"),
        ({"kubedl.io/tenancy": '{"tenant": "t"}', "signalbox.dev/owner": "o"}, "t", "o", None),
        ({"kubedl.io/tenancy": '{"user": "u"}', "signalbox.dev/owner": "o"}, None, "u", None),
        ({"kubedl.io/tenancy": "{", "signalbox.dev/owner": "o"}, None, "o", None),
        ({"kubedl.io/tenancy": '["t"]'}, None, None, None),
        ({"kubedl.io/tenancy": '{"tenant": 5, "user": {}}'}, None, None, None),
        ({"kubedl.io/tenancy": "\ud800"}, None, None, None),
        ({"signalbox.dev/owner": "o" * 300}, None, "o" * 255, None),
        (["hostile"], None, None, None),
    ],
)
def test_tenant_and_owner(make_job, annotations, tenant, owner, region):
    record = job_record(make_job(annotations=annotations))

    assert (record.tenant, record.owner, record.deploy_region) == (tenant, owner, region)
    assert job_record(make_job(annotations=annotations), region="here").deploy_region == "here"


def test_a_finished_job_says_why_and_when(make_job, moment):
    record = job_record(make_job("a", 5, ("Failed", 60)))
    assert (record.remark, record.gmt_finished, record.gmt_job_running) == ("JobFailed: said so", moment(60), None)

    job = make_job("a", 5, ("Failed", 60))
    del job["status"]["completionTime"]
    assert job_record(job).gmt_finished == moment(60), "the terminal condition's time, when there is no other"


def test_a_running_job_has_no_end(make_job, moment):
    job = make_job("a", 5, ("Running", 10))
    job["status"]["completionTime"] = "2026-11-30T13:00:00Z"

    record = job_record(job)
    assert (record.gmt_job_running, record.gmt_finished, record.remark) == (moment(10), None, None)


KUBEFLOW = ("kubeflow.org/v1", "PyTorchJob", "pytorchReplicaSpecs")
SIGNALBOX = ("signalbox.dev/v1", "TrainingJob", "replicaSpecs")


@pytest.mark.parametrize(
    ("api_version", "kind", "key", "specs", "stored"),
    [
        (*KUBEFLOW, {"Master": {}}, {"Master": {"replicas": 1, "resources": {}}}),
        (*KUBEFLOW, {"Worker": {"replicas": 0}}, {"Worker": {"replicas": 0, "resources": {}}}),
        ("kubeflow.org/v1", "PyTorchJob", "replicaSpecs", {"Master": {}}, None),
        (*SIGNALBOX, {"x" * 63: None}, {"x" * 63: {"replicas": 1, "resources": {}}}),
        (*SIGNALBOX, {}, None),
        (*SIGNALBOX, {f"{n:060}": {} for n in range(2000)}, None),
        ("example.org/v1", "OtherJob", "replicaSpecs", {"Worker": {}}, None),
        (None, [], "replicaSpecs", {"Worker": {}}, None),
    ],
)
def test_resources_of_a_job(api_version, kind, key, specs, stored):
    job = {"apiVersion": api_version, "kind": kind, "metadata": {"uid": "a"}, "spec": {key: specs}}

    resources = job_record(job).resources
    assert (resources and json.loads(resources)) == stored


@pytest.mark.parametrize(
    ("fields", "remark"),
    [
        ({"phase": "Running"}, None),
        ({"phase": "Succeeded", "code": 0, "reason": "Completed"}, None),
        ({"phase": "Failed", "code": 137, "reason": "OOMKilled"}, "OOMKilled, exit code 137"),
        ({"phase": "Running", "code": 1, "reason": "Error"}, "Error, exit code 1"),
        ({"phase": "Failed", "code": 3}, "exit code 3"),
    ],
)
def test_remark_of_a_pod(make_pod, fields, remark):
    assert pod_record(make_pod(**fields), "a", "Worker").remark == remark


def test_an_evicted_pod_that_never_started(make_pod, moment):
    pod = make_pod(phase="Failed", started=None)
    pod["status"] |= {"reason": "Evicted", "message": "node is low on memory"}
    pod["status"]["conditions"] = [{"type": "Ready", "lastTransitionTime": "2026-11-30T12:00:09Z"}]

    record = pod_record(pod, "a", "Worker")
    assert (record.remark, record.gmt_started, record.gmt_finished) == (
        "Evicted: node is low on memory",
        None,
        moment(9),
    )


def test_a_failed_init_container_is_the_cause(make_pod):
    pod = make_pod(phase="Failed", started=None)
    pod["status"]["initContainerStatuses"] = [
        {"name": "i", "state": {"terminated": {"exitCode": 2, "reason": "Error"}}}
    ]

    assert pod_record(pod, "a", "Worker").remark == "Error, exit code 2"


def test_a_restart_in_place_does_not_move_the_start(make_pod, moment):
    pod = make_pod(started=30)
    pod["status"]["containerStatuses"][0]["lastState"] = {"terminated": {"startedAt": "2026-11-30T12:00:05Z"}}

    assert pod_record(pod, "a", "Worker").gmt_started == moment(5)


@pytest.mark.parametrize(
    ("owner", "names", "image"),
    [
        ({"kind": "PyTorchJob", "apiVersion": "kubeflow.org/v1", "controller": True}, ["main", "pytorch"], "pytorch"),
        ({"kind": "Other", "apiVersion": "v1", "controller": True}, ["sidecar", "main"], "main"),
        ({}, ["sidecar", "only"], "sidecar"),
        ("hostile", [], None),
    ],
)
def test_image_of_the_main_container(owner, names, image):
    pod = {
        "metadata": {"uid": "p", "ownerReferences": [owner]},
        "spec": {"containers": [{"name": n, "image": n} for n in names]},
    }

    assert pod_record(pod, "a", "Worker").image == image


@pytest.mark.parametrize(
    ("fields", "count", "first", "last"),
    [
        ({"count": 3}, 3, 0, 10),
        ({"count": 2**40}, 2**31 - 1, 0, 10),
        ({"count": "3"}, 1, 0, 10),
        ({"count": 0, "firstTimestamp": None, "lastTimestamp": None, "eventTime": "2026-11-30T12:00:07.5Z"}, 1, 7, 7),
        ({"series": {"count": 9, "lastObservedTime": "2026-11-30T12:01:00.123456Z"}}, 9, 0, 60),
    ],
)
def test_both_forms_of_events(make_event, moment, fields, count, first, last):
    record = event_record(make_event(**fields))

    assert (record.count, record.first_timestamp, record.last_timestamp) == (count, moment(first), moment(last))


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("2026-11-30T12:00:00Z", "2026-11-30 12:00:00"),
        ("2026-11-30T12:00:00.999999+02:00", "2026-11-30 10:00:00"),
        ("0001-01-01T00:00:00Z", "None"),
        ("0001-01-01T00:00:00+23:00", "None"),
        ("9999-12-31T23:59:59-23:00", "None"),
        ("soon", "None"),
        (1764504000, "None"),
        (None, "None"),
    ],
)
def test_times_are_naive_utc_in_seconds(value, stored):
    assert str(moment(value)) == stored


@pytest.mark.parametrize(
    ("value", "stored"), [("a\0b", "ab"), ("é" * 9, "é" * 4), ("\ud800x", "?x"), ("\0", None), (5, None)]
)
def test_texts(value, stored):
    assert text(value, 4) == stored


WORDS = st.sampled_from(
    [
        "metadata", "uid", "name", "spec", "status", "conditions", "containers", "resources", "requests",
        "replicaSpecs", "Worker", "template", "type", "True", "Running", "Failed", "state", "terminated", "exitCode",
        "containerStatuses", "involvedObject", "count", "series", "annotations", "ownerReferences", "kind", "cpu",
        "apiVersion", "main", "kubedl.io/tenancy"
    ]
)  # fmt: skip
TEXTS = st.text(max_size=300) | st.text(st.characters(categories=["Cs"]), max_size=3) | WORDS
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | TEXTS, inner, max_size=8),
    max_leaves=40,
)
SHAPE = {"apiVersion": "signalbox.dev/v1", "kind": "TrainingJob", "metadata": {"uid": "a", "name": "n"}}


@given(st.dictionaries(WORDS, ANYTHING, max_size=10), st.booleans(), TEXTS)
@example({"status": {"message": "é" * TEXT, "phase": "Failed"}}, True, "")
@example({"message": "x" + "é" * TEXT}, True, "")
def test_any_object_gives_rows_that_fit(found, keyed, other):
    obj = found | (SHAPE | {"involvedObject": {"uid": "a"}} if keyed else {})
    records = (job_record(obj, other), pod_record(obj, other, other), event_record(obj, other))

    assert all(records) or not keyed
    for record in filter(None, records):
        check(record)


def places(tree, path=()):
    """Every path in a JSON value."""
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [path] + [place for key, child in children for place in places(child, (*path, key))]


def put(tree, path, value):
    if not path:
        return value
    copy = tree.copy()
    copy[path[0]] = put(tree[path[0]], path[1:], value)
    return copy


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_real_objects_with_anything_in_one_place(make_job, make_pod, make_event, data):
    real = make_job("a", 5, ("Failed", 5)), make_pod("p", 1, "Failed", code=1, reason="Error"), make_event()
    for made, record in zip(real, (job_record, lambda pod: pod_record(pod, "a", "Worker"), event_record), strict=True):
        path = data.draw(st.sampled_from([place for place in places(made) if place]))
        found = record(put(made, path, data.draw(ANYTHING)))
        assert found or path[-1] in ("metadata", "uid", "involvedObject", "name")
        if found:
            check(found)


def check(record):
    """Every column as the database wants it."""
    for column in TABLES[type(record).__name__].c:
        value = getattr(record, column.name, None)
        assert value is not None or column.nullable or column.primary_key or column.name == "id"
        if isinstance(value, str):
            assert "\0" not in value
            assert len(value.encode()) <= TEXT
            assert len(value) <= (getattr(column.type, "length", None) or TEXT)
            assert column.name != "resources" or orjson.loads(value)
    assert getattr(record, "status", None) in STATUSES or type(record).__name__ != "JobRecord"
