"""The order, the number and the words of faults; updates; warnings; and that no JSON breaks anything."""

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import defaults, faults, kinds, loader, validation
from schemas.job import Job

PTJ = "spec.pytorchReplicaSpecs"
CONTAINERS = f"{PTJ}.Worker.template.spec.containers"

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def test_all_faults_in_one_answer_sorted(make_job, changed, faults_of):
    """kubeflow/trainer#977"""
    job = make_job(Worker=2)
    for at, value in (
        ("spec.runPolicy.backoffLimit", -1),
        ("spec.runPolicy.ttlSecondsAfterFinished", -5),
        ("spec.runPolicy.activeDeadlineSeconds", -1),
        ("spec.runPolicy.schedulingPolicy.minAvailable", 0),
        (f"{PTJ}.Worker.replicas", -3),
    ):
        job = changed(job, at, value)
    assert list(faults_of(job)) == [
        f"{PTJ}.Worker.replicas",
        "spec.runPolicy.activeDeadlineSeconds",
        "spec.runPolicy.backoffLimit",
        "spec.runPolicy.schedulingPolicy.minAvailable",
        "spec.runPolicy.ttlSecondsAfterFinished",
    ]


def test_indexes_sort_as_numbers():
    found = faults.ordered(faults.Fault(f"a[{n}]", "x") for n in (10, 9, 1))
    assert [fault.path for fault in found] == ["a[1]", "a[9]", "a[10]"]


@pytest.mark.parametrize("key", ["0¹0", "٣", "²", "1" * 5000])
def test_odd_digits_in_a_key_sort_somehow(key):
    assert len(faults.ordered([faults.Fault(f"a.{key}", "x"), faults.Fault("a.b", "x")])) == 2


def test_at_most_fifty_faults_are_told():
    found = [faults.Fault(f"a[{n}]", "must be x", n) for n in range(53)]
    assert faults.summary(found).endswith("a[49]: must be x (got 49); and 3 more")
    assert faults.summary(found[:50]).endswith("a[49]: must be x (got 49)")


@pytest.mark.parametrize(
    ("value", "text"),
    [("x", '"x"'), (None, "null"), (True, "true"), ([1], "[1]"), (faults.NOTHING, "nothing"), (10**30, str(10**30))],
)
def test_values_are_shown_as_json(value, text):
    assert faults.shown(value) == text


def test_long_values_are_cut():
    assert faults.shown("x" * 500) == '"' + "x" * 78 + "…"


@pytest.mark.parametrize(
    ("segments", "text"),
    [(("a", "b", 0, "c"), "a.b[0].c"), (("a", "x.y/z"), "a[x.y/z]"), (("a", 1, 2), "a[1][2]")],
)
def test_paths(segments, text):
    assert faults.path(*segments) == text


MUTABLE = [
    (f"{PTJ}.Worker.replicas", 3),
    ("spec.runPolicy.suspend", True),
    ("spec.runPolicy.ttlSecondsAfterFinished", 5),
    ("spec.runPolicy.activeDeadlineSeconds", 5),
    ("spec.runPolicy.backoffLimit", 5),
    ("spec.runPolicy.cleanPodPolicy", "All"),
    ("spec.runPolicy.schedulingPolicy", {"minAvailable": 1}),
]
IMMUTABLE = [
    (f"{CONTAINERS}.0.image", "img:2", f"{CONTAINERS}[0].image"),
    (f"{CONTAINERS}.0.args", ["x"], f"{CONTAINERS}[0].args"),
    (f"{PTJ}.Worker.restartPolicy", "Never", f"{PTJ}.Worker.restartPolicy"),
    (f"{PTJ}.Worker.template.spec.nodeSelector", {"a": "b"}, f"{PTJ}.Worker.template.spec.nodeSelector.a"),
    ("spec.nprocPerNode", "2", "spec.nprocPerNode"),
    ("spec.runPolicy.schedulingPolicy", {"queue": "a"}, "spec.runPolicy.schedulingPolicy.queue"),
    ("spec.runPolicy.exitCodeRules", [{"action": "Fail", "codes": [3]}], "spec.runPolicy.exitCodeRules"),
]


