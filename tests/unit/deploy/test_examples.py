"""The examples: good, warning-free, one for each kind at least, and ending by themselves on the local cluster."""

import pytest
import yaml

from controller import success
from schemas import defaults, kinds, validation
from schemas.job import Job
from signalbox.local.paths import deploy_dir

DIRECTORY = deploy_dir() / "examples"
LONGEST_RUN = 8.0


def jobs_in(file):
    documents = yaml.safe_load_all(file.read_text())
    for document in documents:
        if kind := kinds.find(document["kind"], document["apiVersion"].split("/")[0]):
            yield Job(kind, defaults.default(kind, document))


JOBS = [job for file in sorted(DIRECTORY.glob("*.yaml")) for job in jobs_in(file)]
EACH = pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)


@EACH
def test_an_example_is_good_and_not_warned_about(job):
    assert validation.check(job) == []
    assert validation.warn(job) == []


@EACH
def test_an_example_ends_within_seconds(job):
    """On the local cluster annotations stand in for the containers; who decides must not run for ever."""
    decision = success.decision(job)
    ends = {entry.type: fate(entry) for entry in job.replicas}
    for name, _ in decision.replicas:
        assert "fate.signalbox.dev/never-ends" not in ends[name]
        assert float(ends[name].get("fate.signalbox.dev/run-seconds", "2")) <= LONGEST_RUN


def fate(entry):
    return entry.template.get("metadata", {}).get("annotations", {})


def test_every_kind_has_an_example():
    assert {job.kind for job in JOBS} == set(kinds.KINDS)


def test_names_differ():
    assert len({job.name for job in JOBS}) == len(JOBS)


def test_the_bad_example_is_bad():
    [job] = jobs_in(deploy_dir() / "examples-faulty" / "invalid.yaml")
    assert len(validation.check(job)) == 5
