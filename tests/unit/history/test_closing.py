"""Which open rows a complete list closes: those within its bounds, and none that another controller looks after."""

import pytest

from history.records import job_record, pod_record

RUNNING = ("Running", 10)


@pytest.mark.parametrize(
    ("bounds", "gone"),
    [
        ({}, {"a", "b"}),
        ({"kind": "MPIJob"}, {"m"}),
        ({"kind": "PyTorchJob"}, set()),
        ({"namespace": "team"}, {"a"}),
        ({"namespace": "tea"}, set()),
        ({"version": "2"}, {"a"}),
        ({"version": ""}, set()),
        ({"region": "west"}, {"w"}),
        ({"region": "east"}, set()),
    ],
)
def test_only_jobs_within_the_bounds(store, make_job, live, bounds, gone):
    """Kinds that were not listed, other namespaces, newer jobs and other regions are left alone."""
    mpi = {**make_job("m", 1, RUNNING), "kind": "MPIJob"}
    jobs = [make_job("a", 1, RUNNING), make_job("b", 5, RUNNING, namespace="other"), make_job("c", 6, RUNNING), mpi]
    west = job_record(make_job("w", 1, RUNNING), "west")
    store.save([*map(job_record, jobs), west])

    assert store.close_missing(live("x", **bounds)) == len(gone)
    assert {row["job_id"] for row in store.jobs() if row["status"] == "Stopped"} == gone


@pytest.mark.parametrize(
    ("bounds", "gone"),
    [
        ({}, {"p", "q"}),
        ({"namespace": "team"}, {"p", "q"}),
        ({"namespace": "other"}, set()),
        ({"version": "3"}, {"p"}),
        ({"region": "west"}, {"w"}),
    ],
)
def test_only_pods_within_the_bounds(store, make_pod, live, bounds, gone):
    pods = [pod_record(make_pod(uid, version), "a", "Worker") for uid, version in (("p", 1), ("q", 4), ("r", 6))]
    store.save([*pods, pod_record(make_pod("w"), "a", "Worker", "west")])

    assert store.close_missing(live("x", what="pod", **bounds)) == len(gone)
    assert {row["pod_id"] for row in store.pods("a") if row["status"] == "Stopped"} == gone


@pytest.mark.parametrize(("controller", "closing", "gone"), [(None, None, 1), (None, "west", 0), ("west", None, 0)])
def test_a_region_that_the_tenancy_tells(store, make_job, make_pod, live, controller, closing, gone):
    """It is not the controller's: its pods tell whose job it is."""
    annotations = {"kubedl.io/tenancy": '{"region": "west"}'}
    job = job_record(make_job("a", 1, RUNNING, annotations=annotations), controller)
    store.save([job, pod_record(make_pod(), "a", "Worker", controller)])

    assert job.deploy_region == "west"
    assert store.close_missing(live(region=closing)) == gone