@pytest.mark.parametrize(("at", "value"), MUTABLE, ids=[row[0] for row in MUTABLE])
def test_what_may_change_while_running(make_job, changed, faults_of, at, value):
    job = make_job(Worker=2)
    new = changed(job, at, value)
    assert faults_of(new, old=job) == {}
    assert faults_of(job, old=new) == {}


@pytest.mark.parametrize(("at", "value", "path"), IMMUTABLE, ids=[row[0] for row in IMMUTABLE])
def test_what_may_change_only_while_suspended(make_job, changed, faults_of, at, value, path):
    """kubernetes-sigs/jobset#624: also together with the suspension, and with the resume."""
    job = make_job(Worker=2)
    new = changed(job, at, value)
    assert list(faults_of(new, old=job)) == [path]
    assert list(faults_of(job, old=new)) == [path]
    assert faults_of(changed(new, "spec.runPolicy.suspend", True), old=job) == {}
    assert faults_of(new, old=changed(job, "spec.runPolicy.suspend", True)) == {}


@pytest.mark.parametrize("suspended", [False, True])
@pytest.mark.parametrize(("before", "after"), [(None, "a.b/c"), ("a.b/c", None), ("a.b/c", "a.b/d")])
def test_the_manager_never_changes(make_job, changed, faults_of, before, after, suspended):
    job = changed(make_job(Worker=2), "spec.runPolicy.suspend", suspended)
    old, new = (changed(job, "spec.runPolicy.managedBy", value) for value in (before, after))
    assert list(faults_of(new, old=old)) == ["spec.runPolicy.managedBy"]


def test_a_fault_that_was_there_before_is_not_reported(make_job, changed, faults_of):
    old = changed(make_job(Worker=2), "spec.runPolicy.backoffLimit", -1)
    assert faults_of(changed(old, f"{PTJ}.Worker.replicas", 3), old=old) == {}
    worse = changed(old, "spec.runPolicy.backoffLimit", -2)
    assert list(faults_of(worse, old=old)) == ["spec.runPolicy.backoffLimit"]


def test_a_gang_that_no_longer_fits_is_refused(make_job, changed, faults_of):
    """volcano-sh/volcano: lowering replicas below minAvailable."""
    old = changed(make_job(Master=1, Worker=3), "spec.runPolicy.schedulingPolicy.minAvailable", 4)
    new = changed(old, f"{PTJ}.Worker.replicas", 2)
    assert list(faults_of(new, old=old)) == ["spec.runPolicy.schedulingPolicy.minAvailable"]


WARNED = [
    ("spec.cleanPodPolicy", "Running", "spec.cleanPodPolicy: has no effect: use spec.runPolicy.cleanPodPolicy"),
    (f"{PTJ}.Worker.template.spec.restartPolicy", "Always", "the replica's OnFailure wins"),
    (f"{PTJ}.Worker.template.metadata.labels", {"training.kubeflow.org/job-name": "x"}, "is replaced by Signalbox's"),
    (f"{CONTAINERS}.0.env", [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}], "holds A more than once"),
    (f"{CONTAINERS}.0.env", [{"name": "PET_NNODES", "value": "1"}], "sets PET_NNODES itself"),
    (f"{PTJ}.Worker.restartPolicy", "Always", "the job may never end"),
    ("spec.runPolicy.exitCodeRules", [{"action": "Fail", "codes": [3]}], "exitCodeRules do not see it"),
]


