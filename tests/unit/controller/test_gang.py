"""The PodGroup of a job and its members, for each gang scheduler."""

import pytest

from controller import build, extras
from controller.gang import min_member
from controller.settings import Settings
from schemas import defaults, kinds
from schemas.job import Job

VOLCANO = Settings(gang_scheduler="volcano")
PLUGINS = Settings(gang_scheduler="scheduler-plugins")


def make_job(kind=kinds.PYTORCH_JOB, policy=None, asks=None, pod=None, **types):
    def entry(name, count):
        resources = {"requests": (asks or {}).get(name, {})}
        container = {"name": kind.container, "image": "img", "resources": resources}
        return {"replicas": count, "template": {"spec": {"containers": [container], **(pod or {})}}}

    spec = {kind.spec_key: {name: entry(name, count) for name, count in types.items()}}
    if policy is not None:
        spec["runPolicy"] = {"schedulingPolicy": policy}
    raw = {"metadata": {"name": "job", "namespace": "ns", "uid": "u"}, "spec": spec}
    return Job(kind, defaults.default(kind, raw))


def group(job, settings):
    [extra] = [extra for extra in extras.wanted(job, settings, ()) if extra.sort.kind == "PodGroup"]
    return extra


def members(job, settings):
    return [
        build.pod(job, entry, index, attempt=0, round_=0, settings=settings)
        for entry in job.replicas
        for index in range(entry.count)
    ]


@pytest.mark.parametrize(
    ("policy", "types", "expected"),
    [
        (None, {"Master": 1, "Worker": 3}, 4),
        ({"minAvailable": 2}, {"Master": 1, "Worker": 3}, 2),
        ({"minAvailable": 9}, {"Master": 1, "Worker": 3}, 4),
        ({"minAvailable": "x"}, {"Worker": 2}, 2),
        ({"queue": "q"}, {"Worker": 0}, 0),
    ],
)
def test_how_many_must_fit(policy, types, expected):
    """kubedl-io/kubedl#180: never more than there will be."""
    assert min_member(make_job(policy=policy, **types)) == expected


@pytest.mark.parametrize(
    ("policy", "asks", "expected"),
    [
        ({}, {"Master": {"cpu": "0.1"}, "Worker": {"cpu": "0.2"}}, {"cpu": "700m"}),
        ({"minAvailable": 2}, {"Master": {"cpu": 1}, "Worker": {"cpu": "1500m", "gpu": 1}}, {"cpu": "2500m", "gpu": 1}),
        ({"minAvailable": 1}, {"Master": {"cpu": "0.50"}, "Worker": {"cpu": 8}}, {"cpu": "0.50"}),
        ({}, {"Worker": {"memory": "1.5Gi"}}, {"memory": "4608Mi"}),
        ({}, {"Worker": {"cpu": "1n"}}, {"cpu": "3n"}),
        ({"minResources": {"cpu": 3}}, {"Worker": {"cpu": 1}}, {"cpu": 3}),
        ({}, {}, {}),
    ],
)
def test_what_must_be_free(policy, asks, expected):
    """The first pods, the leader's first, and nothing rounded."""
    job = make_job(policy=policy, asks=asks, Worker=3, Master=1)
    assert group(job, VOLCANO).manifest["spec"]["minResources"] == expected


ALL = {
    "minAvailable": 2,
    "queue": "q",
    "priorityClass": "high",
    "scheduleTimeoutSeconds": 30,
    "minResources": {"cpu": 1},
}


@pytest.mark.parametrize(
    ("settings", "api_version", "own"),
    [
        (VOLCANO, "scheduling.volcano.sh/v1beta1", {"queue": "q", "priorityClassName": "high"}),
        (PLUGINS, "scheduling.x-k8s.io/v1alpha1", {"scheduleTimeoutSeconds": 30}),
    ],
)
def test_each_scheduler_gets_what_it_knows(settings, api_version, own):
    found = group(make_job(policy=ALL, Worker=3), settings).manifest
    assert (found["apiVersion"], found["kind"], found["metadata"]["name"]) == (api_version, "PodGroup", "job")
    assert found["spec"] == {"minMember": 2, "minResources": {"cpu": 1}, **own}
    assert found["metadata"]["labels"]["signalbox.dev/job-uid"] == "u"


@pytest.mark.parametrize("settings", [VOLCANO, PLUGINS])
def test_what_was_not_said_is_left_to_the_scheduler(settings):
    """kubeflow/trainer#2079: a queue that someone else chose stays."""
    assert group(make_job(policy={"queue": ""}, Worker=1), settings).manifest["spec"].keys() == {
        "minMember",
        "minResources",
    }


def test_members_of_a_volcano_gang():
    for pod in members(make_job(Master=1, Worker=2), VOLCANO):
        annotations = pod["metadata"]["annotations"]
        assert annotations["scheduling.k8s.io/group-name"] == "job"
        assert annotations["volcano.sh/task-spec"] in pod["metadata"]["name"]
        assert pod["spec"]["schedulerName"] == "volcano"


def test_members_of_a_coscheduling_gang():
    for pod in members(make_job(Master=1, Worker=2), PLUGINS):
        assert pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "job"
        assert pod["metadata"]["labels"]["training.kubeflow.org/job-name"] == "job"
        assert pod["spec"]["schedulerName"] == "scheduler-plugins-scheduler"


@pytest.mark.parametrize(("written", "expected"), [("mine", "mine"), ("", "ours"), (None, "ours")])
def test_a_scheduler_that_the_template_names_stays(written, expected):
    settings = Settings(gang_scheduler="volcano", gang_scheduler_name="ours")
    [pod] = members(make_job(pod={"schedulerName": written}, Worker=1), settings)
    assert pod["spec"]["schedulerName"] == expected


def test_without_a_gang_scheduler_nothing_says_so():
    job = make_job(policy=ALL, Worker=1)
    assert extras.wanted(job, Settings(), ()) == []
    [pod] = members(job, Settings())
    assert "schedulerName" not in pod["spec"]
    assert pod["metadata"]["annotations"] == {}


def test_an_mpi_gang_counts_what_the_launcher_gets():
    job = make_job(kinds.MPI_JOB, Launcher=1, Worker=2)
    assert group(job, VOLCANO).manifest["spec"]["minResources"] == {
        "cpu": "100m",
        "memory": "512Mi",
        "ephemeral-storage": "5Gi",
    }


@pytest.mark.parametrize(
    ("stored", "change"),
    [
        ({}, None),
        ({"queue": "default", "x": 1}, None),
        ({"minMember": 3}, {"minMember": 2}),
        ({"minResources": {"cpu": "500m", "gpu": "1"}}, None),
        ({"minResources": {"cpu": "501m", "gpu": 1}}, {"minResources": {"cpu": "0.5", "gpu": 1}}),
        (
            {"minResources": {"cpu": "0.5", "gpu": 1, "fpga": 1}},
            {"minResources": {"cpu": "0.5", "gpu": 1, "fpga": None}},
        ),
        ({"minResources": None}, {"minResources": {"cpu": "0.5", "gpu": 1}}),
    ],
)
def test_only_what_we_set_and_only_where_it_differs(stored, change):
    """A typed client writes 0.5 back as 500m, and a scheduler fills in its own fields: neither is a difference."""
    extra = group(make_job(policy={"minResources": {"cpu": "0.5", "gpu": 1}}, Worker=2), VOLCANO)
    spec = {**extra.manifest["spec"], **stored}
    assert extras.change(extra, {"spec": spec}) == ({"spec": change} if change else None)
