"""Defaulting fills what is absent and touches nothing else."""

import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import defaults, kinds, patch

PORT = {"containerPort": 23456, "name": "pytorchjob-port", "protocol": "TCP"}
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def worker(**fields):
    return {"template": {"spec": {"containers": [{"name": "pytorch", "image": "i"}]}}, **fields}


def default(job, old=None):
    return defaults.default(kinds.PYTORCH_JOB, job, old)


def test_an_empty_job_gets_all_defaults():
    job = {"spec": {"pytorchReplicaSpecs": {"Worker": worker()}}}
    assert default(job)["spec"] == {
        "runPolicy": {"cleanPodPolicy": "Running"},
        "pytorchReplicaSpecs": {
            "Worker": {
                "replicas": 1,
                "restartPolicy": "OnFailure",
                "template": {"spec": {"containers": [{"name": "pytorch", "image": "i", "ports": [PORT]}]}},
            }
        },
    }


def only(kind, name):
    return {"spec": {kind.spec_key: {name: {"template": {"spec": {"containers": [{"image": "i"}]}}}}}}


@pytest.mark.parametrize(
    ("kind", "name", "replicas", "policy", "port"),
    [
        (kinds.TRAINING_JOB, "Any", 1, "Never", ("main", 29500)),
        (kinds.PYTORCH_JOB, "Worker", 1, "OnFailure", ("pytorchjob-port", 23456)),
        (kinds.TF_JOB, "PS", 1, "Never", ("tfjob-port", 2222)),
        (kinds.XGBOOST_JOB, "Master", 1, "Never", ("xgboostjob-port", 9999)),
        (kinds.PADDLE_JOB, "Worker", 1, "OnFailure", ("master", 36543)),
        (kinds.JAX_JOB, "Worker", 1, "Never", ("jaxjob-port", 6666)),
        (kinds.MPI_JOB, "Launcher", 1, "Never", None),
        (kinds.MPI_JOB, "Worker", 0, "Never", None),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_what_each_kind_fills_in(kind, name, replicas, policy, port):
    entry = defaults.default(kind, only(kind, name))["spec"][kind.spec_key][name]
    ports = entry["template"]["spec"]["containers"][0].get("ports")
    assert (entry["replicas"], entry["restartPolicy"]) == (replicas, policy)
    assert ports == (port and [{"name": port[0], "containerPort": port[1], "protocol": "TCP"}])


@pytest.mark.parametrize("kind", [kind for kind in kinds.KINDS if kind.types], ids=lambda kind: kind.kind)
def test_every_type_of_a_closed_set_is_folded(kind):
    """kubedl-io/kubedl#30"""
    for row in kind.types:
        for spelling in (row.name.lower(), row.name.upper()):
            assert list(defaults.default(kind, only(kind, spelling))["spec"][kind.spec_key]) == [row.name]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (None, "Running"),
        ({}, "Running"),
        ({"cleanPodPolicy": None}, "Running"),
        ({"cleanPodPolicy": ""}, "Running"),
        ({"cleanPodPolicy": "None"}, "None"),
        ({"cleanPodPolicy": "All"}, "All"),
        ({"cleanPodPolicy": "wrong"}, "wrong"),
    ],
)
def test_clean_pod_policy(policy, expected):
    job = {"spec": {"runPolicy": policy, "pytorchReplicaSpecs": {"Worker": worker()}}}
    assert default(job)["spec"]["runPolicy"]["cleanPodPolicy"] == expected