@pytest.mark.parametrize(("at", "value", "words"), WARNED, ids=[row[2] for row in WARNED])
def test_warnings(make_job, changed, faults_of, at, value, words):
    old = make_job(Worker=2)
    job = changed(old, at, value)
    filled = Job(kinds.PYTORCH_JOB, defaults.default(kinds.PYTORCH_JOB, job))
    [text] = validation.warn(filled)
    assert words in text
    assert len(text) <= 120
    assert validation.warn(filled, filled) == []
    assert faults_of(job) == {}


def test_a_good_job_is_not_warned_about(make_job):
    job = make_job(Master=1, Worker=2)
    assert validation.warn(Job(kinds.PYTORCH_JOB, defaults.default(kinds.PYTORCH_JOB, job))) == []


def test_a_spec_change_on_a_finished_job_is_warned_about(make_job, changed):
    ended = {"conditions": [{"type": "Failed", "status": "True"}]}
    old = changed(make_job(Worker=2), "status", ended)
    new = changed(old, f"{PTJ}.Worker.replicas", 3)
    [text] = validation.warn(Job(kinds.PYTORCH_JOB, new), Job(kinds.PYTORCH_JOB, old))
    assert "finished" in text


@settings(deadline=None)  # the first example compiles the schemas
@given(st.dictionaries(st.sampled_from(["metadata", "spec", "status"]), JSON_VALUES))
def test_any_json_is_judged(document):
    for kind in kinds.KINDS:
        job = Job(kind, defaults.default(kind, document))
        assert validation.check(job)
        validation.check(job, job)
        validation.warn(job, job)


REPLACEMENTS = st.sampled_from([None, 0, 1, -1, 1.5, True, "", "x", [], [None], {}, {"x": 1}, 2**40])


def _paths(node, at=()):
    yield at
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield from _paths(value, (*at, key))


def _replaced(node, path, value):
    if not path:
        return value
    head, *rest = path
    copy = dict(node) if isinstance(node, dict) else list(node)
    copy[head] = _replaced(copy[head], rest, value)
    return copy


BASE = {
    "metadata": {"name": "job"},
    "spec": {
        "runPolicy": {"backoffLimit": 1, "cleanPodPolicy": "All", "schedulingPolicy": {"minAvailable": 1}},
        "elasticPolicy": {"minReplicas": 1, "maxReplicas": 3},
        "pytorchReplicaSpecs": {
            "Worker": {
                "replicas": 2,
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {
                        "containers": [
                            {
                                "name": "pytorch",
                                "image": "i",
                                "env": [{"name": "A", "value": "b"}],
                                "ports": [{"containerPort": 80}],
                                "resources": {"limits": {"cpu": "1"}},
                            }
                        ]
                    },
                },
            }
        },
    },
}
PATHS = list(_paths(BASE))


@settings(max_examples=300)
@given(st.sampled_from(PATHS), REPLACEMENTS)
def test_both_schema_libraries_agree(path, value):
    """The fast library gates, the other is the oracle; they differ only in NaN and in ``$`` before a newline."""
    document = _replaced(BASE, path, value)
    kind = kinds.PYTORCH_JOB
    oracle = jsonschema.Draft202012Validator(loader.strict(kind))
    theirs = {
        fault.path + fault.must
        for error in oracle.iter_errors(document)
        for fault in validation.worded(
            tuple(error.absolute_path), error.validator, error.validator_value, error.instance
        )
    }
    ours = {fault.path + fault.must for fault in validation.schema_faults(Job(kind, document))}
    if isinstance(document, dict):
        assert ours == theirs


@settings(max_examples=300)
@given(st.sampled_from(PATHS), REPLACEMENTS)
def test_a_broken_job_is_judged_the_same_after_defaulting_again(path, value):
    document = _replaced(BASE, path, value)
    if not isinstance(document, dict):
        return
    kind = kinds.PYTORCH_JOB
    once = defaults.default(kind, document)
    twice = defaults.default(kind, once)
    assert validation.check(Job(kind, once)) == validation.check(Job(kind, twice))