@pytest.mark.parametrize(
    ("ports", "expected"),
    [
        (None, [PORT]),
        ([], [PORT]),
        ([{"containerPort": 8080}], [{"containerPort": 8080}, PORT]),
        ([{"containerPort": 23456, "name": "other"}], [{"containerPort": 23456, "name": "other"}, PORT]),
        ([{"containerPort": 9, "name": "pytorchjob-port"}], [{"containerPort": 9, "name": "pytorchjob-port"}]),
        ("wrong", "wrong"),
    ],
)
def test_the_port_is_added_once_by_name(ports, expected):
    container = {"name": "pytorch", "image": "i", **({} if ports is None else {"ports": ports})}
    job = {"spec": {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [container]}}}}}}
    filled = default(job)["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    assert filled["ports"] == expected


def test_the_port_goes_to_the_main_container():
    containers = [{"name": "log", "image": "i"}, {"name": "pytorch", "image": "i"}]
    job = {"spec": {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": {"containers": containers}}}}}}
    filled = default(job)["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    assert [container.get("ports") for container in filled] == [None, [PORT]]


@pytest.mark.parametrize("spelling", ["worker", "WORKER", "wOrKeR"])
def test_types_are_folded_to_canonical_case(spelling):
    """kubedl-io/kubedl#30"""
    filled = default({"spec": {"pytorchReplicaSpecs": {spelling: worker(replicas=3)}}})
    assert list(filled["spec"]["pytorchReplicaSpecs"]) == ["Worker"]
    assert filled["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == 3


@pytest.mark.parametrize("keys", [("worker", "WORKER"), ("Worker", "worker")])
def test_two_spellings_are_left_for_validation(keys):
    filled = default({"spec": {"pytorchReplicaSpecs": {key: worker() for key in keys}}})
    assert sorted(filled["spec"]["pytorchReplicaSpecs"]) == sorted(keys)


def test_an_open_type_set_is_never_folded():
    job = {"spec": {"replicaSpecs": {"worker": worker(), "Trainer": worker()}}}
    assert list(defaults.default(kinds.TRAINING_JOB, job)["spec"]["replicaSpecs"]) == ["worker", "Trainer"]


def test_the_second_apply_of_a_lower_case_manifest_changes_nothing():
    """A client-side apply merges the manifest's ``worker`` beside the stored ``Worker``."""
    manifest = {"spec": {"pytorchReplicaSpecs": {"worker": worker(replicas=2)}}}
    stored = default(manifest)
    scaled = default({"spec": {"pytorchReplicaSpecs": {"Worker": {**worker(), "replicas": 5}}}})
    for old, count in ((stored, 2), (scaled, 5)):
        entries = {**old["spec"]["pytorchReplicaSpecs"], "worker": worker()}
        again = default({"spec": {**old["spec"], "pytorchReplicaSpecs": entries}}, old)
        assert again["spec"] == old["spec"]
        assert again["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == count


@pytest.mark.parametrize(
    ("policy", "replicas", "low", "high"),
    [({}, 3, 3, 3), ({"maxReplicas": 5}, 2, 2, 5), ({"minReplicas": 1}, 4, 1, 4), ({"minReplicas": 4}, 2, 4, 4)],
)
def test_elastic_bounds_hold_the_replicas(policy, replicas, low, high):
    """kubeflow/trainer#2278"""
    spec = {"elasticPolicy": policy, "pytorchReplicaSpecs": {"Worker": worker(replicas=replicas)}}
    filled = default({"spec": spec})["spec"]["elasticPolicy"]
    assert (filled["minReplicas"], filled["maxReplicas"]) == (low, high)


def test_elastic_without_workers_is_left_for_validation():
    spec = {"elasticPolicy": {}, "pytorchReplicaSpecs": {"Master": worker()}}
    assert default({"spec": spec})["spec"]["elasticPolicy"] == {}


def test_what_the_user_wrote_stays():
    """kubernetes/kubernetes#66450: quantities, order, nulls and unknown fields are not rewritten."""
    pod = {
        "metadata": {"creationTimestamp": None},
        "spec": {
            "containers": [
                {
                    "name": "pytorch",
                    "image": "i",
                    "unknown": 1,
                    "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}},
                    "env": [{"name": "B", "value": "1"}, {"name": "A", "value": "2"}],
                }
            ]
        },
    }
    job = {"spec": {"x": None, "pytorchReplicaSpecs": {"Worker": {"template": pod}}}}
    operations = patch.diff(job, default(job))
    assert sorted(operation["path"] for operation in operations) == [
        "/spec/pytorchReplicaSpecs/Worker/replicas",
        "/spec/pytorchReplicaSpecs/Worker/restartPolicy",
        "/spec/pytorchReplicaSpecs/Worker/template/spec/containers/0/ports",
        "/spec/runPolicy",
    ]
    assert {operation["op"] for operation in operations} == {"add"}


@given(st.dictionaries(st.sampled_from(["metadata", "spec", "status", "x"]), JSON_VALUES))
def test_any_json_is_taken(job):
    for kind in kinds.KINDS:
        filled = defaults.default(kind, job)
        assert defaults.default(kind, filled) == filled


POLICY = st.sampled_from([None, {}, {"cleanPodPolicy": None}, {"cleanPodPolicy": "All"}, {"backoffLimit": 1}, 3, []])
CONTAINER = st.fixed_dictionaries(
    {},
    optional={"name": st.sampled_from(["pytorch", "main", "log", 4]), "ports": st.sampled_from([None, [], [PORT], 2])},
)
REPLICA = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.none() | st.integers(-1, 4),
        "restartPolicy": st.sampled_from([None, "", "Never", 1]),
        "template": st.none()
        | st.fixed_dictionaries({"spec": st.fixed_dictionaries({"containers": st.lists(CONTAINER)})}),
    },
)
SPEC = st.fixed_dictionaries(
    {},
    optional={
        "runPolicy": POLICY,
        "elasticPolicy": st.sampled_from([None, {}, {"minReplicas": 2}, {"maxReplicas": "x"}, 1]),
        "pytorchReplicaSpecs": st.none()
        | st.dictionaries(st.sampled_from(["Master", "Worker", "worker", "WORKER", "Foo"]), REPLICA),
    },
)


@settings(max_examples=300)
@given(SPEC)
def test_defaulting_is_idempotent_and_its_patch_applies(spec):
    job = {"spec": spec}
    filled = default(job)
    assert default(filled) == filled
    assert patch.diff(filled, default(filled)) == []
    assert jsonpatch.JsonPatch(patch.diff(job, filled)).apply(job) == filled
